"""The answerer itself, whichever door the question came through: one reading, one audit row, one result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from acl.directory import Directory
from acl.sid import Sid
from answerer import extracts
from answerer.audit import Auditor, Entry
from answerer.identity import Asker
from answerer.latecheck import Gate, Sight, Watch, find_watch
from answerer.paths import NOT_THERE, find_note, find_scope
from answerer.results import (
    Answer,
    Citation,
    ExplainedResult,
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
from db import latecheck
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
class Where:
    """Where the asker wants to look: a share's name, folders as arguments."""

    share: str | None = None
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply(Generic[_T]):
    """A result, and what the asker must be told besides."""

    result: _T
    notices: tuple[str, ...] = field(default=())


class Engine:
    """Answers. It keeps no state of any question, so threads may share it."""

    def __init__(
        self, settings: Settings, database: Database, directory: Directory, embedder: Embedder
    ) -> None:
        self._settings = settings
        self._database = database
        self._directory = directory
        self._embedder = embedder
        self._auditor = Auditor(settings)
        self._watch: Watch | None = find_watch(settings, directory)

    def ask(self, asker: Asker, question: str, where: Where = Where(), k: int = 8) -> Reply[Answer]:
        """Answer a question from the notes the asker may read; `found` is False where they hold none."""
        visit = self._visit(asker, question, k)
        if self._settings.answer.provider != "extracts":
            visit.notices.append("Answered with extracts: this version has no language model to ask.")
        query = self._with_vector(Query(clean(question)), visit)

        def work(held: Reading) -> Answer:
            self._narrow(held, where)
            ranking = rank(held, self._fitting(query, held, visit), self._settings.search, k)
            passages = select(held, ranking, visit.gate, k, self._settings.search.per_note)
            as_of = iso_or_none(held.as_of())
            quotes = self._quotes(held, ranking, passages, query.vector)
            citations = [self._cite(number, quote, visit.gate) for number, quote in enumerate(quotes, 1)]
            return Answer(
                question, bool(quotes), extracts.compose(quotes), citations, "extracts", None, as_of
            )

        answer = self._read(visit, work)
        cited = tuple(dict.fromkeys(f"{one.share}:{one.path}" for one in answer.citations))
        return self._finish(visit, answer, Entry("ask", question=question, notes=cited))

    def search(
        self, asker: Asker, words: str, where: Where = Where(), k: int = 8, *, explain: bool = False
    ) -> Reply[Results]:
        """Return min(k, readable) passages, best first. `explain` adds ranks, for privileged askers only."""
        if explain:
            asker.require_privileged("--explain")
        visit = self._visit(asker, words, k)
        query = self._with_vector(parse_words(clean(words)), visit)

        def work(held: Reading) -> Results:
            self._narrow(held, where)
            ranking = rank(held, self._fitting(query, held, visit), self._settings.search, k)
            passages = select(held, ranking, visit.gate, k, self._settings.search.per_note)
            rows = [_result(passage, ranking if explain else None) for passage in passages]
            return Results(rows, iso_or_none(held.as_of()))

        results = self._read(visit, work)
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
            self._narrow(held, Where(share))
            return self._shown(held, path, lines, visit.gate)

        shown = self._read(visit, work)
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

    def _visit(self, asker: Asker, text: str, k: int) -> _Visit:
        if not text.strip():
            raise UsageError("There is no question; say what you look for.")
        if len(text) > MOST_CHARACTERS:
            raise UsageError(f"The question is longer than {MOST_CHARACTERS} characters; shorten it.")
        if not 1 <= k <= MOST_PASSAGES:
            raise UsageError(f"-k must be between 1 and {MOST_PASSAGES}.")
        return self._visit_of(asker)

    def _visit_of(self, asker: Asker) -> _Visit:
        sight = None if self._watch is None else Sight(self._watch)
        gate = Gate(self._settings.answerer.late_check, sight, asker.require_token())
        return _Visit(asker, gate, sight)

    def _with_vector(self, query: Query, visit: _Visit) -> Query:
        """Measure the question before the transaction opens, so that a slow provider holds none up."""
        try:
            return replace(query, vector=self._embedder.embed_query(query.text or " "))
        except EmbeddingFailed as error:
            visit.notices.append(f"Searched by words only: {error}")
            return query

    def _fitting(self, query: Query, held: Reading, visit: _Visit) -> Query:
        """Leave the vector out where the index was made with another model."""
        serving = held.serving
        if query.vector is None or serving is None or serving.embedder == self._embedder.identity:
            return query
        visit.notices.append(
            "Searched by words only: the index was made with another embedding model; run `notewarden sync`."
        )
        return replace(query, vector=None)

    def _read(self, visit: _Visit, work: Callable[[Reading], _T]) -> _T:
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

    def _narrow(self, held: Reading, where: Where) -> None:
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

    def _cite(self, number: int, quote: extracts.Quote, gate: Gate) -> Citation:
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

    def _finish(self, visit: _Visit, result: _T, entry: Entry) -> Reply[_T]:
        """Write the audit row and only then let the result go: no row, no text."""
        with self._database.reader() as conn:
            self._auditor.record(conn, visit.asker, entry)
            latecheck.queue(conn, visit.sight.differing if visit.sight else ())
        unchecked = visit.gate.notice if entry.notes else None
        return Reply(result, (*visit.notices, *([unchecked] if unchecked else [])))


@dataclass
class _Visit:
    """One question while it is answered: who, the late check, what must be said besides."""

    asker: Asker
    gate: Gate
    sight: Sight | None = None
    notices: list[str] = field(default_factory=list)


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
