"""The graph index over a generation's vectors: made when it pays, and sampled for what it misses."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection, sql

from db import generations
from db.errors import our_errors
from db.queries import load

_SQL = load("vectorindex")
_SEARCH = load("search")

HALF_PRECISION = 1_000
"""Dimensions from which a vector is stored in half precision (see the migration of search)."""

_DEPTH = 10
_FETCH = 50  # as many rows as a question's vector leg asks for
_PARTS = (0.5, 0.75, 1.0)  # of the audiences that a made-up asker may read

# M, efConstruction and ef of Malkov and Yashunin (2016). With pgvector's own 16 and 64 and an ef of 200 a
# graph over clustered vectors loses its way to some clusters, to others each time it is built: it found .92
# to 1.00 of the true ten nearest among 100,000 chunks and .90 among 300,000, hardly more with an ef of 800.
# With these it is .98 to 1.00 among both; the graph takes three times as long to build (37 s for 100,000 on
# two cores), and a third more for each vector that is added.
_M, _EF_CONSTRUCTION, _EF_SEARCH = 24, 200, 400
_GRAPH_BYTES = 44 * _M  # of one row besides its vector
_LEAST_MEMORY, _MOST_MEMORY = 128, 4_096  # MB


@dataclass(frozen=True)
class RecallCheck:
    """How much of the exact top ten the index found; `by_index` False: the planner did not take it."""

    checked_at: datetime
    chunks: int
    samples: int
    recall: float
    by_index: bool


def tuning() -> dict[str, int]:
    """Return what the query "tune_nearest" takes."""
    return {"ef_search": _EF_SEARCH}


def exists(conn: Connection[Any], generation_id: int) -> bool:
    """Whether the generation's index stands and is valid."""
    return _form(conn, generation_id) is not None


def is_current(conn: Connection[Any], generation_id: int) -> bool:
    """Whether it was built as indexes are built now."""
    return _form(conn, generation_id) == (_M, _EF_CONSTRUCTION)


def _form(conn: Connection[Any], generation_id: int) -> tuple[int, int] | None:
    row = conn.execute(_SQL["form"], {"name": f"nw.{_name(generation_id)}"}).fetchone()
    return None if row is None else (int(row[0]), int(row[1]))


def chunks(conn: Connection[Any], generation_id: int) -> int:
    """Return how many chunks the generation has."""
    row = conn.execute(_SQL["chunks"], {"generation_id": generation_id}).fetchone()
    assert row is not None
    return int(row[0])


def serving(conn: Connection[Any]) -> tuple[int, int] | None:
    """Return the id and the dimension of the generation that serves."""
    row = conn.execute(_SQL["serving"]).fetchone()
    return None if row is None else (int(row[0]), int(row[1]))


def build(conn: Connection[Any], generation_id: int, dimension: int, *, alone: bool = False) -> None:
    """Make the index, or make it anew, in one transaction; `alone`: without parallel workers.

    Questions go on meanwhile, by the one that stands or by exact comparison. Raises DatabaseFault, or
    DatabaseUnavailable also where memory or disk do not suffice; then what stood stands.
    """
    half = dimension >= HALF_PRECISION
    a_row = dimension * (2 if half else 4) + _GRAPH_BYTES
    size = chunks(conn, generation_id) * a_row // 1_000_000
    memory = min(max(size * 5 // 4, _LEAST_MEMORY), _MOST_MEMORY)
    name = _name(generation_id)
    values = {
        "vectors": sql.Identifier("nw", f"vectors_{generation_id}"),
        "index": sql.Identifier(f"{name}_next"),
        "operators": sql.SQL("halfvec_cosine_ops" if half else "vector_cosine_ops"),
        "m": sql.Literal(_M),
        "ef_construction": sql.Literal(_EF_CONSTRUCTION),
    }
    with our_errors(), conn.transaction():
        conn.execute(_SQL["memory"], {"memory": f"{memory}MB"})
        if alone:
            conn.execute(_SQL["alone"])
        conn.execute(sql.SQL(_SQL["build"]).format(**values))
        drop(conn, generation_id)  # only now: its lock keeps questions waiting
        names = {"index": values["index"], "name": sql.Identifier(name)}
        conn.execute(sql.SQL(_SQL["rename"]).format(**names))


def drop(conn: Connection[Any], generation_id: int) -> None:
    """Take the index and what was measured of it away, if they stand."""
    with conn.transaction():
        conn.execute(sql.SQL(_SQL["drop"]).format(index=sql.Identifier(_name(generation_id))))
        conn.execute(_SQL["forget_check"], {"generation_id": generation_id})


def last_check(conn: Connection[Any], generation_id: int) -> RecallCheck | None:
    """Return what the last check found of this generation's index."""
    row = conn.execute(_SQL["last_check"], {"generation_id": generation_id}).fetchone()
    return None if row is None else RecallCheck(*row)


def check(conn: Connection[Any], generation_id: int, samples: int = 12, seed: int | None = None) -> float:
    """Compare the index with the exact order for made-up askers, record the recall of the top ten, return it.

    The questions are vectors of the collection, of chunks that the asker may read or not; the asker may read
    a random half, three quarters or all of the audiences.
    """
    chance = random.Random(seed)  # noqa: S311 - a sample, no secret
    query = generations.on_vectors(_SEARCH["nearest_by_index"], generation_id)
    hits, wanted, by_index = 0, 0, True
    for number in range(samples):
        with conn.transaction():
            vector = _some_vector(conn, generation_id, chance)
            values = {"generation_id": generation_id, "part": _PARTS[number % len(_PARTS)]}
            conn.execute(_SQL["some_audiences"], values)
            exact = generations.on_vectors(_SEARCH["nearest_exact"], generation_id)
            truth = {row[0] for row in conn.execute(exact, {"vector": vector, "limit": _DEPTH})}
            conn.execute(_SEARCH["tune_nearest"], tuning())
            asked = {"vector": vector, "fetch": _FETCH, "limit": _DEPTH}
            found = {row[0] for row in conn.execute(query, asked)}
            by_index = by_index and _takes_index(conn, query, asked, generation_id)
            hits, wanted = hits + len(truth & found), wanted + len(truth)
    recall = hits / wanted if wanted else 1.0
    _record(conn, generation_id, samples, recall, by_index=by_index)
    return recall


def _record(
    conn: Connection[Any], generation_id: int, samples: int, recall: float, *, by_index: bool
) -> None:
    values = {"generation_id": generation_id, "chunks": chunks(conn, generation_id), "samples": samples}
    conn.execute(_SQL["record"], values | {"recall": recall, "by_index": by_index})


def _takes_index(
    conn: Connection[Any], query: sql.Composed, values: dict[str, Any], generation_id: int
) -> bool:
    row = conn.execute(sql.SQL(_SQL["plan"]) + sql.SQL(" ") + query, values).fetchone()
    return row is not None and _name(generation_id) in str(row[0])


def _some_vector(conn: Connection[Any], generation_id: int, chance: random.Random) -> Any:
    row = conn.execute(generations.on_vectors(_SQL["bounds"], generation_id)).fetchone()
    assert row is not None
    query = generations.on_vectors(_SQL["some_vector"], generation_id)
    found = conn.execute(query, {"chunk_id": chance.randint(row[0], row[1])}).fetchone()
    assert found is not None
    return found[0]


def _name(generation_id: int) -> str:
    return f"vectors_{generation_id}_hnsw"
