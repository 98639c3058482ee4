"""Token vectors in small form, and how well a question's fit a passage's (Khattab 2020: MaxSim)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from notewarden.embedding.base import Vectors

FORM = 1
"""Names the small form beside what is stored in it; another form is another number."""

_STEP = 0.996  # of the row's deviation: the best uniform steps for four levels of normal values (Max 1960)
_PLACES = np.array([0, 2, 4, 6], dtype=np.uint8)
_LEVELS = ((np.arange(256, dtype=np.uint8)[:, np.newaxis] >> _PLACES) & 3).astype(np.float32) - 1.5


def packed(vectors: Vectors) -> bytes:
    """Return rows, shape (tokens, dimension), at four levels: two bits a value, each row in whole bytes."""
    steps = _STEP * np.maximum(vectors.std(axis=1, keepdims=True), 1e-12)
    levels = (np.clip(np.floor(vectors / steps), -2, 1) + 2).astype(np.uint8)
    width = -(-vectors.shape[1] // 4)
    levels = np.pad(levels, ((0, 0), (0, 4 * width - vectors.shape[1])))
    joined: NDArray[np.uint8] = (levels.reshape(-1, width, 4) << _PLACES).sum(axis=2, dtype=np.uint8)
    return joined.tobytes()


def unpacked(raw: bytes, dimension: int) -> Vectors:
    """Return unit rows, shape (tokens, dimension), that point nearly where the packed ones did."""
    rows = np.frombuffer(raw, dtype=np.uint8).reshape(-1, -(-dimension // 4))
    levels = _LEVELS[rows].reshape(len(rows), 4 * rows.shape[1])[:, :dimension]
    vectors: Vectors = levels / np.linalg.norm(levels, axis=1, keepdims=True)
    return vectors


def max_sim(asked: Vectors, held: Vectors) -> float:
    """Return the mean over the rows of `asked` of the greatest cosine with a row of `held`; 0 for none."""
    if not len(asked) or not len(held):
        return 0.0
    return float(np.mean((asked @ held.T).max(axis=1)))
