"""Generations: ways to index. One serves; another is built beside it and switched in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, LiteralString

from psycopg import Connection, sql

from db.queries import load

_SQL = load("generations")

_READINGS = timedelta(minutes=10)  # far longer than any reading lasts
_PART = 2_000  # chunks deleted in one transaction
_LACKING = " Nothing of it is found since the notes are indexed in another way."


@dataclass(frozen=True)
class Recipe:
    """What the rows of a generation were made with: another value of any field is another generation."""

    chunker: str
    template: str
    embedder: str
    dimension: int


def on_vectors(query: LiteralString, generation_id: int) -> sql.Composed:
    """Return `query` with {vectors} put for the generation's table of vectors."""
    return sql.SQL(query).format(vectors=sql.Identifier("nw", f"vectors_{generation_id}"))


def vectors_name(generation_id: int) -> str:
    """Return the qualified name of the generation's table of vectors, as a value for to_regclass."""
    return f"nw.vectors_{generation_id}"


def target(conn: Connection[Any], recipe: Recipe) -> tuple[int, bool]:
    """Return the generation made by `recipe` and whether it serves, adding it when it is new.

    The very first generation serves at once; a later one is built beside the serving one, and each parked
    note is tried once more for it: what the old one keeps of the note goes with the old one.
    """
    row = conn.execute(_SQL["find"], vars(recipe)).fetchone()
    if row is not None:
        return int(row[0]), row[1] == "serving"
    state = "building" if conn.execute(_SQL["serving"]).fetchone() else "serving"
    with conn.transaction():
        made = conn.execute(_SQL["add"], vars(recipe) | {"state": state}).fetchone()
        assert made is not None
        conn.execute(_SQL["retry_parked"])
    return int(made[0]), state == "serving"


def all_ids(conn: Connection[Any]) -> list[int]:
    """Return the generations that hold rows, oldest first."""
    return [row[0] for row in conn.execute(_SQL["all"])]


def switch(conn: Connection[Any], generation_id: int) -> None:
    """Let `generation_id` serve instead of what served before, in one transaction; see `drop_retired`."""
    with conn.transaction():
        # A note that the new one lacks (refused, parked, its share not polled) is made anew when it can be.
        conn.execute(_SQL["outdate_lacking"], {"generation_id": generation_id})
        conn.execute(_SQL["tell_lacking"], {"generation_id": generation_id, "words": _LACKING})
        for old in all_ids(conn):
            if old != generation_id:
                conn.execute(_SQL["retire"], {"generation_id": old})
        conn.execute(_SQL["serve"], {"generation_id": generation_id})


def abandon(conn: Connection[Any], generation_id: int) -> None:
    """Give up what is being built besides `generation_id`: its way to index is configured no more."""
    for (building,) in conn.execute(_SQL["building"]).fetchall():
        if building != generation_id:
            conn.execute(_SQL["retire"], {"generation_id": building})


def drop_retired(conn: Connection[Any]) -> None:
    """Remove the rows of generations that serve no more, and their tables once no reading can need them.

    A reading that began before the switch goes on seeing deleted rows, but not a dropped table. Interrupted,
    the next call goes on. Must run outside any transaction.
    """
    for generation_id, forgotten in conn.execute(_SQL["retired"], {"readings": _READINGS}).fetchall():
        values = {"generation_id": generation_id, "most": _PART}
        while conn.execute(_SQL["drop_chunks"], values).rowcount:
            pass
        if forgotten:
            with conn.transaction():
                conn.execute(on_vectors(_SQL["drop_vectors"], generation_id))
                conn.execute(_SQL["remove"], values)


def fruitless(conn: Connection[Any], generation_id: int) -> int:
    """Return how many runs in a row asked this generation's model and got nothing."""
    row = conn.execute(_SQL["fruitless"], {"generation_id": generation_id}).fetchone()
    return 0 if row is None else int(row[0])


def set_fruitless(conn: Connection[Any], generation_id: int, runs: int) -> None:
    """Record how many runs in a row asked this generation's model and got nothing."""
    conn.execute(_SQL["set_fruitless"], {"generation_id": generation_id, "runs": runs})
