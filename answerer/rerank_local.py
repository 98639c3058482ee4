"""MaxSim over token vectors of the local model: late interaction without another model (Khattab 2020)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from answerer.rerank import PATIENCE_S
from db.search import Passage, Reading
from notewarden.display import show_path
from notewarden.embedding.base import Embedder
from notewarden.embedding.local import LocalEmbedder
from notewarden.embedding.tokens import max_sim, packed, unpacked
from notewarden.errors import ProviderFailed

_LONGEST_HEAD = 200  # characters; a title without end would leave no room for the passage

Stored = Callable[[Sequence[int]], Mapping[int, bytes]]
"""From chunk ids to packed token vectors, of those chunks that have some."""


class MaxSim:
    """For each token of the question the nearest token of the passage; the mean of these is the score.

    The passages' token vectors come from the index, packed; those that it does not have yet are computed and
    packed likewise, so that both are measured with one rule. The question's stay as they are.
    """

    leaves_host = False

    def __init__(
        self, embedder: Embedder, patience_s: float = PATIENCE_S, stored: Stored = lambda _: {}
    ) -> None:
        self._embedder = embedder
        self._patience_s = patience_s
        self._stored = stored

    def over(self, held: Reading) -> MaxSim:
        """Return the same for one reading. An index that another model made has nothing for this one."""
        if held.serving is None or held.serving.embedder != self._embedder.identity:
            return self
        return MaxSim(self._embedder, self._patience_s, held.token_vectors)

    def scores(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Return cosines, roughly. Raises ProviderFailed for another model, or when time is up."""
        model = self._embedder
        if not isinstance(model, LocalEmbedder):
            raise ProviderFailed('the local reranker needs [embedding] provider = "local".')
        end = time.monotonic() + self._patience_s
        asked = model.token_vectors(question)
        stored = self._stored([one.chunk_id for one in passages])
        found = []
        for one in passages:
            if time.monotonic() > end:
                raise ProviderFailed(f"the local reranker took longer than {self._patience_s:.0f} s.")
            raw = stored.get(one.chunk_id)
            if raw is None:
                head = _head(one)
                raw = packed(model.token_vectors(head + one.content, len(head)))
            found.append(max_sim(asked, unpacked(raw, model.dimension)))
        return found


def _head(passage: Passage) -> str:
    """Return what stands before a passage where it is indexed, nearly: where it is from, and a line end."""
    trail = [one for one in passage.heading if one != passage.title]
    return f"{show_path(passage.path)}: {' > '.join([passage.title, *trail])}"[:_LONGEST_HEAD] + "\n"
