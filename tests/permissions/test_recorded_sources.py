"""Sources whose mounts no test machine has: their attributes are recorded bytes, kept in others."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.samba import ace_bytes, descriptor_bytes
from test_cases_recorded import ALICE, BOB, DOMAIN, PEOPLE, STAFF, allow, nfs4, people_in, who_passes

from acl.directories.file import FileDirectory
from acl.model import AccessList
from acl.mounts import Mount
from acl.source import Source, make_source
from acl.sources.cifs import CifsSource
from acl.sources.nfs4 import Nfs4Source
from notewarden.errors import ConfigError
from notewarden.settings import Settings

EVERYONE = "S-1-1-0"


def recorded(fd: int, name: str) -> bytes:
    """The attribute as the mount would give it: a file's own attribute of nearly the same name."""
    return os.getxattr(fd, f"user.{name}")


def mounted(kind: str, source: str = "nas1:/notes") -> Callable[[Path], Mount]:
    return lambda path: Mount(os.fsencode(path), kind, source, frozenset({"ro"}))


@pytest.fixture
def directory(tmp_path: Path) -> FileDirectory:
    return people_in(tmp_path, PEOPLE)


@pytest.fixture
def share(settings_factory: Callable[..., Settings], tmp_path: Path) -> Callable[..., Any]:
    """A function that gives the settings of one share with a note `d/a.md`."""

    def make(**acl: Any) -> Any:
        (tmp_path / "notes" / "d").mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / "d" / "a.md").write_text("# A\n")
        return settings_factory(share=[{"name": "notes", "path": tmp_path / "notes", "acl": acl}]).shares[0]

    return make


def record(share: Any, path: str, name: str, raw: bytes) -> None:
    os.setxattr(share.path / path, f"user.{name}", raw)


def note_of(source: Source, share: Any) -> tuple[AccessList, ...]:
    with open(share.path / "d/a.md", "rb") as file:
        return source.note_lists(file.fileno(), b"d/a.md")


def folder_of(source: Source, share: Any) -> tuple[AccessList, ...]:
    fd = os.open(share.path / "d", os.O_RDONLY)
    try:
        return source.parent_lists(fd, b"d")
    finally:
        os.close(fd)


def test_an_nfs4_note_is_read_by_its_attribute(directory: FileDirectory, share: Callable[..., Any]) -> None:
    one = share(source="nfs4", guards="posix_x", same_ids=True)
    source = Nfs4Source(one, directory, recorded, mounted("nfs4"))
    source.check()
    record(one, "d/a.md", "system.nfs4_acl", nfs4((0, 0, 1, "alice@corp"), (1, 0, 1, "EVERYONE@")))
    record(one, "d", "system.nfs4_acl", nfs4((0, 0, 0x20, "bob@corp"), (0, 0, 0x20, "alice@corp")))
    assert who_passes(directory, note_of(source, one)) == {"alice"}
    assert who_passes(directory, folder_of(source, one)) == {"alice", "bob"}
    assert who_passes(directory, source.share_lists()) == {"alice", "bob", "zoe"}


def test_names_of_a_domain_are_not_ours_unless_declared(
    directory: FileDirectory, share: Callable[..., Any]
) -> None:
    one = share(source="nfs4", guards="bypass")
    source = Nfs4Source(one, directory, recorded, mounted("nfs4"))
    record(one, "d/a.md", "system.nfs4_acl", nfs4((0, 0, 1, "alice@corp")))
    assert who_passes(directory, note_of(source, one)) == set()
    assert folder_of(source, one) == ()


def test_nfs4_listing_counts_where_it_is_asked_for(
    directory: FileDirectory, share: Callable[..., Any]
) -> None:
    one = share(source="nfs4", guards="listable", same_ids=True)
    source = Nfs4Source(one, directory, recorded, mounted("nfs4"))
    record(one, "d", "system.nfs4_acl", nfs4((0, 0, 0x21, "alice@corp"), (0, 0, 0x20, "EVERYONE@")))
    assert who_passes(directory, folder_of(source, one)) == {"alice"}


def test_an_attribute_that_cannot_be_read_closes_the_note(
    directory: FileDirectory, share: Callable[..., Any]
) -> None:
    one = share(source="nfs4", guards="bypass")
    (closed,) = note_of(Nfs4Source(one, directory, recorded, mounted("nfs4")), one)
    assert closed.status == "quarantined" and "cannot be read" in closed.reason


def test_a_cifs_note_is_read_by_its_attribute(directory: FileDirectory, share: Callable[..., Any]) -> None:
    one = share(
        source="cifs", model="nt", guards="nt_traverse", server="nas1", share_readers=[f"{DOMAIN}-2001"]
    )
    source = CifsSource(one, directory, recorded, mounted("cifs", "//nas1/notes"))
    source.check()
    record(one, "d/a.md", "system.cifs_acl", descriptor_bytes(ALICE, [ace_bytes(1, BOB, 1), allow(STAFF)]))
    record(one, "d", "system.cifs_ntsd", descriptor_bytes(ALICE, [ace_bytes(0, EVERYONE, 0x20)]))
    assert who_passes(directory, note_of(source, one)) == {"alice"}
    assert who_passes(directory, folder_of(source, one)) == {"alice", "bob", "zoe"}
    assert who_passes(directory, source.share_lists()) == {"alice", "bob"}


def test_a_cifs_mount_does_not_tell_the_shares_own_permissions(
    directory: FileDirectory, share: Callable[..., Any]
) -> None:
    one = share(source="cifs", model="nt", guards="bypass", server="nas1")
    (closed,) = CifsSource(one, directory, recorded, mounted("cifs")).share_lists()
    assert closed.status == "quarantined" and "share_readers" in closed.reason


@pytest.mark.parametrize("number", [errno.ENODATA, errno.ENOTSUP, errno.EACCES, errno.EIO])
def test_a_descriptor_that_is_not_shown_closes_the_note(
    number: int, directory: FileDirectory, share: Callable[..., Any]
) -> None:
    def refuses(fd: int, name: str) -> bytes:
        raise OSError(number, os.strerror(number))

    one = share(source="cifs", model="nt", guards="bypass", server="nas1")
    (closed,) = note_of(CifsSource(one, directory, refuses, mounted("cifs")), one)
    assert closed.status == "quarantined"


@pytest.mark.parametrize(
    ("acl", "word"),
    [
        ({"source": "nfs4"}, "NFSv4 mount"),
        ({"source": "cifs", "model": "nt", "server": "nas1"}, "cifs mount"),
    ],
)
def test_another_kind_of_mount_is_refused(
    acl: dict[str, Any], word: str, directory: FileDirectory, share: Callable[..., Any]
) -> None:
    with pytest.raises(ConfigError, match=word):
        make_source(share(**acl), directory).check()


@pytest.mark.parametrize("change", [{"model": "nfs4"}, {"server": ""}])
def test_cifs_settings_that_cannot_work_are_named(
    change: dict[str, Any], directory: FileDirectory, share: Callable[..., Any]
) -> None:
    with pytest.raises(ConfigError, match="server"):
        make_source(share(**{"source": "cifs", "model": "nt", "server": "nas1", **change}), directory)
