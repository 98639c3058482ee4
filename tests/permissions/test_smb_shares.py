"""A share on a real Samba through sync and answers: what changes, moves, hides, and cannot be told apart."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.samba import ACL_XATTR
from support.smb_share import ALLOW, DENY, WORD, SmbWorld

from acl.mounts import Mount
from acl.sources.smb.source import SmbSource
from indexer.files import Files
from indexer.hint import Clock
from indexer.identity import opened_share
from indexer.reading import NoteReader
from notewarden.errors import NoteUnreadable


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
