"""The posix source on real files: layers and guards, what is unknown, and which file systems it takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.posix_acls import GROUP_OBJ, MASK, NO_ID, OTHER, OWNER, USER, acl_bytes

from acl.directories.nss import NssDirectory
from acl.directory import make_directory
from acl.evaluate import readable
from acl.model import AccessList
from acl.mounts import Mount, mount_of, parse_mountinfo
from acl.posix import XATTR
from acl.sid import AUTHENTICATED, EVERYONE, NETWORK, uncertain_names, unix_group, unix_user
from acl.source import make_source
from acl.sources.posix import PosixSource, has_no_acls, overlay_layers, server_identity, why_not_enforced
from acl.token import Token
from notewarden.errors import ConfigError, ShareUnavailable
from notewarden.settings import Settings
from notewarden.settings_sections import ShareSettings

OTHERS_UID = 54_321


def make_share(path: Path, **acl: Any) -> ShareSettings:
    return ShareSettings.model_validate(
        {"name": "notes", "path": str(path), "acl": {"source": "posix", **acl}}
    )


def make(path: Path, **acl: Any) -> PosixSource:
    source = PosixSource(make_share(path, **acl), NssDirectory())
    source.check()
    return source


def unix_token(uid: int, *gids: int) -> Token:
    allow = {
        unix_user(uid, "host"),
        *(unix_group(gid, "host") for gid in gids),
        EVERYONE,
        AUTHENTICATED,
        NETWORK,
    }
    known = frozenset(allow)
    return Token(
        unix_user(uid, "host"), "x", known, known | uncertain_names(("S-1-22-1@host", "S-1-22-2@host"))
    )


@contextmanager
def opened(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    (root / "sub").mkdir(parents=True)
    root.chmod(0o755)
    (root / "sub" / "n.md").write_text("text")
    (root / "sub" / "n.md").chmod(0o644)
    return root


def policy(source: PosixSource, root: Path, *parts: str) -> tuple[AccessList, ...]:
    """All layers of one note, read as a walk from the root reads them."""
    lists = list(source.share_lists())
    here = root
    for part in ("", *parts[:-1]):
        here = here / part
        with opened(here) as fd:
            lists += source.parent_lists(fd, os.fsencode(here.relative_to(root)))
    note = root.joinpath(*parts)
    with opened(note) as fd:
        lists += source.note_lists(fd, os.fsencode(note.relative_to(root)))
    return tuple(lists)


@pytest.mark.parametrize(
    ("guards", "folder_mode", "root_mode", "other", "owner"),
    [
        ("posix_x", 0o755, 0o755, True, True),
        ("posix_x", 0o700, 0o755, False, True),
        ("posix_x", 0o755, 0o700, False, True),
        ("posix_x", 0o711, 0o711, True, True),
        ("posix_x", 0o744, 0o755, False, True),
        ("bypass", 0o700, 0o700, True, True),
        ("listable", 0o755, 0o755, True, True),
        ("listable", 0o711, 0o755, False, True),
        ("listable", 0o744, 0o755, False, True),
        ("posix_x", 0o655, 0o755, True, False),
    ],
)
def test_parents_guard_as_configured(
    tree: Path, guards: str, folder_mode: int, root_mode: int, other: bool, owner: bool
) -> None:
    if os.geteuid() != 0 and not folder_mode & root_mode & 0o100:
        pytest.skip("NOT TESTED: the owner of a folder without x cannot open what is in it")
    source = make(tree, guards=guards)
    (tree / "sub").chmod(folder_mode)
    tree.chmod(root_mode)
    lists = policy(source, tree, "sub", "n.md")
    assert readable(lists, unix_token(OTHERS_UID, 9)) is other
    assert readable(lists, unix_token(os.getuid(), 9)) is owner


def test_guards_are_one_list_per_right(tree: Path) -> None:
    with opened(tree) as fd:
        assert [
            len(make(tree, guards=guards).parent_lists(fd, b""))
            for guards in ("bypass", "posix_x", "listable")
        ] == [
            0,
            1,
            2,
        ]
        assert {item.role for item in make(tree, guards="listable").parent_lists(fd, b"")} == {"parent"}


def test_an_acl_on_the_note_counts(tree: Path) -> None:
    note = tree / "sub" / "n.md"
    entries = [
        (OWNER, 6, NO_ID),
        (USER, 4, OTHERS_UID),
        (GROUP_OBJ, 0, NO_ID),
        (MASK, 4, NO_ID),
        (OTHER, 0, NO_ID),
    ]
    source = make(tree)
    before = policy(source, tree, "sub", "n.md")[-1]
    os.setxattr(note, XATTR, acl_bytes(entries))
    lists = policy(source, tree, "sub", "n.md")
    assert readable(lists, unix_token(OTHERS_UID, 9))
    assert not readable(lists, unix_token(OTHERS_UID + 1, 9))
    assert lists[-1].key != before.key
    entries[1] = (USER, 0, OTHERS_UID)
    os.setxattr(note, XATTR, acl_bytes([*entries[:4], (OTHER, 4, NO_ID)]))
    assert not readable(policy(source, tree, "sub", "n.md"), unix_token(OTHERS_UID, 9))
    assert readable(policy(source, tree, "sub", "n.md"), unix_token(OTHERS_UID + 1, 9))


def test_the_descriptor_counts_not_the_name(tree: Path) -> None:
    note = tree / "sub" / "n.md"
    note.chmod(0o600)
    with opened(note) as fd:
        note.rename(tree / "sub" / "old.md")
        note.write_text("public")
        note.chmod(0o644)
        lists = make(tree).note_lists(fd, b"sub/n.md")
    assert not readable(lists, unix_token(OTHERS_UID, 9))


def test_a_list_that_cannot_be_read_closes_the_note(tree: Path) -> None:
    fd = os.open(tree / "sub" / "n.md", os.O_PATH)  # fstat works on it, reading attributes does not
    try:
        (access_list,) = make(tree).note_lists(fd, b"sub/n.md")
    finally:
        os.close(fd)
    assert access_list.status == "quarantined"
    assert "cannot be read" in access_list.reason
    assert not readable((access_list,), unix_token(os.getuid(), os.getgid()))


def test_the_share_is_everyones_unless_declared(tree: Path) -> None:
    (everyone,) = make(tree).share_lists()
    assert everyone.readers == {EVERYONE}
    assert everyone.role == "share"
    (declared,) = make(tree, share_readers=["root"], share_denied=["S-1-22-2-9"]).share_lists()
    assert declared.readers == {"S-1-22-1-0@host"}
    assert readable((declared,), unix_token(0, 0))
    assert not readable((declared,), unix_token(0, 0, 9))
    with pytest.raises(ConfigError, match="nobody-here"):
        make(tree, share_readers=["nobody-here"])


MOUNTINFO = rb"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
23 22 0:30 / /mnt/my\040notes rw - cifs //nas/notes rw,vers=3.1.1
24 22 0:31 / /mnt/three rw,relatime master:2 propagate_from:1 - nfs nas:/export rw,vers=3,addr=1.2.3.4
nonsense
25 22 0:32 / /mnt/four rw - nfs4 nas:/export rw,vers=4.2
"""


def test_mountinfo_is_read_by_mount_id() -> None:
    mounts = parse_mountinfo(MOUNTINFO)
    assert sorted(mounts) == [22, 23, 24, 25]
    assert mounts[23].point == b"/mnt/my notes"
    assert mounts[24].source == "nas:/export"
    assert {"relatime", "vers=3"} <= mounts[24].options
    assert mounts[23].ignores_case
    assert not mounts[22].ignores_case


def test_the_mount_of_a_real_folder_is_found(tmp_path: Path) -> None:
    assert mount_of(Path("/proc")).kind == "proc"
    found = mount_of(tmp_path)
    assert os.lstat(found.point).st_dev == tmp_path.stat().st_dev
    with pytest.raises(ShareUnavailable):
        mount_of(tmp_path / "missing")


@pytest.mark.parametrize(
    ("kind", "options", "taken"),
    [
        *(
            (kind, set(), True)
            for kind in ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay")
        ),
        ("nfs", {"vers=3"}, True),
        ("nfs", {"vers=3", "noacl"}, False),
        ("nfs", {"vers=2"}, False),
        ("nfs", set(), False),
        ("nfs4", {"vers=4.2"}, False),
        *(
            (kind, set(), False)
            for kind in ("cifs", "smb3", "fuse.sshfs", "fuseblk", "vfat", "exfat", "9p", "ntfs3")
        ),
        ("overlay", {"upperdir=/proc"}, False),
        ("overlay", {"lowerdir=/nowhere:/proc/self"}, False),
        ("overlay", {"lowerdir=l/ABC:/nowhere/at/all"}, True),
        ("something new", set(), False),
    ],
)
def test_only_file_systems_with_enforced_modes_are_taken(kind: str, options: set[str], taken: bool) -> None:
    assert (why_not_enforced(Mount(b"/mnt", kind, "x", frozenset(options))) == "") is taken


def test_a_share_on_another_file_system_is_refused_with_a_remedy() -> None:
    source = PosixSource(make_share(Path("/proc")), NssDirectory())
    with pytest.raises(ConfigError, match=r"'notes'.*'proc'.*declared"):
        source.check()


def test_guards_that_need_nt_lists_are_refused(tree: Path) -> None:
    with pytest.raises(ConfigError, match="nt_traverse"):
        make(tree, guards="nt_traverse")


@pytest.mark.parametrize(
    ("kind", "options", "plain"),
    [
        ("ext4", {"noacl"}, True),
        ("ext4", set(), False),
        ("tmpfs", set(), True),
        ("nfs", {"vers=3", "noacl"}, False),
        ("nfs", {"vers=3"}, False),
        ("cifs", {"noacl"}, False),
    ],
)
def test_no_acl_support_is_plain_modes_only_where_this_kernel_enforces_them(
    kind: str, options: set[str], plain: bool
) -> None:
    assert has_no_acls(Mount(b"/mnt", kind, "x", frozenset(options))) is plain


def test_ids_belong_to_the_server_that_issued_them() -> None:
    remote = Mount(b"/mnt", "nfs", "nas:/export", frozenset({"vers=3"}))
    assert server_identity(remote, same_ids=False) == "nfs:nas:/export"
    assert server_identity(remote, same_ids=True) == "host"
    assert server_identity(Mount(b"/", "ext4", "/dev/vda", frozenset()), same_ids=False) == "host"


def test_layers_of_an_overlay_are_found_in_its_options() -> None:
    options = frozenset({"rw", "lowerdir=/a:/b:l/c", "upperdir=/u", "workdir=/w", "lowerdir+=/d"})
    assert set(overlay_layers(options)) == {Path("/a"), Path("/b"), Path("/u"), Path("/d")}


def test_sources_and_directories_are_made_from_the_configuration(tree: Path) -> None:
    assert isinstance(make_source(make_share(tree), NssDirectory()), PosixSource)
    smb = ShareSettings.model_validate(
        {"name": "notes", "path": str(tree), "acl": {"source": "smb", "model": "nt", "server": "nas"}}
    )
    with pytest.raises(ConfigError, match="smb"):
        make_source(smb, NssDirectory())


def test_the_directory_is_the_configured_one(
    tmp_path: Path, settings_factory: Callable[..., Settings]
) -> None:
    assert isinstance(make_directory(settings_factory()), NssDirectory)
    file = tmp_path / "people.toml"
    file.write_text("[users.ann]")
    file.chmod(0o600)
    directory = make_directory(settings_factory(directory={"source": "file", "file": str(file)}))
    assert directory.user("ann").name == "ann"
    inside = tmp_path / "notes" / "people.toml"
    file.rename(inside)
    with pytest.raises(ConfigError, match="inside the share"):
        make_directory(settings_factory(directory={"source": "file", "file": str(inside)}))
    with pytest.raises(ConfigError, match="ldap"):
        make_directory(settings_factory(directory={"source": "ldap"}))


def test_ctime_tells_on_a_local_disk(tree: Path) -> None:
    source = make(tree)
    note = tree / "sub" / "n.md"
    before = note.stat().st_ctime_ns
    while note.stat().st_ctime_ns == before:
        note.chmod(0o640)
    assert source.ctime_tells
