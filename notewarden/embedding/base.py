"""What every embedding model offers, and the one check on what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from notewarden.errors import EmbeddingFailed

Vectors = npt.NDArray[np.float32]

_NORM_SLACK = 0.01  # what float32 and a provider's rounding may take from unit length


@runtime_checkable
class Metered(Protocol):
    """A model whose provider bills tokens."""

    def take_tokens(self) -> int:
        """Return how many tokens were billed since this was last asked."""


class Embedder(Protocol):
    """A model that turns texts into unit vectors. Implementations may be called from several threads."""

    @property
    def identity(self) -> str:
        """Everything that decides a vector besides the text; vectors of different identities never mix."""

    @property
    def dimension(self) -> int:
        """The length of every vector."""

    @property
    def relevance_floor(self) -> float:
        """The cosine between question and passage from which the passage can count as an answer."""

    @property
    def max_tokens(self) -> int:
        """The longest text it takes, in its own tokens, without special ones."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return shape (len(texts), dimension), unit rows in the order of `texts`. Raises EmbeddingFailed."""

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector, shape (dimension,), of a question. Raises EmbeddingFailed."""


@runtime_checkable
class WithTokens(Embedder, Protocol):
    """A model that gives its tokens' vectors besides the text's, from the same run."""

    def embed_with_tokens(self, texts: Sequence[str], heads: Sequence[int]) -> tuple[Vectors, list[bytes]]:
        """Return what `embed_documents` does, and of each text the packed vectors of its tokens.

        Those of its first `heads` characters are left out; they are context alone. Raises EmbeddingFailed.
        """


@runtime_checkable
class InContext(Embedder, Protocol):
    """A model for which the vector of a chunk depends on its whole note: its chunks are embedded together."""

    def groups(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """Return half-open ranges that tile a note's `texts`: those of one range are embedded together."""

    def embed_groups(self, groups: Sequence[Sequence[str]]) -> Vectors:
        """Return one unit row per text, group after group. Raises EmbeddingFailed."""


def require_unit_vectors(vectors: Vectors, count: int, dimension: int) -> Vectors:
    """Return `vectors` scaled to exact unit length.

    Raises EmbeddingFailed if the shape is not (count, dimension), a value is not finite, or a row is not
    already of about unit length: such vectors would make search wrong in silence.
    """
    if vectors.shape != (count, dimension):
        raise EmbeddingFailed(
            f"The embedding model returned vectors of shape {vectors.shape} instead of {(count, dimension)}; "
            "check [embedding] model and dimension."
        )
    if not np.isfinite(vectors).all():
        raise EmbeddingFailed("The embedding model returned a vector with values that are no numbers.")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if np.any(np.abs(norms - 1.0) > _NORM_SLACK):
        raise EmbeddingFailed("The embedding model returned a vector that is not of unit length.")
    scaled: Vectors = (vectors / norms).astype(np.float32)
    return scaled
