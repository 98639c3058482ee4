"""Answers written by a model: what it is given is found as for any answer, what it says is checked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from answerer.audit import Entry
from answerer.citations import UNCITED
from answerer.hidden import Hidden, Span, comment_spans
from answerer.judging import Judge
from answerer.model import Ending, ModelDown, Unfinished
from answerer.neighbours import with_neighbours
from answerer.privacy import Redactor, as_detail
from answerer.prompt import Prompt, Source, make_sources
from answerer.provider import Given, Provider, Said, Show
from answerer.results import Answer, iso_or_none
from answerer.retrieval import Query, clean
from answerer.talks import Plan
from answerer.visit import Desk, Quoted, Visit, Where
from db.search import Passage, Reading, Scope
from db.whole import characters
from notewarden.errors import ProviderFailed
from notewarden.settings import Settings

_CHARACTERS_PER_TOKEN = 3  # at the least, so that a limit in tokens holds


@dataclass(frozen=True)
class Wanted:
    """A question that a model is to answer."""

    question: str
    where: Where
    k: int
    plan: Plan
    redactor: Redactor


@dataclass(frozen=True)
class Made:
    """An answer, and what was in its prompt."""

    answer: Answer
    notes: tuple[int, ...]
    chunks: tuple[int, ...]


@dataclass(frozen=True)
class _Gathered:
    sources: tuple[Source, ...]
    hidden: Counter[Hidden]
    as_of: str | None
    kept_here: tuple[str, ...]
    whole: bool


class ModelAnswers:
    """Answers through a provider, from shares whose text may leave and no others."""

    def __init__(self, settings: Settings, provider: Provider, desk: Desk) -> None:
        self._settings = settings
        self._provider = provider
        self._desk = desk
        self.judge = Judge(settings, provider, desk)
        self._external = tuple(share.name for share in settings.shares if share.external)

    def require_budget(self, visit: Visit) -> None:
        """Raise LimitReached where nothing may be spent any more today."""
        self._provider.require_budget(visit.asker)

    def reword(self, visit: Visit, wanted: Wanted) -> str:
        """Return what to search for: the follow-up reworded by the small model, else as the plan has it."""
        question, where, plan, redactor = wanted.question, wanted.where, wanted.plan, wanted.redactor
        leaves = where.share is None or where.share in self._external
        if plan.meaning != "follow-up" or not plan.history or not leaves or not self._provider.rewords:
            return plan.search_for
        given = Given(visit.asker, Prompt(question, (), plan.history), redactor)
        self._desk.record(visit, Entry("reword", question=question, detail={"turns": len(plan.history)}))
        try:
            return self._provider.reword(given) or plan.search_for
        except ProviderFailed:
            return plan.search_for

    def answer(self, visit: Visit, wanted: Wanted, show: Show) -> Made | None:
        """Return the answer, or None where no passage may be given to a model.

        Raises ModelDown before anything was shown, Unfinished after.
        """
        gathered = self._gather(visit, wanted)
        if gathered is None:
            return None
        prompt = Prompt(wanted.question, gathered.sources, wanted.plan.history, gathered.hidden)
        given = Given(visit.asker, prompt, wanted.redactor, cache=gathered.whole)
        names = tuple(dict.fromkeys(source.name for source in gathered.sources))
        detail = {"provider": "anthropic", "passages": len(gathered.sources)}
        self._desk.record(visit, Entry("ask", question=wanted.question, notes=names, detail=detail))
        said = self._said(visit, given, show)
        self._tell(visit, said, gathered)
        return self._made(visit, wanted, gathered, said)

    def _gather(self, visit: Visit, wanted: Wanted) -> _Gathered | None:
        query = self._desk.with_vector(Query(clean(wanted.plan.search_for)), visit)

        def work(held: Reading) -> _Gathered | None:
            self._desk.narrow(held, wanted.where)
            as_of = iso_or_none(held.as_of())
            kept_here = tuple(name for name in held.shares() if name not in self._external)
            held.narrow(Scope(self._external, None))
            whole = self._fits_whole(held)
            passages = self._passages(held, query, visit, wanted, whole=whole)
            hidden: Counter[Hidden] = Counter()
            sources = make_sources(passages, _comments(held, passages), hidden)
            return _Gathered(sources, hidden, as_of, kept_here, whole) if sources else None

        return self._desk.read(visit, work)

    def _passages(
        self, held: Reading, query: Query, visit: Visit, wanted: Wanted, *, whole: bool
    ) -> list[Passage]:
        last = wanted.plan.last
        if wanted.plan.meaning == "rework" and last is not None:
            return visit.gate.passed(held.passages(sorted(held.notes_of(last.chunks))))
        size = held.sizes()[0]
        if whole:
            return visit.gate.passed(held.passages(held.any_chunks(size)))
        most = min(wanted.k, self._settings.answer.max_passages)
        found = self._desk.find(held, query, visit, most)[1] if size else []
        return with_neighbours(held, visit.gate, found)

    def _fits_whole(self, held: Reading) -> bool:
        most = self._settings.answer.whole_limit * _CHARACTERS_PER_TOKEN
        return self._settings.answer.mode == "auto" and 0 < characters(held) <= most

    def _said(self, visit: Visit, given: Given, show: Show) -> Said:
        """Ask, and leave a row of how it ended whatever that was."""
        ending: Ending = "interrupted"
        said: Said | None = None
        try:
            said = self._provider.answer(given, show)
            ending = "complete"
        except ModelDown:
            ending = "down"
            raise
        except Unfinished as error:
            ending = error.ending
            raise
        finally:
            self._desk.record(visit, _ended(ending, said, given))
        return said

    def _tell(self, visit: Visit, said: Said, gathered: _Gathered) -> None:
        done = said.composed
        if done.uncited and done.cited:
            visit.notices.append(
                f"No note bears out what is marked {UNCITED}: {done.uncited} of the answer's sentences."
            )
        if gathered.kept_here:
            visit.notices.append(
                f"Not looked at for this answer, as its text stays on this machine: "
                f"{', '.join(gathered.kept_here)}; ask there with --share."
            )

    def _made(self, visit: Visit, wanted: Wanted, gathered: _Gathered, said: Said) -> Made:
        done = said.composed
        quotes = [Quoted(one.passage, one.text, one.first_line, one.last_line) for one in done.cited]
        citations = [self._desk.cite(n, one, visit.gate) for n, one in enumerate(quotes, 1)]
        tokens = {"input_tokens": said.usage.input, "output_tokens": said.usage.output}
        found = bool(citations)
        text = done.text.strip() if found else ""
        answer = Answer(wanted.question, found, text, citations, said.model, tokens, gathered.as_of)
        passages = [source.passage for source in gathered.sources]
        notes = dict.fromkeys((*(one.note_id for one in passages), *wanted.plan.notes))
        return Made(answer, tuple(notes), tuple(one.chunk_id for one in passages))


def _ended(ending: Ending, said: Said | None, given: Given) -> Entry:
    detail: dict[str, Any] = {"ending": ending, "replaced": as_detail(given.redactor.counts)}
    detail["hidden"] = {name: count for name, count in given.prompt.hidden.items() if count}
    if said is None:
        return Entry("answer", detail=detail)
    done = said.composed
    detail |= {"model": said.model, "uncited": done.uncited, "fallen": done.fallen, "found": bool(done.cited)}
    names = {source.passage.note_id: source.name for source in given.prompt.sources}
    return Entry(
        "answer", notes=tuple(dict.fromkeys(names[one.passage.note_id] for one in done.cited)), detail=detail
    )


def _comments(held: Reading, passages: Sequence[Passage]) -> Mapping[int, list[Span]]:
    """Return where in each chunk a comment stands, found from the note's beginning, where it may open."""
    found: dict[int, list[Span]] = {}
    by_note: dict[int, dict[int, Passage]] = defaultdict(dict)
    for passage in passages:
        by_note[passage.note_id][passage.seq] = passage
    for note_id, chosen in by_note.items():
        pieces = _pieces(held, note_id, chosen)
        spans = comment_spans("".join(pieces))
        if not spans:
            continue
        for seq, passage in chosen.items():
            start = sum(map(len, pieces[:seq]))
            found[passage.chunk_id] = [(first - start, last - start) for first, last in spans]
    return found


def _pieces(held: Reading, note_id: int, chosen: Mapping[int, Passage]) -> list[str]:
    """Return the note's chunks from its first to the last one chosen; no query where all are chosen."""
    last = max(chosen)
    if len(chosen) == last + 1:
        return [chosen[seq].content for seq in range(last + 1)]
    return [piece.content for piece in held.pieces(note_id)][: last + 1]
