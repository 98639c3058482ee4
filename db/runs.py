"""Runs of the indexer, and the lock that keeps two of them off one database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.queries import load

_SQL = load("runs")

INDEXER_LOCK = 0x6E6F7465  # "note"


@contextmanager
def indexer_lock(conn: Connection[Any]) -> Iterator[bool]:
    """Try to become the one indexer of this database; yields whether that worked."""
    row = conn.execute(_SQL["try_lock"], {"lock": INDEXER_LOCK}).fetchone()
    held = bool(row and row[0])
    try:
        yield held
    finally:
        if held and not conn.closed:
            conn.execute(_SQL["unlock"], {"lock": INDEXER_LOCK})


def commit_lazily(conn: Connection[Any]) -> None:
    """Let this connection's commits reach the disk a moment later, in their order.

    A crash can lose the newest of them whole, and the next poll finds out: the share is the truth. What
    narrows permissions asks for its own commit at once (`commit_now`), and so carries all before it.
    """
    conn.execute(_SQL["commit_lazily"])


def commit_now(conn: Connection[Any]) -> None:
    """Let the running transaction be on disk before it counts as committed."""
    conn.execute(_SQL["commit_now"])


def begin(conn: Connection[Any], kind: str, *, daemon: bool = False) -> tuple[int, datetime]:
    """Record the start of a run; returns its id and the database's time."""
    row = conn.execute(_SQL["begin"], {"kind": kind, "daemon": daemon}).fetchone()
    assert row is not None
    return int(row[0]), row[1]


def end(
    conn: Connection[Any], run_id: int, report: dict[str, Any], exit_code: int, error: str | None = None
) -> None:
    """Record how a run ended."""
    values = {"run_id": run_id, "report": Jsonb(report), "exit_code": exit_code, "error": error}
    conn.execute(_SQL["end"], values)


def daemon_ever(conn: Connection[Any]) -> bool:
    """Tell whether a daemon ever ran on this database."""
    row = conn.execute(_SQL["daemon_ever"]).fetchone()
    return bool(row and row[0])


def last_sync(conn: Connection[Any]) -> datetime | None:
    """Return when the last finished sync began."""
    row = conn.execute(_SQL["last_sync"]).fetchone()
    return row[0] if row else None


def tell(conn: Connection[Any], run_id: int, report: dict[str, Any]) -> None:
    """Let a run that goes on say how it stands."""
    conn.execute(_SQL["tell"], {"run_id": run_id, "report": Jsonb(report)})


def abandon(conn: Connection[Any], run_id: int) -> None:
    """End the rows of runs whose process was killed; only for the one daemon, whose own row is `run_id`."""
    conn.execute(_SQL["abandon"], {"run_id": run_id})


def current_daemon(conn: Connection[Any]) -> dict[str, Any] | None:
    """Return what the daemon last told of itself, None where none was started or it ended in order."""
    row = conn.execute(_SQL["current_daemon"]).fetchone()
    return None if row is None or row[0] is None else dict(row[0])
