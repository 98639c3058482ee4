"""What was learnt of ids inside a transaction that was rolled back is learnt again."""

from __future__ import annotations

from typing import Any

import pytest
from share_world import ShareWorld

from db.chunkrows import ChunkStore
from db.notes import NoteStore


@pytest.mark.parametrize("fault", [ValueError("no row"), UnicodeEncodeError("utf-8", "x", 0, 1, "no")])
def test_a_note_that_fails_after_its_terms_were_learnt_costs_the_next_none_of_its_words(
    world: ShareWorld, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """Whatever ends a note's transaction: its terms went with it, and the next note has the same word."""
    add, failed = ChunkStore.add, []

    def failing(self: ChunkStore, *given: Any) -> None:
        if not failed:
            failed.append(1)
            raise fault
        add(self, *given)

    monkeypatch.setattr(NoteStore, "expect", lambda *_: None)  # each note asks for its terms by itself
    monkeypatch.setattr(ChunkStore, "add", failing)
    for name in ("a.md", "b.md"):
        world.write(f"folder/{name}", "# Crane\n\nThe quokka crane is greased.\n")
    world.sync()
    assert failed
    assert world.rows("select count(*) from nw.note") == [(1,)]
    unknown = "select term_id from nw.posting where term_id not in (select term_id from nw.term)"
    assert world.rows(unknown) == [], "every word of the note that stands can be found"
    world.sync_all()
    assert world.rows("select count(*) from nw.note") == [(2,)] and world.rows(unknown) == []
    world.whole()
