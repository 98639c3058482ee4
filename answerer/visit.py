"""One question on its way through the answerer: where it looks, and what must be said besides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from answerer.audit import Entry
from answerer.identity import Asker
from answerer.latecheck import Gate, Sight
from answerer.results import Citation
from answerer.retrieval import Query, Ranking
from db.search import Passage, Reading

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


@dataclass
class Visit:
    """One question while it is answered: who, the late check, what must be said besides."""

    asker: Asker
    gate: Gate
    sight: Sight | None = None
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Quoted:
    """A piece of a note's own text with its lines, for a citation."""

    passage: Passage
    text: str
    first_line: int
    last_line: int


class Desk(Protocol):
    """What an answer of any kind is made with: the one way to read, search, cite and write the audit."""

    def read(self, visit: Visit, work: Callable[[Reading], _T]) -> _T:
        """Run `work` in one reading under the asker's token."""

    def narrow(self, held: Reading, where: Where) -> None:
        """Take away what lies outside."""

    def with_vector(self, query: Query, visit: Visit) -> Query:
        """Measure the question; outside any reading."""

    def find(self, held: Reading, query: Query, visit: Visit, k: int) -> tuple[Ranking, list[Passage]]:
        """Rank and choose up to `k` passages, every note of which passed the late check."""

    def cite(self, number: int, quote: Quoted, gate: Gate) -> Citation:
        """Return the citation as it leaves."""

    def record(self, visit: Visit, entry: Entry) -> None:
        """Commit one row of the audit."""
