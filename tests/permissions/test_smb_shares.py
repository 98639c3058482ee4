"""A share on a real Samba through sync and answers: what changes, moves, hides, and cannot be told apart."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.permission_world import PermissionWorld
from support.samba import ACL_XATTR, PLAIN, Samba, ace_bytes, descriptor_bytes, free_port, store_descriptor
from support.smb_house import CAST, GIDS, READ, SmbHouse

from acl.diagnosis import Finding, diagnose
from acl.directory import make_directory
from acl.mounts import Mount
from acl.sources.smb.modes import PosixTree
from acl.sources.smb.names import smb_path, twins
from acl.sources.smb.pairing import filetime, mismatch
from acl.sources.smb.pysmb_client import PysmbClient
from acl.sources.smb.source import SmbSource
from indexer.doctor.run import examine
from indexer.files import Files
from indexer.hint import Clock
from indexer.identity import opened_share
from indexer.reading import NoteReader
from notewarden.errors import ConfigError, NoteUnreadable

WORD = "walrus"


@pytest.fixture(scope="module")
def server(start_samba: Callable[..., Samba]) -> Samba:
    return start_samba(CAST, GIDS, admin_users="svc")


class SmbWorld:
    """The permission world's share, served by Samba: its notes and what people see of them."""

    def __init__(self, world: PermissionWorld, house: SmbHouse) -> None:
        self.world, self.house, self.root = world, house, world.root
        world.people(house.people_toml())
        (house.exports / "notes").symlink_to(self.root)

    def serve(self, options: dict[str, str], late_check: str = "require", **acl: Any) -> None:
        told = {"model": "nt", "guards": "bypass", "folder": "notes", **acl}
        share_keys = told.pop("share_keys", {})
        self.house.add("notes", options, **told)
        self.world.configure(late_check, self.house.shares["notes"]["acl"], share_keys=share_keys)

    def write(self, path: str, *aces: tuple[int, str], owner: str = "svc", text: str = "") -> Path:
        file = self.world.write(path, text or f"# {path}\n\nThe {WORD} of {path}.\n", 0o666)
        self.give(path, *aces, owner=owner)
        return file

    def give(self, path: str, *aces: tuple[int, str], owner: str = "svc") -> None:
        told = [ace_bytes(kind, self.house.sid(who), READ) for kind, who in aces]
        store_descriptor(self.root / path, descriptor_bytes(self.house.sid(owner), told))

    def readers(self, path: str, word: str = WORD) -> set[str]:
        """Who is shown a note by search; who is shown it otherwise is the same by the tests of the doors."""
        found = set()
        for name in ("alice", "bob", "carol", "dave"):
            result = self.world.engine.search(self.world.asker(name), word, k=1000).result
            found |= {name} if path in {row.path for row in result.results} else set()
        return found

    def trouble(self) -> dict[str, str]:
        rows = self.world.rows("select path, reason from nw.ledger")
        return {os.fsdecode(bytes(path)): reason for path, reason in rows}


@pytest.fixture
def smb(permission_world: PermissionWorld, server: Samba, tmp_path: Path) -> Iterator[SmbWorld]:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    house = SmbHouse(server, tmp_path)
    yield SmbWorld(permission_world, house)
    permission_world.restart()
    house.remove()


ALLOW, DENY = 0, 1


def test_35_only_the_order_of_a_list_changed(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR, late_check="off")
    smb.write("a.md", (DENY, "bob"), (ALLOW, "staff"))
    smb.world.sync()
    assert smb.readers("a.md") == {"alice", "carol"}
    made, before = smb.world.embedder.made, (smb.root / "a.md").stat()
    smb.give("a.md", (ALLOW, "staff"), (DENY, "bob"))
    assert (smb.root / "a.md").stat().st_mtime_ns == before.st_mtime_ns
    assert smb.world.sync().acl_changed == 1
    assert smb.readers("a.md") == {"alice", "bob", "carol"}
    assert smb.world.embedder.made == made


def test_36_only_the_owner_changed(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR, late_check="off")
    smb.write("a.md", (ALLOW, "S-1-3-4"), owner="alice")
    smb.world.sync()
    assert smb.readers("a.md") == {"alice"}
    smb.give("a.md", (ALLOW, "S-1-3-4"), owner="bob")
    smb.world.sync()
    assert smb.readers("a.md") == {"bob"}


def test_37_a_moved_note_keeps_its_list(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR)
    smb.write("open/a.md", (ALLOW, "alice"))
    smb.write("closed/b.md", (ALLOW, "bob"))
    smb.world.sync()
    (smb.root / "open/a.md").rename(smb.root / "closed/a.md")
    assert smb.world.sync().moved == 1
    assert smb.readers("closed/a.md") == {"alice"}
    assert smb.readers("open/a.md") == set()


@pytest.mark.parametrize("late_check", ["require", "off"])
def test_38_a_note_replaced_by_a_looser_one(smb: SmbWorld, late_check: str) -> None:
    """Never the new text under the old list, never the old text under the new one."""
    smb.serve(ACL_XATTR, late_check)
    smb.write("a.md", (ALLOW, "alice"), text=f"# A\n\nThe {WORD} is a secret heron.\n")
    smb.world.sync()
    smb.write("new.tmp", (ALLOW, "staff"), text=f"# A\n\nThe {WORD} is a public gull.\n")
    (smb.root / "new.tmp").rename(smb.root / "a.md")
    for name in ("bob", "carol"):
        assert "heron" not in smb.world.see(name, WORD, "a.md").text
    smb.world.sync()
    assert smb.readers("a.md") == {"alice", "bob", "carol"}
    for name in ("alice", "bob", "carol"):
        assert "heron" not in smb.world.see(name, WORD, "a.md").text


def test_40_with_patterns_in_use_the_list_still_counts(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR, share_keys={"include": ["**/*.md", "**/*.txt"], "exclude": ["drafts/**"]})
    smb.write("a.txt", (ALLOW, "alice"))
    smb.write("drafts/b.md", (ALLOW, "S-1-1-0"))
    smb.world.sync()
    assert smb.readers("a.txt") == {"alice"}
    assert smb.readers("drafts/b.md") == set()


def test_52_a_link_out_of_the_share_is_not_followed(smb: SmbWorld, tmp_path: Path) -> None:
    smb.serve({**ACL_XATTR, "wide links": "yes"})
    outside = tmp_path / "outside.md"
    outside.write_text(f"# Out\n\nThe {WORD} outside.\n")
    smb.write("a.md", (ALLOW, "alice"))
    (smb.root / "link.md").symlink_to(outside)
    (smb.root / "inside.md").symlink_to(smb.root / "a.md")
    smb.world.sync()
    assert smb.readers("a.md") == {"alice"}
    assert "outside" not in smb.world.see("alice", WORD).text
    assert set(smb.trouble()) == {"link.md", "inside.md"}


def test_56_twins_in_case_are_unreadable_and_said_so(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR)
    smb.write("secret.md", (ALLOW, "alice"))
    smb.write("Secret.md", (ALLOW, "S-1-1-0"))
    smb.write("other.md", (ALLOW, "bob"))
    smb.world.sync()
    assert smb.readers("secret.md") == smb.readers("Secret.md") == set()
    assert smb.readers("other.md") == {"bob"}
    assert all("twin" in smb.trouble()[name] for name in ("secret.md", "Secret.md"))
    (smb.root / "Secret.md").unlink()
    smb.world.sync()
    smb.world.sync()
    assert smb.readers("secret.md") == {"alice"}


def test_57_half_a_folder_re_permissioned(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR, late_check="off")
    for number in range(6):
        smb.write(f"d/n{number}.md", (ALLOW, "staff"))
    smb.world.sync()
    made = smb.world.embedder.made
    for number in range(3):
        smb.give(f"d/n{number}.md", (ALLOW, "carol"))
    smb.world.sync()
    assert [smb.readers(f"d/n{n}.md") for n in range(6)] == [{"carol"}] * 3 + [{"alice", "bob", "carol"}] * 3
    assert smb.world.embedder.made == made


def test_a_revocation_counts_in_the_very_next_answer(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR, late_check="require")
    smb.write("a.md", (ALLOW, "staff"))
    smb.world.sync()
    assert smb.readers("a.md") == {"alice", "bob", "carol"}
    smb.give("a.md", (ALLOW, "alice"))
    assert smb.readers("a.md") == {"alice"}
    smb.house.server.sharesec("notes", f"O:BAG:SYD:(A;;0x1200a9;;;{smb.house.sid('bob')})")
    try:
        assert smb.readers("a.md") == set()
    finally:
        smb.house.server.sharesec("notes", "O:BAG:SYD:(A;;0x1f01ff;;;WD)")


def test_what_was_asked_before_a_check_does_not_count_in_it(smb: SmbWorld) -> None:
    """Threads share a source: one's check must not be answered by what another asked earlier."""
    smb.serve(ACL_XATTR)
    note = smb.write("a.md", (ALLOW, "staff"))
    source = SmbSource(smb.world.settings.shares[0], smb.world.directory)
    source.check()
    with open(note, "rb") as file:
        source.prefetch(b"", [b"a.md"])
        smb.give("a.md", (ALLOW, "alice"))
        held = source._ahead
        source.recheck()
        source._ahead = held  # as if the other thread had been told only now
        now = source.note_lists(file.fileno(), b"a.md")
    assert now[0].readers == {smb.house.sid("alice")}


def test_an_answer_asked_ahead_serves_once(smb: SmbWorld) -> None:
    """A note is read between two looks at its list: the second look must be a new one."""
    smb.serve(ACL_XATTR)
    note = smb.write("a.md", (ALLOW, "staff"))
    source = SmbSource(smb.world.settings.shares[0], smb.world.directory)
    source.check()
    with open(note, "rb") as file:
        source.prefetch(b"", [b"a.md"])
        smb.give("a.md", (ALLOW, "alice"))
        first, second = (source.note_lists(file.fileno(), b"a.md") for _ in range(2))
    assert first[0].readers == {smb.house.sid("staff") + "@host"}
    assert second[0].readers == {smb.house.sid("alice")}


def test_names_that_smb_cannot_say_are_unreadable_with_their_reason(smb: SmbWorld) -> None:
    smb.serve(ACL_XATTR)
    names = {b"a:b.md": "character", b"caf\xe9.md": "UTF-8", b"q?.md": "character"}
    for name in names:
        with open(os.path.join(os.fsencode(smb.root), name), "wb") as file:  # noqa: PTH118
            file.write(f"# {WORD}\n".encode())
    smb.write("fine.md", (ALLOW, "S-1-1-0"))
    smb.world.sync()
    told = {os.fsencode(name): reason for name, reason in smb.trouble().items()}
    assert set(told) == set(names)
    assert all(word in told[name] for name, word in names.items())
    assert smb.readers("fine.md")


def test_a_descriptor_of_another_file_is_not_believed(smb: SmbWorld, tmp_path: Path) -> None:
    """The mount shows one tree, the share another: nothing of it is shown."""
    smb.serve(ACL_XATTR)
    smb.write("a.md", (ALLOW, "S-1-1-0"))
    copy = smb.house.exports / "copy"
    shutil.copytree(smb.root, copy)
    for share in ("notes", "notes-all$"):
        _, options = smb.house.server.shares[share]
        smb.house.server.share(share, copy, options)
    smb.world.configure("off", smb.house.shares["notes"]["acl"])
    smb.world.sync()
    assert smb.readers("a.md") == set()
    assert "another file" in smb.trouble()["a.md"]


def test_a_share_that_acts_as_one_user_is_closed(smb: SmbWorld, server: Samba) -> None:
    smb.serve({"admin users": "nobody"}, model="posix", admin_share="")
    note = smb.world.write("a.md", f"# A\n\nThe {WORD}.\n", 0o644)
    os.chown(note, smb.house.uid("alice"), 0)
    server.share("notes", smb.root, {"force user": "alice", "admin users": "nobody"})
    smb.world.configure("off", smb.house.shares["notes"]["acl"])
    report = smb.world.sync()
    assert report.unreadable == 1 and smb.readers("a.md") == set()
    assert "force user" in smb.trouble()["a.md"]
    (told,) = [one for one in findings(smb) if one.name == "smb one user"]
    assert not told.ok and "force user" in told.detail


def test_where_the_mount_invents_file_ids_the_text_comes_over_smb(smb: SmbWorld) -> None:
    """Then only size and time pair the mounted file with the list: text and list are both the server's."""
    smb.serve(ACL_XATTR)
    served = smb.write("a.md", (ALLOW, "alice"), text="# A\n\nThe text that is served.\n")
    mount = smb.house.exports / "mount"
    mount.mkdir()
    (mount / "a.md").write_text("# A\n\nThe text as mounted now.\n")
    os.utime(mount / "a.md", ns=(served.stat().st_mtime_ns,) * 2)

    def invents(path: Path) -> Mount:
        return Mount(os.fsencode(path), "cifs", "//nas/notes", frozenset({"noserverino"}))

    source = SmbSource(smb.world.settings.shares[0], smb.world.directory, look_at_mount=invents)
    source.check()
    files = Files()
    with opened_share(files, mount) as root:
        read = NoteReader(files, source, Clock.of("cifs"), 1_000).read(root, b"a.md")
    assert read.raw == served.read_bytes() != (mount / "a.md").read_bytes()
    smb.write("a.md", (ALLOW, "alice"), text="# A\n\nIt grew meanwhile, by a few words.\n")
    with opened_share(files, mount) as root, pytest.raises(NoteUnreadable, match="another file"):
        NoteReader(files, source, Clock.of("cifs"), 1_000).read(root, b"a.md")


def findings(smb: SmbWorld) -> list[Finding]:
    return diagnose(smb.world.settings.shares[0])


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
