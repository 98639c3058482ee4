"""Putting the best candidates in a better order: one interface, and what happens when it fails or is slow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from db.search import Passage, Reading
from notewarden.embedding.base import Embedder
from notewarden.errors import NotewardenError, ProviderFailed
from notewarden.log import get_logger
from notewarden.settings import Settings

_log = get_logger(__name__)

DEPTH = 20
"""How many of the first candidates are put in order; those behind them keep their places."""

PATIENCE_S = 8.0
"""A reranker that took longer is not waited for: the fused order serves, and the asker is told."""


class Reranker(Protocol):
    """Scores passages for a question, better ones higher."""

    @property
    def leaves_host(self) -> bool:
        """Whether the passages' text goes to somebody else's machine."""

    def scores(self, question: str, passages: Sequence[Passage]) -> Sequence[float]:
        """Return one number for each passage. Raises ProviderFailed, also when it would take too long."""


@runtime_checkable
class FromIndex(Reranker, Protocol):
    """A reranker that uses what the index holds of a passage besides its text."""

    def over(self, held: Reading) -> Reranker:
        """Return the same reranker for one reading: what that one may not read is not used."""


def make_reranker(settings: Settings, embedder: Embedder) -> Reranker | None:
    """Return what `[rerank] provider` names, None for "none"; nothing heavy is loaded before its first use.

    Raises ConfigError where a key is missing.
    """
    provider = settings.rerank.provider
    if provider == "local":
        from answerer.rerank_local import MaxSim

        return MaxSim(embedder)
    if provider in ("voyage", "claude"):
        from answerer.reranker import ClaudeReranker, VoyageReranker

        made = VoyageReranker if provider == "voyage" else ClaudeReranker
        return made.of(settings)
    return None


def reordered(
    reranker: Reranker, question: str, passages: Sequence[Passage], external: frozenset[str]
) -> tuple[list[Passage], str | None]:
    """Return the passages in the reranker's order, and what must be told if it could not give one.

    `external` are the shares whose text may leave this host; with a reranker elsewhere, passages of other
    shares keep their places among the others.
    """
    free = [
        at for at, one in enumerate(passages[:DEPTH]) if not reranker.leaves_host or one.share in external
    ]
    if len(free) < 2:
        return list(passages), None
    began = time.monotonic()
    try:
        scores = list(reranker.scores(question, [passages[at] for at in free]))
        if len(scores) != len(free):
            raise ProviderFailed("The reranker gave another number of scores than of passages.")
    except NotewardenError as error:
        _log.warning(
            "reranking failed", kind=type(error).__name__, seconds=round(time.monotonic() - began, 1)
        )
        return list(passages), f"Not reranked: {error}"
    best = sorted(range(len(free)), key=lambda at: (-scores[at], at))
    found = list(passages)
    for place, at in zip(free, best, strict=True):
        found[place] = passages[free[at]]
    return found, None
