"""MaxSim over token vectors of the local model: late interaction without another model (Khattab 2020)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from answerer.rerank import PATIENCE_S
from notewarden.embedding.base import Embedder, Vectors
from notewarden.embedding.local import LocalEmbedder
from notewarden.errors import ProviderFailed


class MaxSim:
    """For each token of the question the nearest token of the passage; the mean of these is the score.

    Token vectors are computed when asked for: stored at 384 bytes a token they would take 90 kB a chunk,
    forty times its text and fifty times its vector.
    """

    leaves_host = False

    def __init__(self, embedder: Embedder, patience_s: float = PATIENCE_S) -> None:
        self._embedder = embedder
        self._patience_s = patience_s

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return cosines between 0 and 1. Raises ProviderFailed for another model, or when time is up."""
        if not isinstance(self._embedder, LocalEmbedder):
            raise ProviderFailed('the local reranker needs [embedding] provider = "local".')
        end = time.monotonic() + self._patience_s
        asked = self._embedder.token_vectors(question)
        found = []
        for text in texts:
            if time.monotonic() > end:
                raise ProviderFailed(f"the local reranker took longer than {self._patience_s:.0f} s.")
            found.append(max_sim(asked, self._embedder.token_vectors(text)))
        return found


def max_sim(asked: Vectors, held: Vectors) -> float:
    """Return the mean over the rows of `asked` of the greatest cosine with a row of `held`; 0 for none."""
    if not len(asked) or not len(held):
        return 0.0
    return float(np.mean((asked @ held.T).max(axis=1)))
