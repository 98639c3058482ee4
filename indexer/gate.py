"""The daemon's door to the embedding model: it stops between texts, and leaves a failing model alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from indexer.faults import Faults
from notewarden.embedding.base import Embedder, InContext, Metered, Vectors, WithTokens
from notewarden.errors import EmbeddingFailed, Interrupted, QuotaReached

PROVIDER = "provider"

_T = TypeVar("_T")
_Item = TypeVar("_Item")


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
        if not texts:
            return self._inner.embed_documents(texts)
        return np.concatenate(
            [self._asked(self._inner.embed_documents, part) for part in self._slices(texts)]
        )

    def embed_query(self, text: str) -> Vectors:
        """Return a question's unit vector; the daemon asks none."""
        return self._inner.embed_query(text)

    def take_tokens(self) -> int:
        """Return how many tokens were billed since this was last asked; 0 where nothing is billed."""
        return self._inner.take_tokens() if isinstance(self._inner, Metered) else 0

    def _slices(self, items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
        for first in range(0, len(items), self._slice):
            yield items[first : first + self._slice]

    def _asked(self, ask: Callable[[Sequence[_Item]], _T], part: Sequence[_Item]) -> _T:
        if self._stopped():
            raise Stopped
        if self._faults.holds(PROVIDER):
            raise EmbeddingFailed(self._faults.standing[PROVIDER].reason)
        try:
            made = ask(part)
        except QuotaReached as error:
            self._faults.wait(PROVIDER, str(error), error.after_s)
            raise
        except EmbeddingFailed as error:
            if not error.permanent:
                self._faults.failed(PROVIDER, str(error))
            raise
        self._faults.passed(PROVIDER)
        return made


class GateWithTokens(Gate):
    """In front of a model that gives its tokens' vectors too."""

    _inner: WithTokens

    def embed_with_tokens(self, texts: Sequence[str], heads: Sequence[int]) -> tuple[Vectors, list[bytes]]:
        """Return what the model does. Raises EmbeddingFailed, Stopped."""
        if not texts:
            return self._inner.embed_with_tokens(texts, heads)
        pairs = list(zip(texts, heads, strict=True))
        made = [self._asked(self._ask_both, part) for part in self._slices(pairs)]
        return np.concatenate([rows for rows, _ in made]), [one for _, tokens in made for one in tokens]

    def _ask_both(self, part: Sequence[tuple[str, int]]) -> tuple[Vectors, list[bytes]]:
        return self._inner.embed_with_tokens([text for text, _ in part], [head for _, head in part])


class GateInContext(Gate):
    """In front of a model that embeds a note's chunks together: a slice is so many groups."""

    _inner: InContext

    def groups(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """Return the ranges of a note's texts that are embedded together."""
        return self._inner.groups(texts)

    def embed_groups(self, groups: Sequence[Sequence[str]]) -> Vectors:
        """Return unit rows, group after group. Raises EmbeddingFailed, Stopped."""
        if not groups:
            return self._inner.embed_groups(groups)
        return np.concatenate([self._asked(self._inner.embed_groups, part) for part in self._slices(groups)])


def gate(inner: Embedder, faults: Faults, stopped: Callable[[], bool], *, slice_texts: int) -> Gate:
    """Return the gate that offers what `inner` offers."""
    made = GateInContext if isinstance(inner, InContext) else Gate
    made = GateWithTokens if isinstance(inner, WithTokens) else made
    return made(inner, faults, stopped, slice_texts=slice_texts)
