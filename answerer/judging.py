"""A second model's opinion of an answer, for `ask eval --judge`: whether the quotes bear it out.

What it is shown leaves the host once more, so it goes the way of every answer: shares that may leave alone,
each cited note decided and checked late again, private parts replaced, a row in the audit before, the cost
booked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from answerer.audit import Entry
from answerer.latecheck import Gate
from answerer.privacy import Redactor
from answerer.provider import Provider
from answerer.results import Answer, Jsonable
from answerer.visit import Desk, Visit
from db.search import Reading
from notewarden.display import path_candidates, show_path
from notewarden.errors import ProviderFailed
from notewarden.settings import Settings


@dataclass(frozen=True)
class JudgedAnswer(Jsonable):
    """An answer with its verdict; without one where it was refused, or may not be shown to a provider."""

    answer: Answer
    judged: bool = False
    supported: bool = False
    answers: bool = False


class Judge:
    """Asks the small model, or the only one. Threads may share it."""

    def __init__(self, settings: Settings, provider: Provider, desk: Desk) -> None:
        self._provider, self._desk = provider, desk
        self._external = frozenset(share.name for share in settings.shares if share.external)

    def judge(self, visit: Visit, answer: Answer) -> JudgedAnswer:
        """Return the answer with its verdict.

        Raises LimitReached, ProviderFailed also for a reply that is none, and what reading raises.
        """
        unjudged = JudgedAnswer(answer)
        if not answer.citations or any(one.share not in self._external for one in answer.citations):
            return unjudged
        if not self._desk.read(visit, _still_cited(answer, visit.gate)):
            return unjudged
        self._provider.require_budget(visit.asker)
        redactor = Redactor()
        quotes = [{"n": one.n, "text": redactor.redact(one.quote)} for one in answer.citations]
        shown = {"question": redactor.redact(answer.question), "answer": redactor.redact(answer.answer)}
        names = tuple(dict.fromkeys(f"{one.share}:{one.path}" for one in answer.citations))
        self._desk.record(visit, Entry("judge", question=answer.question, notes=names))
        reply = self._provider.verdict(
            visit.asker, json.dumps({**shown, "quotes": quotes}, ensure_ascii=False)
        )
        return JudgedAnswer(answer, True, *_read(reply))


def _still_cited(answer: Answer, gate: Gate) -> Callable[[Reading], bool]:
    """Whether every cited note passes the decision and the late check now."""
    places = {(one.share, one.path) for one in answer.citations}

    def work(held: Reading) -> bool:
        raw = [meant for _, path in places for meant in path_candidates(path)]
        ids = {(share, show_path(path)): note_id for note_id, share, path in held.notes_at(raw)}
        return all(place in ids and gate.lets(ids[place]) for place in places)

    return work


def _read(reply: str) -> tuple[bool, bool]:
    try:
        found = json.loads(reply)
        supported, answers = found["supported"], found["answers"]
    except (ValueError, KeyError, TypeError):
        supported = answers = None
    if not isinstance(supported, bool) or not isinstance(answers, bool):
        raise ProviderFailed("The reply of the judging model cannot be read; try again.")
    return supported, answers
