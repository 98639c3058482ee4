"""`status` while an index is made: how many of the notes seen have rows, until all have."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from share_world import MoodyEmbedder, ShareWorld

from indexer.context import Progress
from indexer.status import Status, read_status
from indexer.statustext import as_text

NOTES = 100


def status(world: ShareWorld) -> Status:
    with world.database.owner() as conn:
        return read_status(conn, world.settings)


@dataclass
class Watcher:
    """Reads the status whenever the run tells its progress, and may end the run after some steps."""

    world: ShareWorld
    stop_after: int = 1_000
    seen: list[tuple[int, float]] = field(default_factory=list)  # notes done, coverage then
    texts: list[str] = field(default_factory=list)

    def look(self, progress: Progress) -> None:
        found = status(self.world)
        self.seen.append((progress.done, found.shares[0].coverage))
        self.texts.append(as_text(found))

    def is_over(self) -> bool:
        return len(self.seen) >= self.stop_after

    def sync(self) -> None:
        self.world.sync_all(progress=self.look, stopped=self.is_over)


@pytest.fixture
def full(world: ShareWorld) -> ShareWorld:
    for number in range(NOTES):
        world.write(f"{number}.md")
    return world


def test_a_first_index_is_covered_as_far_as_it_is(full: ShareWorld) -> None:
    watcher = Watcher(full)
    watcher.sync()
    assert len(watcher.seen) > 2
    assert [coverage for _, coverage in watcher.seen] == [done / NOTES for done, _ in watcher.seen]
    done = watcher.seen[0][0]
    assert f"Coverage: notes: {done} of 100 notes are indexed\n" in watcher.texts[0]
    assert status(full).shares[0].coverage == 1.0
    assert "Coverage:" not in as_text(status(full))


def test_files_that_are_skipped_keep_nothing_from_being_whole(full: ShareWorld) -> None:
    (full.root / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    watcher = Watcher(full)
    watcher.sync()
    assert (watcher.seen[-1][1], status(full).shares[0].coverage) == (1.0, 1.0)


def test_a_first_index_that_was_broken_off_is_told_as_such_until_a_poll_ends(full: ShareWorld) -> None:
    watcher = Watcher(full, stop_after=1)
    watcher.sync()
    assert status(full).shares[0].coverage == watcher.seen[0][0] / NOTES < 1
    full.one("update nw.run set ended_at = null returning run_id")  # killed instead: its row stays open
    assert status(full).shares[0].coverage == watcher.seen[0][0] / NOTES
    full.sync()
    assert status(full).shares[0].coverage == 1.0


def test_another_way_to_index_is_covered_as_far_as_it_is(full: ShareWorld) -> None:
    full.write("empty.md").write_text("")
    full.sync()
    full.embedder = MoodyEmbedder(24)
    full.restart()
    watcher = Watcher(full, stop_after=2)
    watcher.sync()
    expected = [int((done + 1) / (NOTES + 1) * 10_000) / 10_000 for done, _ in watcher.seen]
    assert [coverage for _, coverage in watcher.seen] == expected
    assert "another way; until all are, the old rows serve" in watcher.texts[-1]
    assert status(full).shares[0].coverage == expected[-1]
    full.sync()
    assert status(full).shares[0].coverage == 1.0


def test_an_ordinary_poll_leaves_the_coverage_alone(full: ShareWorld) -> None:
    full.sync()
    for number in range(40):
        full.write(f"{number}.md", "# Changed\n\nother words\n")
    watcher = Watcher(full)
    watcher.sync()
    assert {coverage for _, coverage in watcher.seen} == {1.0}
