"""The answerer itself, whichever door the question came through: one reading, one audit row, one result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from acl.directory import Directory
from acl.sid import Sid
from answerer import extracts
from answerer.audit import Auditor, Entry
from answerer.identity import Asker
from answerer.judging import JudgedAnswer
from answerer.latecheck import Gate, Sight, Watch, find_watch
from answerer.meter import Meter
from answerer.model import ModelDown
from answerer.modelanswer import Made, ModelAnswers, Wanted
from answerer.paths import NOT_THERE, find_note, find_scope
from answerer.privacy import Redactor
from answerer.provider import Provider, Show
from answerer.rerank import DEPTH, FromIndex, Reranker, make_reranker, reordered
from answerer.results import (
    Answer,
    Citation,
    ExplainedResult,
    Forgotten,
    Result,
    Results,
    Shown,
    State,
    iso,
    iso_or_none,
    link_to,
)
from answerer.retrieval import Query, Ranking, clean, parse_words, rank, select
from answerer.shown import cut_lines
from answerer.talks import Plan, Talk, Talks, as_turn, still_cited
from answerer.talks import plan as plan_of
from answerer.visit import Quoted, Reply, Visit, Where
from db import latecheck
from db.conversations import Turn
from db.pool import Database
from db.search import Passage, Reading, last_poll, reading
from notewarden.display import show_path
from notewarden.embedding.base import Embedder, Vectors
from notewarden.errors import AskerUnknown, EmbeddingFailed, IndexTooOld, NotInNotes, UsageError
from notewarden.settings import Settings

MOST_PASSAGES = 1000
MOST_CHARACTERS = 10_000  # of a question

_T = TypeVar("_T")


@dataclass(frozen=True)
class Thread:
    """How a question stands among others: whether it goes on, and who is shown the answer as it comes."""

    continued: bool = False
    show: Show = lambda _: None


_ALONE = Thread()
_ANYWHERE = Where()


class Engine:
    """Answers. It keeps no state of any question, so threads may share it."""

    def __init__(
        self, settings: Settings, database: Database, directory: Directory, embedder: Embedder
    ) -> None:
        self._settings = settings
        self._database = database
        self._directory = directory
        self._embedder = embedder
        self._meter = Meter(embedder, settings.embedding, database)
        self._auditor = Auditor(settings)
        self._watch: Watch | None = find_watch(settings, directory)
        self._reranker = make_reranker(settings, embedder)
        self._talks = Talks(settings, database)
        self._models: ModelAnswers | None = None
        if settings.answer.provider == "anthropic":
            self._models = ModelAnswers(settings, Provider(settings.answer, database), self)

    def ask(
        self,
        asker: Asker,
        question: str,
        where: Where = _ANYWHERE,
        k: int = 8,
        *,
        thread: Thread = _ALONE,
    ) -> Reply[Answer]:
        """Answer a question from the notes the asker may read; `found` is False where they hold none.

        `thread` continues the asker's last conversation, and takes what can be shown of the answer before it
        is whole. Raises LimitReached, and Unfinished where a model broke off after something was shown.
        """
        visit = self._visit(asker, question, k)
        talk = self._talks.open(asker, continued=thread.continued)
        plan = self._plan(visit, talk, question)
        if plan.meaning == "repeat" and plan.last is not None:
            return self._repeated(visit, question, plan.last)
        made = self._by_model(visit, Wanted(question, where, k, plan, Redactor(talk.nonce)), thread.show)
        if made is not None:
            self._talks.store(asker, talk, as_turn(made.answer, made.notes, made.chunks))
            return self._queued(visit, made.answer, told=made.answer.found)
        answer, notes = self._by_extracts(visit, question, plan, where, k)
        cited = tuple(dict.fromkeys(f"{one.share}:{one.path}" for one in answer.citations))
        reply = self._finish(visit, answer, Entry("ask", question=question, notes=cited))
        self._talks.store(asker, talk, as_turn(answer, notes, ()))
        return reply

    def judged(self, asker: Asker, question: str, k: int = 8) -> Reply[JudgedAnswer]:
        """Answer, and let a model judge the answer. Raises UsageError where none is configured."""
        if self._models is None:
            raise UsageError('There is no model that could judge; set [answer] provider = "anthropic".')
        reply = self.ask(asker, question, k=k)
        return Reply(self._models.judge.judge(self._visit_of(asker), reply.result), reply.notices)

    def forget(self, asker: Asker) -> Reply[Forgotten]:
        """Delete every conversation of who asks, whoever's rights they use."""
        with self._database.reader() as conn:
            self._auditor.record(conn, asker, Entry("forget"))
        return Reply(Forgotten(self._talks.forget(asker)))

    def _plan(self, visit: Visit, talk: Talk, question: str) -> Plan:
        if not talk.turns:
            return Plan("new", question)
        external = frozenset(share.name for share in self._settings.shares if share.external)
        return self.read(visit, lambda held: plan_of(held, visit.gate, talk, question, external))

    def _repeated(self, visit: Visit, question: str, turn: Turn) -> Reply[Answer]:
        """Give the last answer once more: its notes passed the decision and the late check just now."""

        def work(held: Reading) -> tuple[list[Citation], str | None]:
            return still_cited(held, visit.gate, turn), iso_or_none(held.as_of())

        citations, as_of = self.read(visit, work)
        model = "extracts" if self._models is None else self._settings.answer.model
        usage = None if self._models is None else {"input_tokens": 0, "output_tokens": 0}
        answer = Answer(question, bool(citations), turn.answer, citations, model, usage, as_of)
        cited = tuple(dict.fromkeys(f"{one.share}:{one.path}" for one in citations))
        return self._finish(visit, answer, Entry("ask", question=question, notes=cited))

    def _by_model(self, visit: Visit, wanted: Wanted, show: Show) -> Made | None:
        """Return the model's answer; None where extracts are to answer, with the reason among the notices."""
        if self._models is None:
            return None
        self._models.require_budget(visit)
        search_for = self._models.reword(visit, wanted)
        wanted = replace(wanted, plan=replace(wanted.plan, search_for=search_for))
        try:
            made = self._models.answer(visit, wanted, show)
        except ModelDown as error:
            if self._settings.answer.fallback == "none":
                raise
            visit.notices.append(f"Answered with extracts instead: {error}")
            return None
        if made is None:
            visit.notices.append("Answered with extracts: no text that may leave this machine fits.")
        return made

    def _by_extracts(
        self, visit: Visit, question: str, plan: Plan, where: Where, k: int
    ) -> tuple[Answer, list[int]]:
        query = self.with_vector(Query(clean(plan.search_for)), visit)

        def work(held: Reading) -> tuple[Answer, list[int]]:
            self.narrow(held, where)
            ranking, passages = self.find(held, query, visit, k)
            as_of = iso_or_none(held.as_of())
            quotes = self._quotes(held, ranking, passages, query.vector)
            citations = [self.cite(n, _quoted(quote), visit.gate) for n, quote in enumerate(quotes, 1)]
            text = extracts.compose(quotes)
            answer = Answer(question, bool(quotes), text, citations, "extracts", None, as_of)
            return answer, list(dict.fromkeys(one.passage.note_id for one in quotes))

        return self.read(visit, work)

    def find(self, held: Reading, query: Query, visit: Visit, k: int) -> tuple[Ranking, list[Passage]]:
        """Rank and choose up to `k` passages, every note of which passed the late check."""
        ranking = rank(held, self._fitting(query, held, visit), self._settings.search, k)
        if self._reranker is not None:
            reranker = self._reranker
            reranker = reranker.over(held) if isinstance(reranker, FromIndex) else reranker
            ranking = self._rerank(reranker, ranking, query, visit)
        return ranking, select(held, ranking, visit.gate, k, self._settings.search.per_note)

    def _rerank(self, reranker: Reranker, ranking: Ranking, query: Query, visit: Visit) -> Ranking:
        """Put the first candidates in order; only what passes the late check is shown to the reranker."""
        first = visit.gate.passed(ranking.passages[:DEPTH])
        external = frozenset(share.name for share in self._settings.shares if share.external)
        better, notice = reordered(reranker, query.text, first, external)
        if notice is not None:
            visit.notices.append(notice)
        return replace(ranking, passages=better + ranking.passages[DEPTH:])

    def search(
        self, asker: Asker, words: str, where: Where = _ANYWHERE, k: int = 8, *, explain: bool = False
    ) -> Reply[Results]:
        """Return min(k, readable) passages, best first. `explain` adds ranks, for privileged askers only."""
        if explain:
            asker.require_privileged("--explain")
        visit = self._visit(asker, words, k)
        query = self.with_vector(parse_words(clean(words)), visit)

        def work(held: Reading) -> Results:
            self.narrow(held, where)
            ranking, passages = self.find(held, query, visit, k)
            rows = [_result(passage, ranking if explain else None) for passage in passages]
            return Results(rows, iso_or_none(held.as_of()))

        results = self.read(visit, work)
        named = tuple(dict.fromkeys(f"{row.share}:{row.path}" for row in results.results))
        return self._finish(visit, results, Entry("search", question=words, notes=named))

    def show(
        self, asker: Asker, path: str, share: str | None = None, lines: tuple[int, int] | None = None
    ) -> Reply[Shown]:
        """Return a note, or its lines from `lines` = (first, last), 1-based and inclusive.

        Raises NotInNotes with one sentence for absent, hidden, gone and out of scope.
        """
        visit = self._visit_of(asker)

        def work(held: Reading) -> Shown | None:
            self.narrow(held, Where(share))
            return self._shown(held, path, lines, visit.gate)

        shown = self.read(visit, work)
        named = () if shown is None else (f"{shown.share}:{shown.path}",)
        reply = self._finish(visit, shown, Entry("show", path=path, notes=named))
        if reply.result is None:
            raise NotInNotes(NOT_THERE)
        return Reply(reply.result, reply.notices)

    def status(self, asker: Asker) -> Reply[State]:
        """Return who asks, their groups, how old the index is and how many notes they may read."""
        with self._database.reader() as conn:
            if asker.acts_for_another:
                self._auditor.record(conn, asker, Entry("status"))
            if asker.token is None:
                as_of = iso_or_none(last_poll(conn))
                return Reply(State(asker.account.name, asker.account.sid, [], None, as_of))
            with reading(conn, asker.token) as held:
                notes, as_of = held.count_notes(), iso_or_none(held.as_of())
        others = [one for one in asker.token.through if not self._is(one, asker)]
        groups = sorted({self._directory.name_of(one) or str(one) for one in others})
        return Reply(State(asker.account.name, asker.account.sid, groups, notes, as_of))

    def _is(self, sid: Sid, asker: Asker) -> bool:
        """Whether a SID is one of the asker's own further ones, not a group's."""
        try:
            return self._directory.user(sid).sid == asker.account.sid
        except AskerUnknown:
            return False

    def _visit(self, asker: Asker, text: str, k: int) -> Visit:
        if not text.strip():
            raise UsageError("There is no question; say what you look for.")
        if len(text) > MOST_CHARACTERS:
            raise UsageError(f"The question is longer than {MOST_CHARACTERS} characters; shorten it.")
        if not 1 <= k <= MOST_PASSAGES:
            raise UsageError(f"-k must be between 1 and {MOST_PASSAGES}.")
        return self._visit_of(asker)

    def _visit_of(self, asker: Asker) -> Visit:
        sight = None if self._watch is None else Sight(self._watch)
        gate = Gate(self._settings.answerer.late_check, sight, asker.require_token())
        return Visit(asker, gate, sight)

    def with_vector(self, query: Query, visit: Visit) -> Query:
        """Measure the question before the transaction opens, so that a slow provider holds none up."""
        try:
            return replace(query, vector=self._meter.embed_query(query.text or " ", visit.asker))
        except EmbeddingFailed as error:
            visit.notices.append(f"Searched by words only: {error}")
            return query

    def _fitting(self, query: Query, held: Reading, visit: Visit) -> Query:
        """Leave the vector out where the index was made with another model."""
        serving = held.serving
        if query.vector is None or serving is None or serving.embedder == self._embedder.identity:
            return query
        visit.notices.append(
            "Searched by words only: the index was made with another embedding model; run `notewarden sync`."
        )
        return replace(query, vector=None)

    def read(self, visit: Visit, work: Callable[[Reading], _T]) -> _T:
        """Run `work` in one reading under the asker's token."""
        with self._database.reader() as conn, reading(conn, visit.asker.require_token()) as held:
            if visit.sight is not None:
                visit.sight.reading = held
            self._require_recent(held)
            return work(held)

    def _require_recent(self, held: Reading) -> None:
        """Raise IndexTooOld if nothing may be read because no permission is young enough to count."""
        if held.sizes()[0] or not self._settings.shares:
            return
        polled = held.as_of()
        if polled is None:
            raise IndexTooOld("Nothing is indexed yet; run `notewarden sync`.")
        if held.too_old():
            raise IndexTooOld(
                f"The permissions in the index are too old to be trusted (last poll: {iso(polled)}); "
                "run `notewarden sync`."
            )

    def narrow(self, held: Reading, where: Where) -> None:
        """Take away what lies outside."""
        if where.share is not None or where.folders:
            held.narrow(find_scope(held, where.share, where.folders, self._settings.shares))

    def _quotes(
        self, held: Reading, ranking: Ranking, passages: Sequence[Passage], vector: Vectors | None
    ) -> list[extracts.Quote]:
        cosine = dict(ranking.cosine)
        if vector is not None and ranking.vector_rank:
            missing = [one.chunk_id for one in passages if one.chunk_id not in cosine]
            cosine |= {at: float(value @ vector) for at, value in held.vectors(missing).items()}
        words = ranking.keyword.words
        if not extracts.is_answerable(passages, words, cosine, self._embedder.relevance_floor):
            return []
        # Single sentences go to a model on this machine only: elsewhere each would cost and leave the host.
        here = self._settings.embedding.provider == "local"
        question = extracts.Question(words, vector if ranking.vector_rank else None)
        return extracts.extract(passages, question, self._embedder if here else None, cosine)

    def cite(self, number: int, quote: Quoted, gate: Gate) -> Citation:
        """Return the citation as it leaves."""
        passage = quote.passage
        templates = {share.name: share.link for share in self._settings.shares}
        return Citation(
            n=number,
            share=passage.share,
            path=show_path(passage.path),
            heading=list(passage.heading),
            first_line=quote.first_line,
            last_line=quote.last_line,
            quote=quote.text,
            link=link_to(templates.get(passage.share), passage.path),
            modified=iso(passage.modified_at),
            freshness=gate.freshness(passage.note_id),
        )

    def _shown(self, held: Reading, path: str, lines: tuple[int, int] | None, gate: Gate) -> Shown | None:
        try:
            note_id = find_note(held, path, self._settings.shares)
        except NotInNotes:
            return None
        head = held.head(note_id)
        if head is None or not gate.lets(note_id):
            return None
        text = cut_lines(held.pieces(note_id), lines)
        return Shown(head.share, show_path(head.path), iso(head.modified_at), text)

    def record(self, visit: Visit, entry: Entry) -> None:
        """Commit one row of the audit."""
        with self._database.reader() as conn:
            self._auditor.record(conn, visit.asker, entry)

    def _finish(self, visit: Visit, result: _T, entry: Entry) -> Reply[_T]:
        """Write the audit row and only then let the result go: no row, no text."""
        self.record(visit, entry)
        return self._queued(visit, result, told=bool(entry.notes))

    def _queued(self, visit: Visit, result: _T, *, told: bool) -> Reply[_T]:
        """Queue what was found to differ, and say what must be said."""
        with self._database.reader() as conn:
            latecheck.queue(conn, visit.sight.differing if visit.sight else ())
        unchecked = visit.gate.notice if told else None
        return Reply(result, (*visit.notices, *([unchecked] if unchecked else [])))


def _quoted(quote: extracts.Quote) -> Quoted:
    return Quoted(quote.passage, quote.text, quote.first_line, quote.last_line)


def _result(passage: Passage, ranking: Ranking | None) -> Result:
    values = {
        "share": passage.share,
        "path": show_path(passage.path),
        "heading": list(passage.heading),
        "first_line": passage.first_line,
        "last_line": passage.last_line,
        "text": passage.content,
    }
    if ranking is None:
        return Result(**values)  # type: ignore[arg-type]
    chunk_id = passage.chunk_id
    ranks = ranking.vector_rank.get(chunk_id), ranking.keyword_rank.get(chunk_id)
    return ExplainedResult(**values, vector_rank=ranks[0], keyword_rank=ranks[1])  # type: ignore[arg-type]
