"""The hint may only say "unchanged", and only when it is old enough to know."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_files import FaultyFiles

from acl.compile import Entry, Meaning, compile_entries, quarantine
from acl.model import AccessList
from acl.sid import EVERYONE
from indexer.files import Files
from indexer.hint import Clock, hint_of, inode_of, size_of
from indexer.reading import NoteGone, NoteMoving, NoteReader, NoteTooLarge, modified_at
from notewarden.errors import NoteUnreadable

SECOND = 1_000_000_000
COARSE = Clock(2 * SECOND, local=False)
OPEN = compile_entries([Entry("allow", EVERYONE, "all")], Meaning("host", "x", "note"), 1, raw=b"open")
SHUT = quarantine(Meaning("host", "x", "note"), "shut")


class Lists:
    """A source whose one list a test may change at any time."""

    by_folder = False
    ctime_tells = True

    def __init__(self) -> None:
        self.now = OPEN
        self.at_each: Callable[[], None] = lambda: None

    def check(self) -> None: ...

    def share_lists(self) -> tuple[AccessList, ...]:
        return (OPEN,)

    def parent_lists(self, fd: int, folder: bytes) -> tuple[AccessList, ...]:
        return ()

    def note_lists(self, fd: int, path: bytes) -> tuple[AccessList, ...]:
        found = (self.now,)
        self.at_each()
        return found


@pytest.fixture
def note(tmp_path: Path) -> Path:
    file = tmp_path / "a.md"
    file.write_text("first words")
    return file


def read(
    note: Path, clock: Clock, *, files: Files | None = None, lists: Lists | None = None, most: int = 1_000
):
    reader = NoteReader(files or Files(), lists or Lists(), clock, most)
    root = os.open(note.parent, os.O_RDONLY)
    try:
        return reader.read(root, os.fsencode(note.name))
    finally:
        os.close(root)


def test_a_hint_tells_any_change(note: Path) -> None:
    seen = [hint_of(note.stat())]
    for change in (
        lambda: note.write_text("other words"),
        lambda: note.write_text("longer words than before"),
        lambda: os.utime(note, ns=(0, 0)),
        lambda: note.chmod(0o600),
        lambda: (note.rename(note.with_name("b")), note.write_text("first words")),
    ):
        time.sleep(0.02)
        change()
        seen.append(hint_of(note.stat()))
    assert len(set(seen)) == len(seen)
    assert inode_of(seen[-1]) == note.stat().st_ino
    assert size_of(seen[-1]) == len("first words")


def test_a_hint_holds_extreme_times(note: Path) -> None:
    for seconds in (-(2**31), 0, 2**33):
        os.utime(note, (seconds, seconds))
        info = note.stat()
        assert inode_of(hint_of(info)) == info.st_ino
        assert modified_at(info.st_mtime_ns).tzinfo is not None


def test_only_known_local_file_systems_have_fine_clocks() -> None:
    assert Clock.of("ext4").step_ns < SECOND
    assert Clock.of("ext4").local
    for kind in ("cifs", "nfs", "vfat", "fuse.sshfs", "9p", "", "ext9"):
        assert Clock.of(kind) == COARSE


def test_nothing_younger_than_the_step_is_trusted(note: Path) -> None:
    info = note.stat()
    for clock in (COARSE, Clock.of("ext4")):
        assert not clock.trusts(info, info.st_ctime_ns)
        assert not clock.trusts(info, info.st_ctime_ns + clock.step_ns - 1)
        assert clock.trusts(info, info.st_ctime_ns + clock.step_ns)
        assert not clock.trusts(info, info.st_ctime_ns - 3_600 * SECOND)


def test_a_time_set_to_the_future_matters_only_where_ctime_is_another_machines(note: Path) -> None:
    later = time.time_ns() + 3_600 * SECOND
    os.utime(note, ns=(later, later))
    now = note.stat().st_ctime_ns + 10 * SECOND
    assert Clock.of("ext4").trusts(note.stat(), now)
    assert not COARSE.trusts(note.stat(), now)


def test_a_fresh_note_is_read_with_a_hint_to_trust_where_the_clock_is_fine(note: Path) -> None:
    assert read(note, Clock.of("ext4")).state.hint_trusted


def test_a_fresh_note_on_a_coarse_clock_is_read_and_not_trusted(note: Path) -> None:
    """A second save within the same tick leaves the same hint: only the hash can find it."""
    files = FaultyFiles(note.parent.resolve(), step_ns=2 * SECOND)
    first = read(note, COARSE, files=files).state
    note.write_text("other words")
    second = read(note, COARSE, files=files).state
    assert not first.hint_trusted
    assert first.content_hash != second.content_hash


def test_lists_that_change_while_the_text_is_read_never_pair_with_it(note: Path) -> None:
    lists = Lists()
    flips = iter([OPEN, SHUT] * 10)
    lists.at_each = lambda: setattr(lists, "now", next(flips))
    lists.now = SHUT
    with pytest.raises(NoteMoving) as caught:
        read(note, Clock.of("ext4"), lists=lists)
    assert caught.value.lists is None


def test_a_change_of_lists_that_settles_is_read_again(note: Path) -> None:
    lists = Lists()
    turns = iter([SHUT])
    lists.at_each = lambda: setattr(lists, "now", next(turns, SHUT))
    assert read(note, Clock.of("ext4"), lists=lists).lists == (SHUT,)


def test_text_that_never_stands_still_keeps_its_lists(note: Path) -> None:
    files = FaultyFiles(note.parent.resolve())
    files.after_read = lambda path: note.write_text(str(time.time_ns()))
    with pytest.raises(NoteMoving) as caught:
        read(note, Clock.of("ext4"), files=files)
    assert caught.value.lists == (OPEN,)


def test_limits_and_faults_by_their_names(note: Path) -> None:
    assert read(note, COARSE, most=len("first words")).raw == b"first words"
    with pytest.raises(NoteTooLarge):
        read(note, COARSE, most=len("first words") - 1)
    note.rename(note.with_name("b.md"))
    with pytest.raises(NoteGone):
        read(note, COARSE)
    note.symlink_to(note.with_name("b.md"))
    with pytest.raises(NoteUnreadable) as caught:
        read(note, COARSE)
    assert "link" in str(caught.value)
    note.unlink()
    note.mkdir()
    with pytest.raises(NoteUnreadable):
        read(note, COARSE)
