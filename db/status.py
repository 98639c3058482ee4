"""What `status` asks of the index besides its repositories: coverage, closed lists, kept rules, usage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection

from db.queries import load

_SQL = load("status")


@dataclass(frozen=True)
class Coverage:
    """How many notes are indexed of those `expected`; `anew`: by another way, which does not serve yet.

    The figures are read one after the other: while notes are stored, `indexed` may be the larger one.
    """

    indexed: int
    expected: int
    anew: bool


@dataclass(frozen=True)
class Quarantined:
    """A note under a list that cannot be understood, so that nobody may read it; `since` its last reading."""

    share: str
    path: bytes
    reason: str
    since: datetime


@dataclass(frozen=True)
class Usage:
    """What model providers were used for this month; `cost` in US dollars."""

    input_tokens: int
    output_tokens: int
    cost: float


def indexed(conn: Connection[Any], shares: Sequence[str]) -> dict[str, int]:
    """Return how many notes of each share have rows, hidden ones too, of the generation built if one is."""
    return dict(conn.execute(_SQL["indexed"], {"names": list(shares)}).fetchall())


def coverage(conn: Connection[Any], shares: Sequence[str]) -> dict[str, Coverage]:
    """Return how far each share's index is; none of a share that was never synced."""
    made = indexed(conn, shares)
    rows = conn.execute(_SQL["expected"], {"names": list(shares)}).fetchall()
    return {name: Coverage(made.get(name, 0), expected, anew) for name, expected, anew in rows}


def quarantined(conn: Connection[Any], shares: Sequence[str]) -> list[Quarantined]:
    """Return the notes under a quarantined list, sorted by share and path."""
    rows = conn.execute(_SQL["quarantined"], {"names": list(shares)})
    return [Quarantined(row[0], bytes(row[1]), row[2], row[3]) for row in rows]


def narrowed(conn: Connection[Any], shares: Sequence[str]) -> list[tuple[str, bytes]]:
    """Return (share, path) of the notes kept under a narrower declared rule than their folder has."""
    rows = conn.execute(_SQL["narrowed"], {"names": list(shares)})
    return [(row[0], bytes(row[1])) for row in rows]


def usage(conn: Connection[Any]) -> Usage:
    """Return this month's usage."""
    row = conn.execute(_SQL["cost"]).fetchone()
    assert row is not None
    return Usage(*row)
