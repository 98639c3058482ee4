"""What is recognised of a share's configuration, which settings cannot work, how names and files pair."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.samba import ACL_XATTR, PLAIN, Samba, free_port
from support.smb_house import CAST, GIDS
from support.smb_share import ALLOW, DENY, WORD, SmbWorld

from acl.diagnosis import Finding, diagnose
from acl.directory import make_directory
from acl.sources.smb.modes import PosixTree
from acl.sources.smb.names import smb_path, twins
from acl.sources.smb.pairing import filetime, mismatch
from acl.sources.smb.pysmb_client import PysmbClient
from acl.sources.smb.source import SmbSource
from indexer.doctor.run import examine
from notewarden.errors import ConfigError, NoteUnreadable


def findings(smb: SmbWorld) -> list[Finding]:
    return diagnose(smb.world.settings.shares[0])


def test_a_share_that_acts_as_one_user_is_closed(smb: SmbWorld, smb_server: Samba) -> None:
    smb.serve({"admin users": "nobody"}, model="posix", admin_share="")
    note = smb.world.write("a.md", f"# A\n\nThe {WORD}.\n", 0o644)
    os.chown(note, smb.house.uid("alice"), 0)
    smb_server.share("notes", smb.root, {"force user": "alice", "admin users": "nobody"})
    smb.world.configure("off", smb.house.shares["notes"]["acl"])
    report = smb.world.sync()
    assert report.unreadable == 1 and smb.readers("a.md") == set()
    assert "force user" in smb.trouble()["a.md"]
    (told,) = [one for one in findings(smb) if one.name == "smb one user"]
    assert not told.ok and "force user" in told.detail


def wrong(smb: SmbWorld) -> dict[str, str]:
    return {one.name: one.remedy for one in findings(smb) if not one.ok}


def test_an_ordinary_share_is_found_right(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR)
    smb.write("a.md", (ALLOW, "alice"), owner="alice")
    os.chown(smb.root / "a.md", smb.house.uid("alice"), 0)
    assert wrong(smb) == {}
    assert "pysmb, SMB 2.002" in {one.name: one.detail for one in findings(smb)}["smb client"]


def test_a_text_that_changes_while_it_comes_is_not_taken(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR)
    note = smb.write("a.md", (ALLOW, "alice"))

    class Meddling(PysmbClient):
        def read(self, path: str, most: int) -> bytes:
            found = super().read(path, most)
            note.write_text("# Another text, meanwhile\n")
            return found

    source = SmbSource(smb.world.settings.shares[0], smb.world.directory, Meddling)
    with pytest.raises(NoteUnreadable, match="changed"):
        source.text(b"a.md", 1_000)


def test_doctor_tells_the_findings(smb: SmbWorld) -> None:
    smb.serve(PLAIN, model="nt")
    note = smb.world.write("a.md", mode=0o604)
    os.chown(note, 0, GIDS["staff"])
    checks = {check.name: check for check in examine(smb.world.settings.file)}
    assert checks["smb client notes"].ok and checks["permissions notes"].ok
    assert not checks["smb model notes"].ok and "nt+posix" in checks["smb model notes"].remedy


def test_why_it_is_the_slower_client_is_said(smb: SmbWorld, start_samba: Callable[..., Samba]) -> None:
    smb.house.server = start_samba(CAST, GIDS, admin_users="svc", server_min_protocol="SMB2_02")
    smb.serve(ACL_XATTR, require_signing=True)
    told = {one.name: one.detail for one in findings(smb)}
    assert told["smb client"] == "smbprotocol, SMB 3.1.1, since require_signing is set"


def test_a_server_that_is_away_is_a_finding(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR)
    smb.world.configure("off", {**smb.house.shares["notes"]["acl"], "port": free_port()})
    (told,) = findings(smb)
    assert not told.ok and "cannot be reached" in told.detail and "port" in told.remedy


def test_an_administrators_session_is_not_taken_for_force_user(smb: SmbWorld) -> None:
    smb.serve(PLAIN, model="posix", posix_path=smb.root)
    for number, owner in enumerate(["alice", "alice", "alice"]):
        note = smb.world.write(f"n{number}.md", mode=0o644)
        os.chown(note, smb.house.uid(owner), 0)
    assert "smb one user" not in wrong(smb)


def test_a_mask_0_list_under_nt_is_found_and_never_walked_literally(smb: SmbWorld) -> None:
    smb.serve(PLAIN, model="nt")
    note = smb.world.write("a.md", f"# A\n\nThe {WORD}.\n", 0o604)
    os.chown(note, 0, GIDS["staff"])
    smb.world.sync()
    assert smb.readers("a.md") == {"dave"}
    assert "nt+posix" in wrong(smb)["smb model"]


def test_nt_lists_under_posix_are_found_and_close(smb: SmbWorld) -> None:
    """The modes let everybody in; the stored lists, which the server checks too, do not."""
    smb.serve(ACL_XATTR, model="posix", guards="posix_x", posix_path=smb.root)
    smb.write("a.md", (ALLOW, "alice"))
    smb.write("b.md", (DENY, "bob"), (ALLOW, "S-1-1-0"))
    smb.world.sync()
    assert smb.readers("a.md") == smb.readers("b.md") == set()
    assert "nt+posix" in wrong(smb)["smb model"]


def test_a_share_that_needs_declared_gates_is_found(smb: SmbWorld, start_samba: Callable[..., Samba]) -> None:
    """An account that is no administrator is not told the share's own permissions."""
    plain = start_samba(CAST, GIDS)
    smb.house.server = plain
    smb.world.write("a.md", f"# A\n\nThe {WORD}.\n", 0o644)
    smb.serve({"admin users": "svc"}, model="posix", posix_path=smb.root)
    smb.house.shares["notes"]["acl"]["port"] = plain.port
    smb.world.configure("off", smb.house.shares["notes"]["acl"])
    smb.world.sync()
    assert smb.readers("a.md") == set()
    assert "share_readers" in wrong(smb)["smb share permissions"]
    smb.world.configure("off", {**smb.house.shares["notes"]["acl"], "share_readers": ["group:sales"]})
    smb.world.sync()
    assert smb.readers("a.md") == {"carol"}
    assert "smb share permissions" not in wrong(smb)


def test_modes_that_do_not_show_are_found(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR, model="nt+posix")
    smb.write("a.md", (ALLOW, "alice"))
    assert "posix_path" in wrong(smb)["smb modes"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"server": ""}, "server"),
        ({"share": ""}, "share"),
        ({"username": ""}, "username"),
        ({"model": "nfs4"}, "model"),
        ({"client": "pysmb", "require_signing": True}, "require_signing"),
    ],
)
def test_settings_that_cannot_work_are_named(smb: SmbWorld, change: dict[str, Any], word: str) -> None:
    smb.serve(ACL_XATTR)
    smb.world.configure("off", {**smb.house.shares["notes"]["acl"], **change})
    with pytest.raises(ConfigError, match=word):
        SmbSource(smb.world.settings.shares[0], make_directory(smb.world.settings))


@pytest.mark.parametrize("name", ["a\\b.md", "x<y.md", "dot./n.md", "blank /n.md", "n.md ", "ctl\x07.md"])
def test_names_are_not_bent_into_others(name: str) -> None:
    with pytest.raises(NoteUnreadable, match="over SMB"):
        smb_path("", os.fsencode(name))


def test_paths_are_said_in_smbs_way() -> None:
    assert smb_path("", b"") == ""
    assert smb_path("sub/folder", b"a/b.md") == "sub\\folder\\a\\b.md"
    assert smb_path("", "böse/ü.md".encode()) == "böse\\ü.md"


def test_twins_differ_in_case_or_form_only() -> None:
    listed = ["a.md", "A.md", "b.md", "caf\u00e9.md", "cafe\u0301.md", "stra\u00dfe", "STRASSE"]
    assert twins(listed) == {os.fsencode(name) for name in listed if name != "b.md"}


@pytest.mark.parametrize("path", [b"link.md", b"folder/a.md", b"gone.md", b"real/../a.md/x"])
def test_modes_are_never_those_of_a_link_s_target(path: bytes, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.md").write_text("text")
    (tmp_path / "link.md").symlink_to("real/a.md")
    (tmp_path / "folder").symlink_to("real")
    with pytest.raises(OSError):
        PosixTree(tmp_path).mode(path)
    assert PosixTree(tmp_path).mode(b"real/a.md").file_id == (tmp_path / "real/a.md").stat().st_ino


def test_a_pair_must_agree_in_id_size_and_time(tmp_path: Path) -> None:
    from acl.sources.smb.client import Answer

    file = tmp_path / "a.md"
    file.write_text("text")
    info = file.stat()
    good = {"file_id": info.st_ino, "size": 4, "write_time": filetime(info.st_mtime_ns)}
    assert mismatch(Answer(0, **good), info) is None
    for key in good:
        assert mismatch(Answer(0, **{**good, key: good[key] + 1}), info) is not None
    assert mismatch(Answer(0, **{**good, "file_id": 1}), info, same_ids=False) is None
    assert mismatch(Answer(0, **good, attributes=0x400), info) is not None
