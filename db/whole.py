"""How much text a reading holds in all: whether it may be given to a model as a whole."""

from __future__ import annotations

from db.queries import load
from db.search import Reading

_SQL = load("whole")


def characters(held: Reading) -> int:
    """Return how many characters of text may be read."""
    if held.serving is None:
        return 0
    row = held._conn.execute(_SQL["characters"], {"generation_id": held.serving.generation_id}).fetchone()
    return 0 if row is None else int(row[0])
