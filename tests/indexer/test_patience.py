"""A read that never comes back hangs no poll, and costs no other share or note."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty_files import LOOK, OPEN_FOLDER, READ, SCAN
from share_world import ShareWorld

from indexer import confirm
from indexer.confirm import Confirmation
from indexer.patience import Patience
from notewarden.errors import ShareUnavailable


@pytest.fixture
def hanging(world: ShareWorld) -> Iterator[ShareWorld]:
    """The share, whose hanging reads come back when the test is over."""
    yield world
    world.files.heal()


def test_it_returns_raises_and_reuses_its_thread() -> None:
    patience = Patience("notes")
    threads = {patience.call(threading.get_ident) for _ in range(10)}
    assert len(threads) == 1
    with pytest.raises(ZeroDivisionError):
        patience.call(lambda: 1 // 0)
    assert patience.call(lambda: patience.call(lambda: 7)) == 7
    patience.close()


def test_work_that_ticks_may_last() -> None:
    patience = Patience("notes", 0.2)

    def work() -> str:
        for _ in range(5):
            time.sleep(0.1)
            patience.tick()
        return "done"

    assert patience.call(work) == "done"


def test_what_comes_too_late_is_discarded() -> None:
    patience, release, discarded = Patience("notes", 0.05), threading.Event(), threading.Event()
    with pytest.raises(TimeoutError):
        patience.call(lambda: release.wait(30), discard=lambda _: discarded.set())
    assert patience.call(lambda: "goes on") == "goes on"
    release.set()
    assert discarded.wait(10)


def test_many_stuck_reads_are_a_dead_file_system_until_they_return() -> None:
    patience, release = Patience("notes", 0.02), threading.Event()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            patience.call(lambda: release.wait(30))
    with pytest.raises(ShareUnavailable, match="does not answer"):
        patience.call(lambda: release.wait(30))
    before = threading.active_count()
    for _ in range(5):
        with pytest.raises(ShareUnavailable):
            patience.call(lambda: 1)
    assert threading.active_count() <= before
    release.set()
    for _ in range(200):
        try:
            assert patience.call(lambda: 1) == 1
            break
        except ShareUnavailable:
            time.sleep(0.02)
    else:
        raise AssertionError("it stayed dead")


def test_a_stop_does_not_wait_for_a_dead_mount() -> None:
    patience, release = Patience("notes", 60, stopped=lambda: True), threading.Event()
    began = time.monotonic()
    with pytest.raises(ShareUnavailable, match="Stopped"):
        patience.call(lambda: release.wait(30))
    assert time.monotonic() - began < 20
    release.set()


def test_python_that_does_not_end_is_broken_off() -> None:
    patience, beats = Patience("notes", 0.1), []

    def forever() -> None:
        while True:
            beats.append(1)
            time.sleep(0.001)

    with pytest.raises(TimeoutError):
        patience.call(forever, breakable=True)
    assert patience.call(lambda: 1) == 1
    for _ in range(500):
        count = len(beats)
        time.sleep(0.02)
        if len(beats) == count:
            return
    raise AssertionError("the thread goes on")


def test_a_hanging_note_is_unreadable_and_costs_no_other(hanging: ShareWorld) -> None:
    for number in range(5):
        hanging.write(f"{number}.md")
    hanging.sync()
    hanging.write("1.md", "# New\n\nother words\n")
    hanging.write("5.md")
    hanging.files.hang(b"1.md", READ)
    report = hanging.sync(patience_s=0.2)
    assert (report.status, report.added, report.unreadable, report.deleted) == ("ok", 1, 1, 0)
    assert hanging.readable("alice") == {"0.md", "2.md", "3.md", "4.md", "5.md"}
    hanging.files.heal()
    assert hanging.sync().changed == 1
    assert "other words" in hanging.text("alice")


def test_a_hanging_folder_is_served_on(hanging: ShareWorld) -> None:
    names = {f"docs/{number}.md" for number in range(5)} | {"a.md"}
    for name in names:
        hanging.write(name)
    hanging.sync()
    hanging.files.hang(b"docs", SCAN)
    hanging.write("b.md")
    report = hanging.sync(patience_s=0.2)
    assert (report.status, report.added, report.deleted, report.held) == ("ok", 1, 0, 0)
    assert hanging.readable("alice") == names | {"b.md"}
    assert "did not end in time" in hanging.trouble()["docs"].reason


@pytest.mark.parametrize("kind", [OPEN_FOLDER, SCAN])
def test_a_hanging_root_makes_the_share_unavailable(hanging: ShareWorld, kind: str) -> None:
    hanging.write("a.md")
    hanging.sync()
    if kind == OPEN_FOLDER:  # opening the root itself
        released, opener = hanging.files.released, type(hanging.files).open_root

        def hang(root: object) -> int:
            released.wait(60)
            return opener(hanging.files, root)

        hanging.files.open_root = hang  # type: ignore[method-assign]
    else:
        hanging.files.hang(b"", kind)
    report = hanging.sync(patience_s=0.2)
    assert (report.status, report.deleted) == ("unavailable", 0)
    assert hanging.readable("alice") == {"a.md"}


def test_a_share_whose_reads_all_hang_gives_up_soon(hanging: ShareWorld) -> None:
    for number in range(30):
        hanging.write(f"{number}.md")
    hanging.files.hang(b"", READ)
    began = time.monotonic()
    assert hanging.sync(patience_s=0.2).status == "unavailable"
    assert time.monotonic() - began < 20
    hanging.files.heal()
    for _ in range(100):
        if (report := hanging.sync()).status == "ok":
            break
        time.sleep(0.05)
    assert report.added == 30


def test_no_descriptor_is_left_open(hanging: ShareWorld) -> None:
    for number in range(4):
        hanging.write(f"docs{number}/a.md")
    hanging.sync()
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    hanging.files.hang(b"docs1", SCAN)
    hanging.sync(patience_s=0.1)
    hanging.files.heal()
    for _ in range(200):
        if sum(1 for _ in Path("/proc/self/fd").iterdir()) <= before:
            return
        time.sleep(0.02)
    raise AssertionError("a late folder stayed open")


def test_cutting_that_does_not_end_parks_the_note(world: ShareWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    from indexer import indexing

    cut = indexing.chunk

    def chunk(raw: bytes, *rest: object, **options: object) -> object:
        while b"endless" in raw:
            time.sleep(0.001)
        return cut(raw, *rest, **options)

    monkeypatch.setattr(indexing, "chunk", chunk)
    monkeypatch.setattr(indexing, "_CUT_S", 0.1)
    world.write("a.md", "# A\n\nendless\n")
    world.write("b.md")
    assert [(report := world.sync()).parked for _ in range(3)] == [0, 0, 1]
    assert report.status == "ok"
    assert world.readable("alice") == {"b.md"}
    assert "did not end" in world.trouble()["a.md"].reason


def test_notes_that_cannot_be_seen_are_hidden_before_the_whole_share_closes(world: ShareWorld) -> None:
    names = {f"docs/{number}.md" for number in range(3)} | {"a.md"}
    for name in names:
        world.write(name)
    world.sync()
    world.files.fail(b"docs", errno.EIO, SCAN)
    world.rows("update nw.share set swept_at = swept_at - max_age * 0.7 returning 1")
    world.sync()
    assert world.readable("alice") == names
    world.rows("update nw.share set swept_at = swept_at - max_age * 0.1 returning 1")
    report = world.sync()
    assert (report.deleted, report.held, report.unreadable) == (0, 0, 1)
    assert world.readable("alice") == {"a.md"}
    assert world.one("select swept_at > now() - interval '1 minute' from nw.share")
    assert world.paths() == names
    world.files.heal()
    world.sync()
    assert world.readable("alice") == names


def test_a_confirmation_does_not_wait_for_a_dead_mount(
    hanging: ShareWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        hanging.write(f"{number}.md")
    hanging.sync()
    for number in range(25):
        (hanging.root / f"{number}.md").unlink()
    assert hanging.sync().held == 25
    monkeypatch.setattr(confirm, "Patience", lambda name: Patience(name, 0.2))
    hanging.files.hang(b"", LOOK)
    with pytest.raises(ShareUnavailable):
        Confirmation(hanging.database, hanging.directory, hanging.files).confirm(hanging.settings.shares[0])
    assert len(hanging.paths()) == 30
