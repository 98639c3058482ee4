"""The ledger: every note in trouble, with its reason, attempts and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg import Connection

from db.queries import load

_SQL = load("ledger")

State = Literal["pending", "parked", "unreadable", "skipped"]


@dataclass(frozen=True)
class Trouble:
    """One note in trouble; `hint` is the listing's view of the version that failed, None if untrusted."""

    path: bytes
    state: State
    reason: str
    attempts: int
    since: datetime
    hint: bytes | None


@dataclass(frozen=True)
class Standing:
    """One line of `status`."""

    share: str
    path: bytes
    state: State
    reason: str
    attempts: int
    since: datetime


def record(
    conn: Connection[Any],
    share_id: int,
    path: bytes,
    trouble: tuple[State, str],
    hint: bytes | None = None,
    *,
    permanent: bool = False,
) -> int:
    """Record `trouble` = (state, reason) of a note; returns how often this version failed for good.

    `permanent`: this time was one of those.
    """
    state, reason = trouble
    values = {"share_id": share_id, "path": path, "state": state, "reason": reason}
    row = conn.execute(_SQL["record"], values | {"hint": hint, "permanent": permanent}).fetchone()
    assert row is not None
    return int(row[1])


def wait(conn: Connection[Any], share_id: int, paths: Sequence[bytes], reason: str) -> None:
    """Record notes that wait although nothing is wrong with them: no try is counted."""
    if paths:
        conn.execute(_SQL["wait"], {"share_id": share_id, "paths": list(paths), "reason": reason})


def clear(conn: Connection[Any], share_id: int, paths: Sequence[bytes]) -> None:
    """Forget the trouble of these notes."""
    conn.execute(_SQL["clear"], {"share_id": share_id, "paths": list(paths)})


def park(conn: Connection[Any], share_id: int, path: bytes) -> None:
    """Stop trying a note until it changes or an admin asks for it."""
    conn.execute(_SQL["park"], {"share_id": share_id, "path": path})


def of_share(conn: Connection[Any], share_id: int) -> dict[bytes, Trouble]:
    """Return the share's standing trouble by path."""
    rows = conn.execute(_SQL["of_share"], {"share_id": share_id})
    return {
        bytes(row[0]): Trouble(bytes(row[0]), row[1], row[2], row[3], row[4], _bytes(row[5])) for row in rows
    }


def standing(conn: Connection[Any], shares: Sequence[str]) -> list[Standing]:
    """Return all standing trouble of these shares, sorted by share and path."""
    rows = conn.execute(_SQL["standing"], {"names": list(shares)})
    return [Standing(row[0], bytes(row[1]), *row[2:]) for row in rows]


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
