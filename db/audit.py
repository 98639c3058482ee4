"""The audit: one row for each question, committed before any note text leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb

from acl.sid import Sid
from db.queries import load

_SQL = load("audit")


@dataclass(frozen=True)
class Act:
    """Who (`actor`) did what with whose rights (`asker`)."""

    actor: Sid
    asker: Sid
    action: str
    subject: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


def add(conn: Connection[Any], act: Act) -> None:
    """Write and commit one row; the connection must stand outside any transaction."""
    with conn.transaction():
        conn.execute(
            _SQL["add"],
            {
                "actor": act.actor,
                "asker": act.asker,
                "action": act.action,
                "subject": act.subject,
                "detail": Jsonb(act.detail),
            },
        )
