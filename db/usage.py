"""What models cost: rows that are added, and what this day's make together."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from psycopg import Connection

from acl.sid import Sid
from db.queries import load

_SQL = load("usage")


@dataclass(frozen=True)
class Used:
    """Tokens and US dollars of one call to a model. `asker` is "" for what the indexer did."""

    asker: Sid | str
    model: str
    input_tokens: int
    output_tokens: int
    cost: Decimal


def add(conn: Connection[Any], used: Used) -> None:
    """Write and commit one row."""
    with conn.transaction():
        conn.execute(_SQL["add"], vars(used))


def spent(conn: Connection[Any], asker: Sid) -> tuple[Decimal, Decimal]:
    """Return what `asker`, and everybody together, have spent since midnight (UTC), in US dollars."""
    row = conn.execute(_SQL["spent"], {"asker": asker}).fetchone()
    assert row is not None
    return row[0], row[1]
