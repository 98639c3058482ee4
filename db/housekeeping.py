"""Care for a database that nobody looks after: retention, vacuum, index health, and a check of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, LiteralString

from psycopg import Connection, sql

from db.generations import on_vectors
from db.queries import load

_SQL = load("housekeeping")


@dataclass(frozen=True)
class Keep:
    """How long rows that nothing else removes are kept."""

    runs: timedelta
    audit: timedelta
    usage: timedelta


def tidy(conn: Connection[Any], keep: Keep) -> dict[str, int]:
    """Remove what is old, vacuum every table, rebuild broken indexes; returns how many of each.

    `conn` is the owner's, in autocommit and outside any transaction.
    """
    ages = {"runs": keep.runs, "requests": keep.runs, "audit": keep.audit, "usage": keep.usage}
    done = {name: conn.execute(_SQL[f"drop_{name}"], {"age": age}).rowcount for name, age in ages.items()}
    tables = [row[0] for row in conn.execute(_SQL["tables"])]
    for table in tables:
        conn.execute(_on(_SQL["vacuum"], table=table))
    broken = [row[0] for row in conn.execute(_SQL["invalid_indexes"])]
    for index in broken:
        conn.execute(_on(_SQL["rebuild"], index=index))
    return {**done, "tables": len(tables), "indexes_rebuilt": len(broken)}


def verify(conn: Connection[Any]) -> dict[str, int]:
    """Compare the rows with one another; what does not fit is made again by the next poll.

    Returns how many notes, counts or orphans of each kind were wrong. One kind of wrong is repaired before
    the next is looked for, all in one transaction.
    """
    with conn.transaction():
        found = {
            name: _hits(conn, _SQL[name]) for name in ("broken_chunks", "lost_chunks", "orphans", "sizes")
        }
        row = conn.execute(_SQL["serving"]).fetchone()
        if row is not None:
            query = on_vectors(_SQL["lost_vectors"], row[0])
            found["lost_vectors"] = len(conn.execute(query, {"generation_id": row[0]}).fetchall())
    return found


def _hits(conn: Connection[Any], query: LiteralString) -> int:
    return len(conn.execute(query).fetchall())


def _on(query: LiteralString, **names: str) -> sql.Composed:
    return sql.SQL(query).format(**{key: sql.Identifier("nw", name) for key, name in names.items()})
