"""Notes in trouble: each with its reason, its attempts and its time, and none at the cost of another."""

from __future__ import annotations

import errno
import os
import random
import shutil
import time
from collections import Counter

import pytest
from share_world import ShareWorld

from db.notes import MOST_PATH
from indexer import indexing
from indexer.indexing import FRUITLESS_RUNS
from indexer.walk import DEEPEST
from notewarden.terms import count_terms

LONG = "# Long\n\n" + "\n\n".join(f"## Part {n}\n\nWords of part {n}. " * 9 for n in range(20))


def test_a_note_too_large_is_skipped_and_not_looked_at_again(make_world) -> None:
    world = make_world(max_bytes=2_000)
    file = world.write("a.md", "# A\n\n" + "word " * 1_000)
    world.write("b.md")
    report = world.sync_all()
    assert (report.shares[0].skipped, report.shares[0].hashed, report.exit_code) == (1, 1, 0)
    assert "max_bytes" in world.trouble()["a.md"].reason
    time.sleep(0.1)
    world.sync()
    assert world.files.opened == []
    file.write_text("# A\n\nshort\n")
    assert world.sync().added == 1
    assert world.trouble() == {}


def test_a_note_that_grew_too_large_leaves_the_index(make_world) -> None:
    world = make_world(max_bytes=2_000)
    file = world.write("a.md")
    world.sync()
    file.write_text("# A\n\n" + "word " * 1_000)
    time.sleep(0.1)
    report = world.sync()
    assert (report.skipped, report.deleted, report.held) == (1, 0, 0)
    assert world.paths() == set()
    first = world.trouble()["a.md"]
    world.sync()
    assert world.files.opened == []
    assert world.trouble()["a.md"] == first
    world.whole()


def test_a_note_of_too_many_chunks_is_skipped_whole(make_world) -> None:
    world = make_world(max_chunks=5)
    file = world.write("a.md")
    world.sync()
    file.write_text(LONG)
    time.sleep(0.1)
    assert world.sync().skipped == 1
    assert (world.paths(), world.text("owner")) == (set(), "")
    assert "max_chunks" in world.trouble()["a.md"].reason
    world.sync()
    assert world.files.opened == []


def test_a_binary_is_skipped_with_its_reason_and_not_read_again(world: ShareWorld) -> None:
    (world.root / "a.md").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + bytes(range(256)) * 20)
    world.write("b.md")
    time.sleep(0.1)
    report = world.sync_all()
    assert (report.shares[0].skipped, report.exit_code) == (1, 0)
    assert world.trouble()["a.md"].reason
    report = world.sync_all()
    assert (report.shares[0].hashed, report.shares[0].skipped, world.files.opened) == (0, 1, [])


def test_trouble_goes_with_its_note(world: ShareWorld) -> None:
    file = world.write("a.md")
    (world.root / "a.md").write_bytes(bytes(range(256)) * 20)
    world.sync()
    assert world.trouble()
    file.unlink()
    world.sync()
    assert world.trouble() == {}


def test_a_transient_failure_is_pending_and_tried_again(world: ShareWorld) -> None:
    for number in range(5):
        world.write(f"{number}.md")
    world.embedder.poison = {"About": False}
    since = set()
    for attempt in range(1, 6):
        report = world.sync_all()
        assert (report.shares[0].pending, report.shares[0].parked, report.exit_code) == (5, 0, 6)
        if attempt <= FRUITLESS_RUNS:
            assert {one.attempts for one in world.trouble().values()} == {attempt}
        since.add(world.trouble()["0.md"].since)
    assert len(since) == 1
    world.embedder.poison = {}
    report = world.sync_all()
    assert (report.shares[0].added, report.shares[0].pending, report.exit_code) == (5, 0, 0)
    assert world.trouble() == {}


def test_a_model_that_does_nothing_is_left_alone_while_deletes_and_rights_go_on(world: ShareWorld) -> None:
    for number in range(40):
        world.write(f"{number}.md")
    world.sync()
    for number in range(20, 40):
        world.write(f"{number}.md", f"# About {number}\n\nsick words of {number}\n")
    world.embedder.poison = {"sick": False}
    for _ in range(FRUITLESS_RUNS):
        world.sync()
    calls: list[int] = []
    embed = world.embedder.embed_documents
    world.embedder.embed_documents = lambda texts: (calls.append(len(texts)), embed(texts))[1]  # type: ignore[method-assign,func-returns-value]
    (world.root / "1.md").chmod(0o600)
    (world.root / "2.md").unlink()
    world.write("new.md", "# New\n\nalso sick\n")
    report = world.sync_all()
    assert calls == [1]
    assert (report.shares[0].deleted, report.shares[0].acl_changed, report.shares[0].pending) == (1, 1, 21)
    assert world.readable("alice") == {f"{number}.md" for number in range(3, 40)} | {"0.md"}
    assert "in 3 runs in a row" in world.trouble()["39.md"].reason
    world.embedder.poison = {}
    report = world.sync_all()
    assert (report.shares[0].changed, report.shares[0].added, report.shares[0].pending) == (20, 1, 0)
    world.whole()


def test_a_note_on_which_the_model_breaks_down_keeps_no_other_back(world: ShareWorld) -> None:
    for number in range(12):
        world.write(f"{number:02d}.md", f"# N {number}\n\n{'crash' if number == 2 else 'word'} {number}\n")
    world.embedder.poison = {"crash": False}
    for _ in range(12):
        if len(world.paths()) == 11:
            break
        world.sync()
    assert world.paths() == {f"{number:02d}.md" for number in range(12) if number != 2}
    assert world.trouble().keys() == {"02.md"}


def test_only_failures_for_good_park_a_note(world: ShareWorld) -> None:
    file = world.write("a.md", "# A\n\npoison\n")
    world.write("b.md")
    world.embedder.poison = {"poison": False}
    for _ in range(4):
        assert world.sync().parked == 0
    world.embedder.poison = {"poison": True}
    assert [world.sync().parked for _ in range(3)] == [0, 0, 1]
    file.write_text("# A\n\nanother poison\n")
    assert [world.sync().parked for _ in range(3)] == [0, 0, 1]


def test_one_poison_note_costs_no_other(world: ShareWorld) -> None:
    for number in range(10):
        world.write(f"{number}.md")
    world.write("4b.md", "# Poison\n\npoison\n")
    world.embedder.poison = {"poison": True}
    report = world.sync_all()
    assert (report.shares[0].added, report.shares[0].pending) == (10, 1)
    world.whole()


def test_a_fault_of_ours_over_one_note_costs_no_other(
    world: ShareWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count(text: str, language: str) -> Counter[str]:
        if "stumbling" in text:
            raise RuntimeError
        return count_terms(text, language)

    monkeypatch.setattr(indexing, "count_terms", count)  # a fault where no input is known to make one
    world.write("a.md", "# A\n\nstumbling block\n")
    world.write("b.md", "# B\n\nfine\n")
    report = world.sync()
    assert (report.added, report.pending) == (1, 1)
    assert "making its rows failed (RuntimeError)" in world.trouble()["a.md"].reason


def test_a_language_that_nobody_knows_costs_nothing(world: ShareWorld) -> None:
    for number, said in enumerate(("5", "fr-CA", "it", "German", "x" * 400, "[a, b]")):
        world.write(f"{number}.md", f"---\nlang: {said}\n---\n# A\n\nDie Katze liegt auf dem Dach.\n")
    assert world.sync_all().exit_code == 0
    assert world.trouble() == {}
    world.whole()


def test_a_note_that_fails_for_good_is_parked_until_it_changes(world: ShareWorld) -> None:
    file = world.write("a.md", "# A\n\npoison\n")
    world.embedder.poison = {"poison": True}
    states = []
    for _ in range(4):
        report = world.sync()
        states.append((report.pending, report.parked))
    assert states == [(1, 0), (1, 0), (0, 1), (0, 1)]
    assert world.files.opened == []
    file.write_text("# A\n\nmore poison\n")
    assert world.sync().pending == 1
    assert world.trouble()["a.md"].attempts == 1
    file.write_text("# A\n\ncured\n")
    assert (world.sync().added, world.trouble()) == (1, {})


def test_an_indexed_note_is_parked_too_and_its_rights_go_on_counting(world: ShareWorld) -> None:
    file = world.write("a.md", "# A\n\ngood words\n")
    world.sync()
    file.write_text("# A\n\npoison\n")
    world.embedder.poison = {"poison": True}
    tried = 0

    def count(*_: object) -> None:
        nonlocal tried
        tried += 1

    for _ in range(3):
        world.sync(progress=count)
    assert (tried, world.trouble()["a.md"].state) == (3, "parked")
    assert "good words" in world.text("alice")
    world.sync(progress=count)
    assert (tried, world.trouble()["a.md"].attempts) == (3, 3)
    file.chmod(0o600)
    world.sync()
    assert world.readable("alice") == set()
    file.write_text("# A\n\nnew words\n")
    world.sync()
    assert "new words" in world.text("owner")
    assert world.trouble() == {}


def test_a_refused_row_costs_no_other_note_of_its_folder(world: ShareWorld) -> None:
    """The database refuses the first note of a new folder; the ids learnt meanwhile went back with it."""
    for number in range(3):
        world.write(f"new/{number}.md", f"# Title {number}\n\nwords of number {number}\n")
    with world.database.owner() as conn:
        conn.execute("alter table nw.note_chunk add constraint none check (content !~ 'number 0')")
    report = world.sync()
    assert (report.added, report.pending) == (2, 1)
    assert "SQLSTATE 23514" in world.trouble()["new/0.md"].reason
    assert world.readable("alice") == {"new/1.md", "new/2.md"}
    world.whole()


def test_a_path_longer_than_the_database_keeps_costs_no_other_note(world: ShareWorld) -> None:
    """Names that hardly compress, as of hashes; who makes such folders must not stop every poll."""
    chance = random.Random(8)
    names = ["".join(chance.choices([chr(0x4E00 + n) for n in range(20_000)], k=80)) for _ in range(12)]
    folder = "/".join(names)
    deep = os.open(world.root, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=deep)
        above, deep = deep, os.open(name, os.O_RDONLY, dir_fd=deep)
        os.close(above)
    os.close(os.open("deep.md", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=deep))
    os.symlink("deep.md", "link.md", dir_fd=deep)
    os.close(deep)
    world.write("a.md")
    report = world.sync()
    assert (report.status, report.added, world.paths()) == ("ok", 1, {"a.md"})
    (told,) = world.trouble()
    assert folder.startswith(told)
    assert 0 < len(os.fsencode(told)) <= MOST_PATH < len(os.fsencode(folder))
    world.write("b.md")
    world.files.fail(os.fsencode(folder), errno.EIO)
    assert (world.sync().added, list(world.trouble())) == (1, [told])
    world.files.heal()
    shutil.rmtree(world.root / names[0])
    world.sync()
    assert (world.trouble(), world.paths()) == ({}, {"a.md", "b.md"})


def test_folders_without_end_cost_no_other_note(world: ShareWorld) -> None:
    """More than 1,024 of them, each with a list of its own, were more than the row of an audience holds: the
    poll ended there, and every poll after it."""
    world.write("a.md")
    world.write("/".join("d" * 2 * DEEPEST) + "/deep.md")
    world.write("/".join("d" * DEEPEST) + "/last.md")
    report = world.sync()
    assert (report.status, report.added, report.unreadable) == ("ok", 2, 1)
    ((folder, trouble),) = world.trouble().items()
    assert (folder.count("d"), str(DEEPEST) in trouble.reason) == (DEEPEST + 1, True)
    shutil.rmtree(world.root / "d")
    world.sync()
    assert (world.trouble(), world.paths()) == ({}, {"a.md"})


def test_stopping_leaves_what_is_done_and_the_rest_to_the_next_run(world: ShareWorld) -> None:
    for number in range(100):
        world.write(f"{number}.md")
    done = []
    world.sync(progress=done.append, stopped=lambda: bool(done))
    assert 0 < len(world.paths()) < 100
    world.whole()
    world.sync()
    assert len(world.paths()) == 100
