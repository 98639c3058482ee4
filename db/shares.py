"""Shares as the index knows them: identity, permission lists, and when they were last seen whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from db.queries import load

_SQL = load("shares")


@dataclass(frozen=True)
class Share:
    """One row of the share table; `acl_ids` empty means that nobody may read the share."""

    share_id: int
    name: str
    root: str
    identity: dict[str, Any] | None
    acl_ids: list[int]
    swept_at: datetime | None
    polled_at: datetime | None
    available: bool
    reason: str


def declare(conn: Connection[Any], name: str, root: str, link: str | None, max_age: timedelta) -> Share:
    """Record a share as the configuration names it and return what is known of it."""
    with conn.cursor(row_factory=class_row(Share)) as cursor:
        row = cursor.execute(
            _SQL["declare"], {"name": name, "root": root, "link": link, "max_age": max_age}
        ).fetchone()
    assert row is not None
    return row


def known(conn: Connection[Any], name: str) -> Share | None:
    """Return what is known of a share without recording anything, None where it was never polled."""
    with conn.cursor(row_factory=class_row(Share)) as cursor:
        return cursor.execute(_SQL["known"], {"name": name}).fetchone()


def close_undeclared(conn: Connection[Any], names: Sequence[str]) -> None:
    """Close every share that the configuration no longer names."""
    conn.execute(_SQL["close_undeclared"], {"names": list(names)})


def close_after_step(conn: Connection[Any]) -> None:
    """Close every share whose last sweep or poll lies ahead, or is older than a restore, until swept."""
    conn.execute(_SQL["close_after_step"])


def clock(conn: Connection[Any]) -> datetime:
    """Return the database's clock: the one by which the age of permissions is judged."""
    row = conn.execute(_SQL["clock"]).fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


def set_lists(conn: Connection[Any], share_id: int, acl_ids: Sequence[int]) -> None:
    """Store the share's own access lists."""
    conn.execute(_SQL["set_lists"], {"share_id": share_id, "acl_ids": sorted(acl_ids)})


def polled(conn: Connection[Any], share_id: int, started: datetime, identity: dict[str, Any]) -> None:
    """Record a good poll by the time of its start, with the identity the root showed."""
    conn.execute(_SQL["polled"], {"share_id": share_id, "started": started, "identity": Jsonb(identity)})


def swept(conn: Connection[Any], share_id: int, started: datetime) -> None:
    """Record a complete permission sweep by the time of its start."""
    conn.execute(_SQL["swept"], {"share_id": share_id, "started": started})


def embedded(conn: Connection[Any], share_id: int) -> None:
    """Record that something of this share was embedded just now."""
    conn.execute(_SQL["embedded"], {"share_id": share_id})


def unavailable(conn: Connection[Any], share_id: int, reason: str) -> None:
    """Record why the share could not be polled; what is indexed stays."""
    conn.execute(_SQL["unavailable"], {"share_id": share_id, "reason": reason})


def held(conn: Connection[Any], share_id: int) -> int:
    """Return how many notes of the share are proved gone while their rows still stand."""
    row = conn.execute(_SQL["held"], {"share_id": share_id}).fetchone()
    assert row is not None
    return int(row[0])


def overview(conn: Connection[Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what `status` shows of each share, sorted by name."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(_SQL["overview"], {"names": list(names)}).fetchall()
