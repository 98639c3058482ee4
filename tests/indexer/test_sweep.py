"""Permissions as they change on disk: at once where they close, with the text where they open."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest
from faulty_files import OPEN_NOTE, READ, STAT
from share_world import ALICE, BOB, TEAM, ShareWorld


def counts(world: ShareWorld) -> list[tuple[int, int]]:
    return world.rows("select chunk_id, xmin::text::bigint from nw.note_chunk order by 1")


def test_chmod_alone_changes_the_readers_and_nothing_else(world: ShareWorld) -> None:
    file = world.write("a.md")
    world.write("b.md")
    world.sync()
    before = world.rows("select chunk_id, content from nw.note_chunk order by 1")
    time.sleep(0.1)
    file.chmod(0o600)
    report = world.sync_all()
    assert (report.shares[0].acl_changed, report.shares[0].changed, report.chunks_embedded) == (1, 0, 0)
    assert world.rows("select chunk_id, content from nw.note_chunk order by 1") == before
    assert (world.readable("alice"), world.readable("owner")) == ({"b.md"}, {"a.md", "b.md"})
    file.chmod(0o644)
    assert world.sync().acl_changed == 1
    assert world.readable("alice") == {"a.md", "b.md"}
    world.whole()


def test_chmod_of_a_folder_edits_one_row_and_rewrites_no_chunk(world: ShareWorld) -> None:
    for number in range(4):
        world.write(f"hr/deep/{number}.md")
    world.write("it/a.md")
    world.sync()
    audience, rows = world.note("hr/deep/0.md")["audience_id"], counts(world)
    (world.root / "hr").chmod(0o700)
    report = world.sync_all()
    assert (report.shares[0].acl_changed, report.shares[0].hashed, report.chunks_embedded) == (4, 0, 0)
    assert world.note("hr/deep/0.md")["audience_id"] == audience
    assert counts(world) == rows
    assert world.readable("alice") == {"it/a.md"}
    assert world.readable("owner") == {"it/a.md", *(f"hr/deep/{n}.md" for n in range(4))}
    (world.root / "hr").chmod(0o711)
    assert world.sync().acl_changed == 4
    assert "hr/deep/3.md" in world.readable("alice")


def test_half_a_folder_changed(world: ShareWorld) -> None:
    for number in range(6):
        world.write(f"hr/{number}.md")
    world.sync()
    for number in range(3):
        (world.root / f"hr/{number}.md").chmod(0o600)
    assert world.sync().acl_changed == 3
    assert world.readable("alice") == {f"hr/{n}.md" for n in range(3, 6)}
    world.whole()


def test_notes_that_close_into_a_group_which_opens_stay_closed(world: ShareWorld) -> None:
    """One row of closed notes is about to be opened, while others of the folder close: they may not meet."""
    for number in range(4):
        world.write(f"hr/open {number}.md", mode=0o644)
    for number in range(3):
        world.write(f"hr/shut {number}.md", mode=0o600)
    world.sync()
    for number in range(2):
        (world.root / f"hr/open {number}.md").chmod(0o600)
    for number in range(3):
        (world.root / f"hr/shut {number}.md").chmod(0o644)
    assert world.sync().acl_changed == 5
    assert world.readable("alice") == {"hr/open 2.md", "hr/open 3.md", *(f"hr/shut {n}.md" for n in range(3))}
    world.whole()
    assert world.sync().acl_changed == 0


def test_a_secret_that_is_cut_never_goes_out_under_the_wider_rights(world: ShareWorld) -> None:
    file = world.write("a.md", "# A\n\nthe secret word\n", mode=0o600)
    world.sync()
    file.write_text("# A\n\nonly harmless words\n")
    file.chmod(0o644)
    world.embedder.poison = {"harmless": False}
    report = world.sync()
    assert (report.pending, report.changed) == (1, 0)
    assert world.readable("alice") == set()
    assert "secret" in world.text("owner")
    world.sync()
    assert world.text("alice") == ""
    world.embedder.poison = {}
    world.sync()
    assert "harmless" in world.text("alice")
    assert "secret" not in world.text("owner")


def test_narrower_rights_count_at_once_also_while_the_model_fails(world: ShareWorld) -> None:
    file = world.write("a.md", "# A\n\nfirst words\n")
    world.sync()
    file.write_text("# A\n\nsecond words\n")
    file.chmod(0o600)
    world.embedder.poison = {"second": False}
    world.sync()
    assert world.readable("alice") == set()
    assert "first words" in world.text("owner")


def test_a_note_whose_rights_cannot_be_read_is_hidden_and_comes_back(world: ShareWorld) -> None:
    world.write("a.md")
    world.write("b.md")
    world.sync()
    time.sleep(0.1)
    os.utime(world.root / "a.md")
    world.files.fail(b"a.md", errno.EIO, STAT)
    report = world.sync_all()
    assert (report.exit_code, report.shares[0].unreadable, report.shares[0].deleted) == (6, 1, 0)
    assert world.readable("owner") == {"b.md"}
    assert world.paths() == {"a.md", "b.md"}
    world.files.heal()
    assert world.sync_all().exit_code == 0
    assert world.readable("alice") == {"a.md", "b.md"}
    assert world.trouble() == {}


@pytest.mark.parametrize("error", [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOENT])
@pytest.mark.parametrize("kind", [OPEN_NOTE, READ])
def test_a_changed_note_that_cannot_be_read_shows_nothing(world: ShareWorld, error: int, kind: str) -> None:
    file = world.write("a.md", "# A\n\nold\n")
    world.write("b.md")
    world.sync()
    file.write_text("# A\n\nrenewed\n")
    world.files.fail(b"a.md", error, kind)
    assert world.sync().deleted == 0
    assert world.readable("owner") == {"b.md"}
    world.files.heal()
    world.sync()
    assert "renewed" in world.text("alice")


def test_a_new_note_that_cannot_be_read_is_in_the_ledger_and_tried_again(world: ShareWorld) -> None:
    world.write("a.md")
    world.files.fail(b"a.md", errno.EACCES, OPEN_NOTE)
    world.sync()
    world.sync()
    trouble = world.trouble()["a.md"]
    assert (trouble.state, trouble.attempts) == ("unreadable", 2)
    assert "may not read it" in trouble.reason
    world.files.heal()
    assert world.sync().added == 1
    assert world.trouble() == {}


def test_group_rights_and_named_owners(world: ShareWorld, as_root: None) -> None:
    for name, uid, gid, mode in [
        ("alices", ALICE, 0, 0o600),
        ("teams", 0, TEAM, 0o640),
        ("all but the team", 0, TEAM, 0o604),
        ("all but bob", BOB, TEAM, 0o044),
    ]:
        file = world.write(f"{name}.md")
        os.chown(file, uid, gid)
        file.chmod(mode)
    world.sync()
    assert world.readable("alice") == {"alices.md", "teams.md", "all but bob.md"}
    assert world.readable("bob") == {"teams.md"}


def test_a_group_that_loses_its_name_closes_what_it_was_denied(world: ShareWorld, as_root: None) -> None:
    """A deny whose members nobody can tell any more matches everybody, from the next sync on."""
    file = world.write("a.md")
    os.chown(file, 0, TEAM)
    file.chmod(0o604)
    world.sync()
    assert world.readable("owner") == {"a.md"}
    world.people.write_text(world.people.read_text().replace(f'sids = ["S-1-22-2-{TEAM}"]', ""))
    world.sync()
    assert world.readable("alice") == set()


def test_a_share_that_declares_readers_is_closed_to_others(make_world) -> None:
    world = make_world(acl={"source": "posix", "share_readers": ["alice"]})
    world.write("a.md")
    world.sync()
    assert (world.readable("alice"), world.readable("bob")) == ({"a.md"}, set())


def test_a_share_taken_out_of_the_configuration_serves_nobody(world: ShareWorld) -> None:
    world.write("a.md")
    world.sync()
    other = world.folder / "other"
    other.mkdir()
    world.settings = world._make(
        share=[{"name": "other", "path": other, "acl": {"source": "posix"}}],
        directory={"source": "file", "file": world.people},
    )
    world.restart()
    world.sync()
    assert world.readable("owner") == set()
    world.configure()
    world.sync()
    assert world.readable("alice") == {"a.md"}


def test_nothing_outside_is_read_while_folders_and_links_trade_places(
    world: ShareWorld, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("# Outside\n\nforbidden words\n")
    world.write("in/a.md", "# Inside\n\ninner words\n")
    real, aside = world.root / "in", tmp_path / "aside"
    done = threading.Event()

    def trade() -> None:
        while not done.is_set():
            real.rename(aside)
            real.symlink_to(outside)
            time.sleep(0.0005)
            real.unlink()
            aside.rename(real)
            time.sleep(0.0005)

    thread = threading.Thread(target=trade)
    thread.start()
    try:
        for _ in range(25):
            world.sync(full=True)
            assert "forbidden" not in world.text("owner")
            assert not any("forbidden" in text for text in world.embedder.texts)
    finally:
        done.set()
        thread.join()
    world.sync()
    world.sync()
    assert "inner words" in world.text("owner")


def test_a_note_swapped_for_a_link_is_not_followed(world: ShareWorld, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n\nforbidden words\n")
    file = world.write("a.md", "# A\n\nold words\n")
    world.write("b.md")
    world.sync()
    file.write_text("# A\n\nedited words\n")
    spare = tmp_path / "spare.md"

    def swap(path: bytes) -> None:
        if path == b"b.md" and not spare.exists():
            file.rename(spare)
            file.symlink_to(secret)

    os.utime(world.root / "b.md")
    world.files.before_read = swap
    world.sync()
    world.files.heal()
    world.sync()
    assert "forbidden" not in world.text("owner")
    assert world.paths() == {"b.md"}
