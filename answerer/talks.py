"""Conversations as an answer uses them: what may still be said of earlier turns, decided anew each time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from answerer.followups import Meaning, joined, meaning
from answerer.identity import Asker
from answerer.latecheck import Gate
from answerer.privacy import new_nonce
from answerer.prompt import Exchange
from answerer.results import Answer, Citation
from db import conversations
from db.conversations import Conversation, Turn
from db.pool import Database
from db.search import Reading
from notewarden.display import show_path
from notewarden.errors import UsageError
from notewarden.settings import Settings

_MOST_TURNS = 6
_MOST_CHARACTERS = 12_000  # of earlier answers in a prompt
_MARKS = re.compile(r"[ \t]*\[(?:\d{1,4}|\?)\]")


@dataclass
class Talk:
    """A conversation of this asker; `conversation` None until its first turn is stored. `turns` are not yet
    decided on."""

    nonce: str = field(default_factory=new_nonce)
    conversation: Conversation | None = None
    turns: list[Turn] = field(default_factory=list)
    kept: bool = True


@dataclass(frozen=True)
class Plan:
    """What to do with a question: what to search for, which earlier turns may be used for it.

    `sendable` are those that rest on nothing but shares whose text may leave this machine.
    """

    meaning: Meaning
    search_for: str
    turns: tuple[Turn, ...] = ()
    sendable: tuple[Turn, ...] = ()

    @property
    def history(self) -> tuple[Exchange, ...]:
        """The earlier turns as they may be sent, the last ones first to be kept."""
        kept: list[Exchange] = []
        room = _MOST_CHARACTERS
        for turn in reversed(self.sendable):
            answer = _MARKS.sub("", turn.answer)
            room -= len(answer) + len(turn.question)
            if room < 0:
                break
            kept.append(Exchange(turn.question, answer))
        return tuple(reversed(kept))

    @property
    def notes(self) -> tuple[int, ...]:
        """Every note that the earlier turns which may be sent rest on."""
        return tuple(dict.fromkeys(note for turn in self.sendable for note in turn.notes))

    @property
    def last(self) -> Turn | None:
        """The turn that the question follows."""
        return self.turns[-1] if self.turns else None


class Talks:
    """Opens and continues conversations. It keeps none itself."""

    def __init__(self, settings: Settings, database: Database) -> None:
        """Where the audit may not keep what was asked, no conversation does either."""
        self._keep = settings.answer.history if settings.privacy.questions == "keep" else None
        self._database = database

    def open(self, asker: Asker, *, continued: bool) -> Talk:
        """Return the asker's last conversation, or a new one.

        Who acts for somebody gets neither: a conversation is its owner's. Raises UsageError where one is to
        be continued and none is kept.
        """
        if self._keep is None or asker.acts_for_another:
            if continued:
                raise UsageError(
                    "Conversations are not kept here ([answer] history, [privacy] questions)."
                    if self._keep is None
                    else "A conversation belongs to who led it; it cannot be continued with --as."
                )
            return Talk(kept=False)
        if not continued:
            return Talk()
        with self._database.reader() as conn:
            found = conversations.latest(conn, asker.account.sid, self._keep)
            turns = [] if found is None else conversations.turns(conn, asker.account.sid, found, _MOST_TURNS)
        return Talk() if found is None else Talk(found.nonce, found, turns)

    def store(self, asker: Asker, talk: Talk, turn: Turn) -> None:
        """Add a turn, in a new conversation if there is none yet or it was forgotten meanwhile."""
        if not talk.kept:
            return
        owner = asker.account.sid
        with self._database.reader() as conn:
            if talk.conversation is not None and conversations.add(conn, owner, talk.conversation, turn):
                return
            talk.conversation = conversations.begin(conn, owner, talk.nonce)
            conversations.add(conn, owner, talk.conversation, turn)

    def forget(self, asker: Asker) -> int:
        """Delete every conversation of who asks; returns how many there were."""
        with self._database.reader() as conn:
            return conversations.forget(conn, asker.actor)


@dataclass(frozen=True)
class _Note:
    note_id: int


def plan(held: Reading, gate: Gate, talk: Talk, question: str, external: frozenset[str]) -> Plan:
    """Return what the question means after those earlier turns whose every note passes the decision and the
    late check at this moment; the others are as if they had never been."""
    shares = _shares(held, gate, talk.turns)
    turns = [turn for turn in talk.turns if shares.keys() >= set(turn.notes)]
    if not turns:
        return Plan("new", question)
    found = meaning(question)
    previous = turns[-1].question
    search_for = joined(previous, question) if found == "follow-up" else question
    sendable = [turn for turn in turns if all(shares[note] in external for note in turn.notes)]
    return Plan(found, search_for, tuple(turns), tuple(sendable))


def _shares(held: Reading, gate: Gate, turns: Sequence[Turn]) -> dict[int, str]:
    """Return the share of each note of these turns that may be read at this moment."""
    named = sorted({note for turn in turns for note in turn.notes})
    readable = {one.note_id: one.share for one in held.indexed(named)} if named else {}
    passing = {one.note_id for one in gate.passed([_Note(note) for note in readable])}
    return {note: share for note, share in readable.items() if note in passing}


def still_cited(held: Reading, gate: Gate, turn: Turn) -> list[Citation]:
    """Return the citations of a turn that is given once more; what no longer stands there is "changed"."""
    places: dict[tuple[str, str], tuple[int, str]] = {}
    for note_id in turn.notes:
        head = held.head(note_id)
        if head is not None:
            text = "".join(piece.content for piece in held.pieces(note_id))
            places[head.share, show_path(head.path)] = note_id, text
    found = []
    for row in turn.citations:
        one = Citation(**row)
        note_id, text = places.get((one.share, one.path), (0, ""))
        fresh = gate.freshness(note_id) if one.quote in text else "changed"
        found.append(replace(one, freshness=fresh))
    return found


def as_turn(answer: Answer, notes: Sequence[int], chunks: Sequence[int]) -> Turn:
    """Return what is stored of an answer."""
    citations: list[dict[str, Any]] = answer.to_json()["citations"]
    return Turn(
        _storable(answer.question), _storable(answer.answer), list(notes), list(chunks), _plain(citations)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return _storable(value) if isinstance(value, str) else value


def _storable(text: str) -> str:
    """Text columns take neither NUL nor what is no Unicode."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
