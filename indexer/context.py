"""What one run of the indexer holds: its connection, model, directory and settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from acl.directory import Directory
from acl.source import Source, make_source
from db.errors import DatabaseFault
from db.generations import Recipe
from db.pool import Connection
from indexer.chunking import CHUNKER_VERSION, TEMPLATE_VERSION
from indexer.files import Files
from indexer.report import SyncReport
from notewarden.embedding.base import Embedder
from notewarden.settings import Settings
from notewarden.settings_sections import ShareSettings
from notewarden.terms import TERMS_VERSION


@dataclass(frozen=True)
class Progress:
    """How far the slow part of a run is: notes done and in all, chunks embedded so far."""

    share: str
    done: int
    total: int
    embedded: int


@dataclass
class Tries:
    """How the model fares: runs in a row before this one that got nothing of it, and calls of this run."""

    fruitless: int = 0
    asked: int = 0

    def after(self, embedded: int) -> int:
        """Return how many runs in a row got nothing, this one included."""
        if embedded:
            return 0
        return self.fruitless + 1 if self.asked else self.fruitless


class Waiting(Protocol):
    """A changed note whose rows wait for the moment when the generation that is built takes over."""

    @property
    def share(self) -> str:
        """Its share."""
        ...

    @property
    def path(self) -> bytes:
        """Its path."""
        ...

    def embed(self) -> None:
        """Have its vectors made. Raises EmbeddingFailed, which is recorded."""
        ...

    def save(self) -> None:
        """Store it. Must run inside a transaction. Raises DatabaseFault."""
        ...

    def saved(self) -> None:
        """Count it, once the transaction is through."""
        ...

    def wait(self, error: DatabaseFault | None = None) -> None:
        """Record that it waits on; `error`: what the database had against it."""
        ...

    def recount(self) -> None:
        """Let the report of its share say what stands now."""
        ...


@dataclass
class Run:
    """One run. The sources are made once, so that a name lost after loading is told from a wrong one."""

    settings: Settings
    conn: Connection
    directory: Directory
    embedder: Embedder
    generation_id: int
    serving: bool
    report: SyncReport
    files: Files = field(default_factory=Files)
    full: bool = False
    permissions: bool = True
    make_source: Callable[[ShareSettings, Directory], Source] = make_source
    progress: Callable[[Progress], None] = lambda progress: None
    stopped: Callable[[], bool] = lambda: False
    tries: Tries = field(default_factory=Tries)
    waiting: list[Waiting] = field(default_factory=list)

    @property
    def max_tokens(self) -> int:
        """The chunk budget: never more than the model reads."""
        return min(self.settings.chunking.max_tokens, self.embedder.max_tokens)


def recipe(settings: Settings, embedder: Embedder) -> Recipe:
    """Return what the rows made under these settings are made with."""
    budget = min(settings.chunking.max_tokens, embedder.max_tokens)
    return Recipe(
        chunker=f"{CHUNKER_VERSION}/{budget}",
        template=f"{TEMPLATE_VERSION}/terms {TERMS_VERSION}",
        embedder=embedder.identity,
        dimension=embedder.dimension,
    )
