"""Conversations of one person, through functions that give a person's own rows only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from acl.sid import Sid
from db.queries import load

_SQL = load("conversations")


@dataclass(frozen=True)
class Conversation:
    """A conversation: its id and the nonce of its placeholders."""

    conversation_id: int
    nonce: str


@dataclass(frozen=True)
class Turn:
    """One question and its answer ("" for none), with every note and chunk that was in its prompt."""

    question: str
    answer: str
    notes: list[int]
    chunks: list[int]
    citations: list[dict[str, Any]]


def begin(conn: Connection[Any], asker: Sid, nonce: str) -> Conversation:
    """Begin a conversation of `asker`."""
    with conn.transaction():
        row = conn.execute(_SQL["begin"], {"asker": asker, "nonce": nonce}).fetchone()
    assert row is not None
    return Conversation(int(row[0]), nonce)


def latest(conn: Connection[Any], asker: Sid, keep: timedelta) -> Conversation | None:
    """Return the last conversation of `asker` if it was gone on with within `keep`."""
    with conn.cursor(row_factory=class_row(Conversation)) as cursor:
        return cursor.execute(_SQL["latest"], {"asker": asker, "keep": keep}).fetchone()


def turns(conn: Connection[Any], asker: Sid, conversation: Conversation, most: int) -> list[Turn]:
    """Return the last `most` turns, oldest first; none of a conversation that is not the asker's."""
    values = {"asker": asker, "conversation": conversation.conversation_id, "most": most}
    with conn.cursor(row_factory=class_row(Turn)) as cursor:
        return cursor.execute(_SQL["turns"], values).fetchall()


def add(conn: Connection[Any], asker: Sid, conversation: Conversation, turn: Turn) -> bool:
    """Add a turn; returns False where the conversation is gone, or another's."""
    values = {
        "asker": asker,
        "conversation": conversation.conversation_id,
        "question": turn.question,
        "answer": turn.answer,
        "notes": turn.notes,
        "chunks": turn.chunks,
        "citations": Jsonb(turn.citations),
    }
    with conn.transaction():
        row = conn.execute(_SQL["add"], values).fetchone()
    return row is not None and bool(row[0])


def forget(conn: Connection[Any], asker: Sid) -> int:
    """Delete every conversation of `asker`; returns how many there were."""
    with conn.transaction():
        row = conn.execute(_SQL["forget"], {"asker": asker}).fetchone()
    return 0 if row is None else int(row[0])


def drop_old(conn: Connection[Any], keep: timedelta) -> int:
    """Delete what was not gone on with for that long, as the owner; returns how many."""
    return conn.execute(_SQL["drop_old"], {"keep": keep}).rowcount
