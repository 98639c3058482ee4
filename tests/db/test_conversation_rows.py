"""Conversations are their owner's: nobody else's question reads, continues or forgets them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import psycopg
import pytest

from acl.sid import Sid
from db import conversations, usage
from db.conversations import Conversation, Turn
from db.errors import NotPermitted
from db.pool import Database

ANNA, BEN = Sid("S-1-5-21-1-2-3-1001"), Sid("S-1-5-21-1-2-3-1002")
DAY = timedelta(days=1)


def test_a_conversation_is_its_owners(new_database: Callable[[], Database]) -> None:
    turn = Turn("q", "a", [1, 2], [7], [{"n": 1}])
    with new_database() as database, database.reader() as conn:
        talk = conversations.begin(conn, ANNA, "abc")
        assert conversations.add(conn, ANNA, talk, turn)
        assert not conversations.add(conn, BEN, talk, turn)
        assert conversations.latest(conn, ANNA, DAY) == Conversation(talk.conversation_id, "abc")
        assert conversations.latest(conn, BEN, DAY) is None
        assert conversations.turns(conn, ANNA, talk, 9) == [turn]
        assert conversations.turns(conn, BEN, talk, 9) == []
        assert conversations.forget(conn, BEN) == 0
        assert conversations.forget(conn, ANNA) == 1
        assert conversations.turns(conn, ANNA, talk, 9) == []


def test_turns_come_oldest_first_and_no_more_than_asked_for(new_database: Callable[[], Database]) -> None:
    with new_database() as database, database.reader() as conn:
        talk = conversations.begin(conn, ANNA, "abc")
        for n in range(5):
            conversations.add(conn, ANNA, talk, Turn(f"q{n}", "a", [], [], []))
        assert [one.question for one in conversations.turns(conn, ANNA, talk, 3)] == ["q2", "q3", "q4"]


def test_old_conversations_are_neither_continued_nor_kept(new_database: Callable[[], Database]) -> None:
    with new_database() as database:
        with database.reader() as conn:
            conversations.begin(conn, ANNA, "abc")
        with database.owner() as conn:
            conn.execute("update nw.conversation set touched_at = touched_at - interval '2 days'")
        with database.reader() as conn:
            assert conversations.latest(conn, ANNA, DAY) is None
            assert conversations.latest(conn, ANNA, 3 * DAY) is not None
        with database.owner() as conn:
            assert conversations.drop_old(conn, 3 * DAY) == 0
            assert conversations.drop_old(conn, DAY) == 1


@pytest.mark.parametrize("table", ["conversation", "turn", "usage"])
def test_the_reader_has_no_way_round_the_functions(new_database: Callable[[], Database], table: str) -> None:
    with new_database() as database, pytest.raises(NotPermitted), database.reader() as conn:
        conn.execute(psycopg.sql.SQL("select * from nw.{}").format(psycopg.sql.Identifier(table)))


def test_what_was_spent_today_is_summed_per_person_and_in_all(new_database: Callable[[], Database]) -> None:
    with new_database() as database:
        with database.reader() as conn:
            for asker, cost in ((ANNA, "0.25"), (ANNA, "0.5"), (BEN, "1")):
                usage.add(conn, usage.Used(asker, "m", 1, 2, Decimal(cost)))
            assert usage.spent(conn, ANNA) == (Decimal("0.75"), Decimal("1.75"))
        with database.owner() as conn:
            conn.execute("update nw.usage set at = at - interval '1 day'")
        with database.reader() as conn:
            assert usage.spent(conn, ANNA) == (0, 0)
