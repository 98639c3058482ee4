"""The daemon's door to the embedding model: it stops between texts, and leaves a failing model alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from indexer.faults import Faults
from notewarden.embedding.base import Embedder, Vectors
from notewarden.errors import EmbeddingFailed, Interrupted, QuotaReached

PROVIDER = "provider"


class Stopped(Interrupted):
    """The run was stopped between two notes."""


class Gate:
    """An embedder in front of `inner`, of the same identity.

    Texts go in slices, so that a stop is heard within one of them; the note in hand is then left as it was.
    After a failure that may pass, the model is not called again before its wait is over: until then every
    text fails at once, its note stays pending, and deletes and permissions go on.
    """

    def __init__(
        self, inner: Embedder, faults: Faults, stopped: Callable[[], bool], *, slice_texts: int
    ) -> None:
        self._inner = inner
        self._faults = faults
        self._stopped = stopped
        self._slice = slice_texts
        self.identity = inner.identity
        self.dimension = inner.dimension
        self.relevance_floor = inner.relevance_floor
        self.max_tokens = inner.max_tokens

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows as the model does. Raises EmbeddingFailed, Stopped."""
        rows = [self._part(texts[first : first + self._slice]) for first in range(0, len(texts), self._slice)]
        return np.concatenate(rows) if rows else self._inner.embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        """Return a question's unit vector; the daemon asks none."""
        return self._inner.embed_query(text)

    def _part(self, texts: Sequence[str]) -> Vectors:
        if self._stopped():
            raise Stopped
        if self._faults.holds(PROVIDER):
            raise EmbeddingFailed(self._faults.standing[PROVIDER].reason)
        try:
            made = self._inner.embed_documents(texts)
        except QuotaReached as error:
            self._faults.wait(PROVIDER, str(error), error.after_s)
            raise
        except EmbeddingFailed as error:
            if not error.permanent:
                self._faults.failed(PROVIDER, str(error))
            raise
        self._faults.passed(PROVIDER)
        return made
