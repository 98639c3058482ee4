"""Vectors from the text's hash: for tests and benches of everything but relevance."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from notewarden.embedding.base import Vectors

_MAX_TOKENS = 100_000  # a hash takes any length; the chunk budget is what limits texts


class HashEmbedder:
    """Equal texts get equal vectors, different texts nearly orthogonal ones; meaning plays no part.

    The default dimension is the local model's, so that a bench moves as many bytes as the real thing.
    """

    relevance_floor = math.inf  # no cosine of such vectors is evidence: answers rest on words alone
    max_tokens = _MAX_TOKENS

    def __init__(self, dimension: int = 384) -> None:
        self.dimension = dimension
        self.identity = f"hash/shake256/{dimension}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text, shape (len(texts), dimension)."""
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        for number, text in enumerate(texts):
            rows[number] = self.embed_query(text)
        return rows

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of `text`, the same on every machine and in every release."""
        stream = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(4 * self.dimension)
        values = np.frombuffer(stream, dtype="<u4").astype(np.float64) - 2.0**31 + 0.5
        unit: Vectors = (values / np.linalg.norm(values)).astype(np.float32)
        return unit
