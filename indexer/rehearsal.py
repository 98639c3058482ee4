"""`sync --dry-run`: the same run in a transaction that is rolled back, with a model that only counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from db.pool import Database
from indexer.report import SyncReport
from indexer.setup import Equipment
from indexer.sync import Indexer, Options, sole_indexer
from notewarden.embedding.base import Embedder, InContext, Vectors, WithTokens
from notewarden.settings import Settings
from notewarden.wordpiece import count_tokens

_PLAIN = Options()


class CountingEmbedder:
    """Stands in for the model of `like`: same identity, so that the same vectors count as already made."""

    def __init__(self, like: Embedder) -> None:
        self.identity = like.identity
        self.dimension = like.dimension
        self.relevance_floor = like.relevance_floor
        self.max_tokens = like.max_tokens
        self.texts = 0
        self.tokens = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Count the texts and return one and the same unit vector for each."""
        self.texts += len(texts)
        self.tokens += sum(map(count_tokens, texts))
        made = np.zeros((len(texts), self.dimension), dtype=np.float32)
        made[:, 0] = 1.0
        return made

    def embed_query(self, text: str) -> Vectors:
        """Return a unit vector; a rehearsal asks nothing."""
        one: Vectors = self.embed_documents([text])[0]
        return one


class _WithTokens(CountingEmbedder):
    """Stands in for a model that gives its tokens' vectors too."""

    def embed_with_tokens(self, texts: Sequence[str], heads: Sequence[int]) -> tuple[Vectors, list[bytes]]:
        """Count the texts; they have no tokens."""
        return self.embed_documents(texts), [b""] * len(texts)


class _InContext(CountingEmbedder):
    """Stands in for a model that embeds a note's chunks together."""

    def __init__(self, like: InContext) -> None:
        super().__init__(like)
        self.groups = like.groups

    def embed_groups(self, groups: Sequence[Sequence[str]]) -> Vectors:
        """Count the texts of all groups."""
        return self.embed_documents([text for group in groups for text in group])


def counting(like: Embedder) -> CountingEmbedder:
    """Return what stands in for `like` and offers what it offers."""
    if isinstance(like, InContext):
        return _InContext(like)
    return _WithTokens(like) if isinstance(like, WithTokens) else CountingEmbedder(like)


class Rehearsal(Indexer):
    """An indexer that leaves nothing behind: everything it would do is done, reported and rolled back."""

    def __init__(self, settings: Settings, database: Database, equipment: Equipment) -> None:
        self.counted = counting(equipment.embedder)
        super().__init__(settings, database, directory=equipment.directory, embedder=self.counted)

    def sync(self, options: Options = _PLAIN) -> SyncReport:
        """Return what a sync would report now. Raises as Indexer.sync does."""
        self._check_sources()
        with (
            self.database.owner() as conn,
            sole_indexer(conn),
            conn.transaction(force_rollback=True),
        ):
            return self._run(conn, replace(options, daemon=False))

    def as_json(self, report: SyncReport) -> dict[str, Any]:
        """Return the report in the shape of a sync, without a run, and what its embedding would cost."""
        cost = {"texts": self.counted.texts, "tokens": self.counted.tokens}
        return {**report.as_json(), "run": None, "dry_run": True, "cost": cost}
