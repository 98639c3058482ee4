"""Who is told that permissions are too old: those alone who could read something were they young."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.random_acls import USERS

from acl.compile import Entry, Meaning, compile_entries
from acl.model import AccessList, Role
from acl.sid import EVERYONE, Sid
from acl.token import Token
from db import shares
from db.lists import ListStore
from db.pool import Database
from db.search import reading

ANNA, BEN = (Token(sid, "x", frozenset({sid, EVERYONE}), frozenset({sid, EVERYONE})) for sid in USERS[:2])
OLD = "swept_at = clock_timestamp() - interval '3 days', polled_at = clock_timestamp() - interval '3 days'"


class Names:
    """A directory in which nobody has a name."""

    def name_of(self, sid: Sid) -> str | None:
        return None

    def enumerable(self, sid: Sid) -> bool:
        return True


def listed(sid: Sid, role: Role) -> AccessList:
    return compile_entries([Entry("allow", sid, "one")], Meaning("host", "x", role), 1, raw=sid.encode())


class Shares:
    """Shares of one audience each."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add(self, name: str, readers: Sequence[Sid], gate: Sid = EVERYONE, *, notes: int = 1) -> None:
        with self.database.owner() as conn, conn.transaction():
            row = shares.declare(conn, name, f"/{name}", None, timedelta(hours=24))
            lists = ListStore(conn, Names())
            shares.set_lists(conn, row.share_id, lists.ids((listed(gate, "share"),)))
            shares.swept(conn, row.share_id, shares.clock(conn))
            shares.polled(conn, row.share_id, shares.clock(conn), {})
            for sid in readers:
                made = conn.execute(
                    "insert into nw.audience (share_id, folder, acl_ids, readers) values (%s, %s, %s, '{}')"
                    " returning audience_id",
                    [row.share_id, str(sid).encode(), list(lists.ids((listed(sid, "note"),)))],
                ).fetchone()
                conn.execute(
                    "insert into nw.note (share_id, path, audience_id, content_hash, size, modified_at, hint,"
                    " own_acl_ids, encoding) select %s, convert_to(%s || n::text, 'UTF8'), %s, %s, 0, now(),"
                    " '', '{}', '' from generate_series(1, %s) n",
                    [row.share_id, str(sid), made[0], bytes(32), notes],
                )

    def set(self, name: str, change: str) -> None:
        with self.database.owner() as conn:
            conn.execute(f"update nw.share set {change} where name = '{name}'")

    def told(self, token: Token) -> tuple[bool, datetime | None]:
        with self.database.reader() as conn, reading(conn, token) as held:
            return held.too_old(), held.as_of()

    def polled(self, name: str) -> Any:
        with self.database.owner() as conn:
            return conn.execute("select polled_at from nw.share where name = %s", [name]).fetchone()[0]


@pytest.fixture
def both(database: Database) -> Shares:
    """One share of Anna's and one of Ben's."""
    made = Shares(database)
    made.add("annas", [ANNA.user])
    made.add("bens", [BEN.user])
    return made


def test_an_old_share_is_told_to_who_could_read_it_and_to_nobody_else(both: Shares) -> None:
    assert [both.told(who)[0] for who in (ANNA, BEN)] == [False, False]
    both.set("annas", OLD)
    assert [both.told(who)[0] for who in (ANNA, BEN)] == [True, False]
    assert both.told(ANNA)[1] == both.polled("annas")
    assert both.told(BEN)[1] == both.polled("bens")


@pytest.mark.parametrize("hidden", ["max_age = max_age", OLD, "swept_at = null, polled_at = null"])
def test_a_share_one_cannot_see_changes_nothing_of_what_one_is_told(both: Shares, hidden: str) -> None:
    both.set("annas", OLD)
    before = both.told(ANNA)
    both.set("bens", hidden)
    assert both.told(ANNA) == before == (True, both.polled("annas"))


@pytest.mark.parametrize(
    "closed",
    [
        "swept_at = null",
        "swept_at = clock_timestamp() + interval '20 seconds'",
        "polled_at = clock_timestamp() + interval '20 seconds'",
        "swept_in = 'another place'",
        "max_age = interval '0'",
    ],
)
def test_whatever_closes_a_share_by_its_time_is_age(both: Shares, closed: str) -> None:
    both.set("annas", closed)
    assert [both.told(who)[0] for who in (ANNA, BEN)] == [True, False]


@pytest.mark.parametrize("closed", ["acl_ids = '{}'", "acl_ids = acl_ids || 2147483647"])
def test_a_share_that_is_closed_otherwise_is_not_old(both: Shares, closed: str) -> None:
    both.set("annas", f"{OLD}, {closed}")
    assert [both.told(who)[0] for who in (ANNA, BEN)] == [False, False]


def test_a_share_or_folder_without_a_note_of_ones_own_is_none(database: Database) -> None:
    made = Shares(database)
    made.add("gated", [ANNA.user, BEN.user], gate=BEN.user)
    made.add("empty", [ANNA.user], notes=0)
    for name in ("gated", "empty"):
        made.set(name, OLD)
    assert [made.told(who)[0] for who in (ANNA, BEN)] == [False, True]
