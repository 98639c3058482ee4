"""A changed note that waits for the moment when the generation that is built takes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from db.errors import DatabaseFault
from db.notes import NewNote
from notewarden.errors import EmbeddingFailed

if TYPE_CHECKING:
    from indexer.indexing import Indexing, Prepared
    from indexer.vectors import Made

_TAKING_OVER = "it changed while the notes are indexed in a new way, and follows when that takes over"


class Held:
    """A changed note that waits for the generation that is built to take over (context.Waiting)."""

    def __init__(self, work: Indexing, one: Prepared) -> None:
        self._work = work
        self._one = one
        self._row: tuple[NewNote, Made] | None = None
        self._refused = False

    @property
    def share(self) -> str:
        """Its share."""
        return self._work.share.share

    @property
    def path(self) -> bytes:
        """Its path."""
        return self._one.job.path

    def embed(self) -> None:
        """Have its vectors made. Raises EmbeddingFailed, which is recorded."""
        try:
            made = self._work.vectors([self._one])
            self._row = self._work.row(self._one, made), made
        except EmbeddingFailed as error:
            self._work.failed(self._one, error)
            raise

    def save(self) -> None:
        """Store it. Must run inside a transaction. Raises DatabaseFault."""
        assert self._row is not None
        self._work.store(*self._row)

    def saved(self) -> None:
        """Count it, once the transaction is through."""
        self._work.count(self._one)
        self._work.tidy()

    def wait(self, error: DatabaseFault | None = None) -> None:
        """Record that it waits on; `error`: what the database had against it."""
        if error is not None:
            self._refused = True
            self._work.refused(self._one, error)
        elif not self._refused:
            self._work.wait([self.path], _TAKING_OVER)

    def recount(self) -> None:
        """Let the report of its share say what stands now."""
        self._work.recount()
