"""What the late check needs of the index: the notes it compares, and the queue of those that differ."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection

from db.errors import our_errors
from db.queries import load

_SQL = load("latecheck")


@dataclass(frozen=True)
class Indexed:
    """A note as it was indexed. `root` is what its share's root showed of itself, None if never recorded."""

    note_id: int
    share: str
    path: bytes
    content_hash: bytes
    hint: bytes
    hint_trusted: bool
    root: dict[str, Any] | None
    polled_at: datetime | None


def indexed(conn: Connection[Any], note_ids: Sequence[int]) -> list[Indexed]:
    """Return what is indexed of these notes; on a reader's connection, of those this reading may see."""
    with our_errors():
        rows = conn.execute(_SQL["indexed"], {"note_ids": list(note_ids)}).fetchall()
    return [Indexed(row[0], row[1], bytes(row[2]), bytes(row[3]), bytes(row[4]), *row[5:]) for row in rows]


def policy_keys(conn: Connection[Any], note_ids: Sequence[int]) -> dict[int, frozenset[bytes]]:
    """Return, by note, the keys of all lists that guard it in the index; `conn` is within a reading."""
    rows = conn.execute(_SQL["policy_keys"], {"note_ids": list(note_ids)})
    return {note_id: frozenset(map(bytes, keys)) for note_id, keys in rows}


def queue(conn: Connection[Any], note_ids: Collection[int]) -> None:
    """Ask for a sync of these notes, by their ids alone; one that waits already is not queued again."""
    if note_ids:
        conn.execute(_SQL["queue"], {"note_ids": sorted(note_ids)})


def settle(conn: Connection[Any], before: datetime, exit_code: int) -> None:
    """Record that a poll which began at `before` has looked at every note queued until then."""
    conn.execute(_SQL["settle"], {"before": before, "exit_code": exit_code})
