"""What stands right beside a passage: a section cut for its length is given to a model in one piece again."""

from __future__ import annotations

from collections.abc import Sequence

from answerer.latecheck import Gate
from db.search import Passage, Reading

FIRST = 3
"""So many of the best passages bring their neighbours; further down these are seldom what was asked for."""


def with_neighbours(held: Reading, gate: Gate, passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages, the first of them followed by the chunks before and after of the same section.

    Of one note what stands together comes in the note's order. A neighbour is read under the same decision
    and passes the same late check as a passage that was found itself.
    """
    beside = held.neighbours([one.chunk_id for one in passages[:FIRST]])
    have = {one.chunk_id for one in passages}
    wanted = dict.fromkeys(at for ids in beside.values() for at in ids if at not in have)
    more = {one.chunk_id: one for one in gate.passed(held.passages(list(wanted)))}
    found: list[Passage] = []
    for passage in passages:
        ids = [at for at in beside.get(passage.chunk_id, ()) if at in more]
        found += sorted([passage, *(more.pop(at) for at in ids)], key=lambda one: one.seq)
    return found
