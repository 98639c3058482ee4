"""A moved note is a move: its rows, its id and its readers go along, and nothing of the old path is left."""

from __future__ import annotations

import time

from share_world import ShareWorld


def test_a_renamed_folder_moves_every_note_once(world: ShareWorld) -> None:
    for number in range(500):
        world.write(f"old name/part {number % 5}/note {number}.md")
    world.sync()
    ids = dict(world.rows("select note_id, content_hash from nw.note"))
    (world.root / "old name").rename(world.root / "new name")
    report = world.sync_all()
    share = report.shares[0]
    assert (share.moved, share.added, share.deleted, share.changed, share.acl_changed) == (500, 0, 0, 0, 0)
    assert len(world.embedder.texts) == len(set(world.embedder.texts)) <= 500
    assert world.paths() == {f"new name/part {n % 5}/note {n}.md" for n in range(500)}
    assert dict(world.rows("select note_id, content_hash from nw.note")) == ids
    assert world.readable("alice") == world.paths()
    world.whole()
    time.sleep(0.1)
    again = world.sync_all()
    assert (again.shares[0].hashed, again.shares[0].moved, again.chunks_embedded) == (0, 0, 0)


def test_a_move_counts_once_also_while_the_model_fails(world: ShareWorld) -> None:
    file = world.write("a.md")
    world.sync()
    file.rename(world.root / "b.md")
    world.embedder.poison = {"About": False}
    report = world.sync()
    assert (report.moved, report.added, report.deleted, report.pending) == (1, 0, 0, 1)
    assert world.readable("alice") == {"b.md"}
    world.embedder.poison = {}
    report = world.sync()
    assert (report.moved, report.changed, report.pending) == (0, 0, 0)
    world.whole()


def test_attempts_and_since_of_a_moved_note_are_kept(world: ShareWorld) -> None:
    file = world.write("a.md")
    world.sync()
    file.rename(world.root / "b.md")
    world.embedder.poison = {"About": True}
    world.sync()
    first = world.trouble()["b.md"]
    world.sync()
    second = world.trouble()["b.md"]
    assert (first.attempts, second.attempts, second.since) == (1, 2, first.since)


def test_two_names_swapped(world: ShareWorld) -> None:
    one = world.write("one.md", "# One\n\nfirst text\n")
    two = world.write("two.md", "# Two\n\nsecond text\n", mode=0o600)
    world.sync()
    one.rename(world.root / "three.md")
    two.rename(one)
    (world.root / "three.md").rename(two)
    report = world.sync()
    assert (report.added, report.deleted) == (0, 0)
    assert world.readable("alice") == {"two.md"}
    assert "first" in world.text("alice")
    assert "second" not in world.text("alice")
    world.whole()


def test_renamed_and_edited_at_once(world: ShareWorld) -> None:
    file = world.write("a.md", "# A\n\nold words\n")
    world.sync()
    note = world.note("a.md")
    file.rename(world.root / "b.md")
    world.write("b.md", "# A\n\nother and longer words\n")
    report = world.sync()
    assert (report.moved, report.added, report.deleted, report.changed) == (1, 0, 0, 0)
    assert world.note("b.md")["note_id"] == note["note_id"]
    assert "other and longer" in world.text("alice")
    world.whole()


def test_a_new_note_with_the_file_id_of_a_deleted_one_is_a_new_note(world: ShareWorld) -> None:
    file = world.write("a.md", "# A\n\nold words\n")
    world.write("c.md")
    world.sync()
    for attempt in range(50):  # until the file system gives the id again; some never do
        number = file.stat().st_ino
        file.unlink()
        file = world.write(f"b{attempt}.md", "# B\n\nother words\n")
        if file.stat().st_ino == number:
            break
    report = world.sync()
    assert (report.moved, report.added, report.deleted) == (0, 1, 1)
    assert "old words" not in world.text("alice")
    world.whole()


def test_a_copy_is_a_note_of_its_own(world: ShareWorld) -> None:
    file = world.write("a.md", "# Same\n\nsame text\n")
    world.sync()
    world.write("copy.md", file.read_text(), mode=0o600)
    report = world.sync()
    assert (report.added, report.moved, report.deleted) == (1, 0, 0)
    assert (world.readable("alice"), world.readable("owner")) == ({"a.md"}, {"a.md", "copy.md"})
    world.whole()


def test_twins_of_equal_text_keep_their_own_readers(world: ShareWorld) -> None:
    world.write("public/a.md", "# Same\n\nsame text\n")
    world.write("private/a.md", "# Same\n\nsame text\n", mode=0o600)
    world.sync()
    assert world.readable("alice") == {"public/a.md"}
    assert world.readable("owner") == {"public/a.md", "private/a.md"}
    (world.root / "private" / "a.md").rename(world.root / "public" / "b.md")
    report = world.sync()
    assert (report.moved, report.added, report.deleted) == (1, 0, 0)
    assert world.readable("alice") == {"public/a.md"}


def test_only_the_case_of_a_name_changed(world: ShareWorld) -> None:
    file = world.write("readme.md")
    world.sync()
    file.rename(world.root / "README.md")
    report = world.sync()
    assert (report.moved, report.added, report.deleted) == (1, 0, 0)
    assert world.readable("alice") == {"README.md"}


def test_a_moved_note_keeps_its_id_and_its_own_rights(world: ShareWorld) -> None:
    file = world.write("closed/a.md", mode=0o600)
    world.write("open/b.md")
    world.sync()
    note = world.note("closed/a.md")
    file.rename(world.root / "open" / "a.md")
    assert world.sync().moved == 1
    assert world.note("open/a.md")["note_id"] == note["note_id"]
    assert (world.readable("alice"), world.readable("owner")) == ({"open/b.md"}, {"open/a.md", "open/b.md"})


def test_a_note_replaced_by_a_looser_one_never_shows_the_old_text(world: ShareWorld) -> None:
    file = world.write("a.md", "# A\n\nthe secret\n", mode=0o600)
    world.sync()
    file.unlink()
    world.write("a.md", "# A\n\nthe announcement\n", mode=0o644)
    world.embedder.poison = {"announcement": False}
    world.sync()
    assert (world.text("alice"), "the secret" in world.text("owner")) == ("", True)
    world.embedder.poison = {}
    world.sync()
    assert "announcement" in world.text("alice")
    assert "secret" not in world.text("owner")


def test_a_note_moved_over_another_takes_its_place(world: ShareWorld) -> None:
    secret = world.write("a.md", "# A\n\nthe secret\n", mode=0o600)
    world.write("b.md", "# B\n\nthe announcement\n")
    world.sync()
    secret.rename(world.root / "b.md")
    world.sync()
    assert world.paths() == {"b.md"}
    assert world.readable("alice") == set()
    assert "the secret" in world.text("owner")
    assert "announcement" not in world.text("owner")
    world.whole()
