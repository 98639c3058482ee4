"""What the admin command asks of the daemon, as rows rung in by NOTIFY; and who the daemon is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.errors import our_errors
from db.queries import load

_SQL = load("requests")
_RUNS = load("runs")

DAEMON_LOCK = 0x6E6F7466  # "notf"; held for the daemon's life, where runs.INDEXER_LOCK is held for one run

Kind = Literal["sync", "reindex", "confirm-deletes", "note"]


@dataclass(frozen=True)
class Request:
    """One wish that was taken up."""

    request_id: int
    kind: Kind
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Standing:
    """How far a wish is. `result` and `exit_code` count once it has `ended`."""

    taken: bool
    ended: bool
    progress: dict[str, Any] | None
    result: dict[str, Any] | None
    exit_code: int | None


@dataclass(frozen=True)
class Holder:
    """Who holds the daemon's lock: its own words and since when."""

    name: str
    since: datetime


@contextmanager
def daemon_lock(conn: Connection[Any], name: str) -> Iterator[bool]:
    """Try to become the one daemon of this database, known by `name`; yields whether that worked.

    The lock goes with the connection, so a daemon that was killed holds nothing.
    """
    conn.execute(_SQL["name_session"], {"name": name})
    row = conn.execute(_RUNS["try_lock"], {"lock": DAEMON_LOCK}).fetchone()
    held = bool(row and row[0])
    try:
        yield held
    finally:
        if held and not conn.closed:
            with our_errors():
                conn.execute(_RUNS["unlock"], {"lock": DAEMON_LOCK})


def daemon(conn: Connection[Any]) -> Holder | None:
    """Return who the daemon of this database is, None where none runs."""
    row = conn.execute(_SQL["daemon"], {"lock": DAEMON_LOCK}).fetchone()
    return Holder(row[0], row[1]) if row else None


def put(conn: Connection[Any], kind: Kind, arguments: Mapping[str, Any]) -> int:
    """Ask the daemon for something and ring; returns the request's id."""
    with conn.transaction():
        row = conn.execute(_SQL["put"], {"kind": kind, "arguments": Jsonb(dict(arguments))}).fetchone()
        conn.execute(_SQL["ring"])
    assert row is not None
    return int(row[0])


def listen(conn: Connection[Any]) -> None:
    """Let this connection hear the ring: its file descriptor becomes readable."""
    conn.execute(_SQL["listen"])


def heard(conn: Connection[Any]) -> bool:
    """Take what was rung without waiting; tells whether anything was. Raises DatabaseUnavailable."""
    with our_errors():
        return any(True for _ in conn.notifies(timeout=0))


def take(conn: Connection[Any]) -> Request | None:
    """Take up the oldest waiting request, None where none waits."""
    row = conn.execute(_SQL["take"]).fetchone()
    return Request(row[0], row[1], row[2]) if row else None


def waiting(conn: Connection[Any]) -> set[Kind]:
    """Return the kinds of requests that wait."""
    return {row[0] for row in conn.execute(_SQL["waiting"])}


def give_back(conn: Connection[Any], request_id: int) -> None:
    """Let the next daemon serve a request that this one could not finish."""
    conn.execute(_SQL["give_back"], {"request_id": request_id})


def take_over(conn: Connection[Any]) -> None:
    """Let what an earlier daemon took up and did not finish wait again; only for the daemon that runs."""
    conn.execute(_SQL["take_over"])


def tell(conn: Connection[Any], request_id: int, progress: Mapping[str, Any]) -> None:
    """Show how far a request is."""
    conn.execute(_SQL["tell"], {"request_id": request_id, "progress": Jsonb(dict(progress))})


def finish(conn: Connection[Any], request_id: int, result: Mapping[str, Any], exit_code: int) -> None:
    """Record a request's result; one that ended before, as when its asker gave up, stays as it is."""
    values = {"request_id": request_id, "result": Jsonb(dict(result)), "exit_code": exit_code}
    conn.execute(_SQL["finish"], values)


def look(conn: Connection[Any], request_id: int) -> Standing:
    """Return how far a request is."""
    row = conn.execute(_SQL["look"], {"request_id": request_id}).fetchone()
    assert row is not None
    return Standing(*row)
