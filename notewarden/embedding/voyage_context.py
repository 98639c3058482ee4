"""Voyage's contextualized models: the vector of a chunk depends on the chunks of its note beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from time import sleep as wait
from typing import Any

import numpy as np

from notewarden.embedding.base import Vectors
from notewarden.embedding.voyage import (
    DOCUMENT_ATTEMPTS,
    Purpose,
    Refused,
    VoyageAccess,
    VoyageEmbedder,
    placed,
    refusal_of,
    sendable,
    unreadable,
)
from notewarden.privacy import redact_for_embedding

MODELS = "voyage-context-"
"""How the names of these models begin."""

_MOST_CHARACTERS = 32_000  # the tokens one call takes in all, at the worst of one token a character
_MOST_GROUPS = 1_000  # the provider's limit for one call
_GROUPING = "n1"  # how a note is split into groups: another way gives other vectors

Group = Sequence[str]


class VoyageContextEmbedder(VoyageEmbedder):
    """One contextualized model at one dimension, with every care of a plain one (see VoyageEmbedder).

    The chunks of a note go together, in order; a note too long for one call goes as groups of neighbouring
    chunks, each seen by itself. A group that is refused all the same is halved.
    """

    def __init__(
        self, model: str, dimension: int, access: VoyageAccess, sleep: Callable[[float], None] = wait
    ) -> None:
        super().__init__(model, dimension, access, sleep)
        self.identity = f"{self.identity}/{_GROUPING}"

    def groups(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """Return half-open ranges that tile a note's `texts`: those of one range are embedded together."""
        return list(_ranges([len(text) for text in texts], len(texts)))

    def embed_groups(self, groups: Sequence[Group]) -> Vectors:
        """Return one unit row per text, group after group. Raises EmbeddingFailed."""
        private = [[redact_for_embedding(text) for text in group] for group in groups]
        sizes = [sum(map(len, group)) for group in private]
        rows = [self._halving(private[first:last]) for first, last in _ranges(sizes, _MOST_GROUPS)]
        return np.concatenate(rows) if rows else np.empty((0, self.dimension), dtype=np.float32)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text, each seen by itself. Raises EmbeddingFailed."""
        return self.embed_groups([[text] for text in texts])

    def _halving(self, groups: Sequence[Group]) -> Vectors:
        try:
            return self._patiently(lambda: self._call_groups(groups, "document"), DOCUMENT_ATTEMPTS)
        except Refused:
            if len(groups) == 1 and len(groups[0]) == 1:
                raise refusal_of(groups[0][0]) from None
        first, second = _halves(groups)
        return np.concatenate([self._halving(first), self._halving(second)])

    def _call(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        return self._call_groups([texts] if texts else [], purpose)

    def _call_groups(self, groups: Sequence[Group], purpose: Purpose) -> Vectors:
        sent = {"inputs": [[sendable(text) for text in group] for group in groups], "model": self._model}
        reply = self._reply("ContextualizedEmbedding", sent, purpose)
        rows = _rows(reply, groups)
        return self._unit(rows, sum(map(len, groups)))


def _rows(reply: Any, groups: Sequence[Group]) -> Vectors:
    """Return the vectors by the index that each group, and each text in it, names. Raises Transient."""
    try:
        held = placed(reply["data"], len(groups))
        entries = [placed(one["data"], len(group)) for one, group in zip(held, groups, strict=True)]
        rows = [[entry["embedding"] for entry in group] for group in entries]
        return np.array([row for group in rows for row in group], dtype=np.float32)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise unreadable(error) from None


def _halves(groups: Sequence[Group]) -> tuple[Sequence[Group], Sequence[Group]]:
    """Cut several groups into two lots, a single one into two groups."""
    if len(groups) > 1:
        return groups[: len(groups) // 2], groups[len(groups) // 2 :]
    group = groups[0]
    return [group[: len(group) // 2]], [group[len(group) // 2 :]]


def _ranges(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield half-open ranges of at most `most` items and of the characters of one call, or of one item."""
    borders, size = [0], 0
    for number, here in enumerate(sizes):
        if number > borders[-1] and (number - borders[-1] >= most or size + here > _MOST_CHARACTERS):
            borders.append(number)
            size = 0
        size += here
    yield from pairwise([*borders, len(sizes)] if sizes else borders)
