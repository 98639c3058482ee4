"""What the local reranker costs: milliseconds with stored token vectors and computed ones, bytes a chunk."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from answerer.evaluation import Case
from answerer.identity import Asker
from answerer.rerank import DEPTH
from answerer.rerank_local import MaxSim
from answerer.retrieval import Query, rank
from db.pool import Database
from db.search import Reading, reading
from notewarden.embedding.base import Embedder
from notewarden.settings import SearchSettings

QUESTIONS = 20


def line(database: Database, embedder: Embedder, asker: Asker, cases: Sequence[Case]) -> str:
    """Return one line of figures over the first questions, each reranked with stored vectors and computed."""
    with database.owner() as conn:
        row = conn.execute(
            "select avg(octet_length(t.vectors)), avg(octet_length(c.content))"
            " from nw.token_vectors t join nw.note_chunk c using (chunk_id)"
        ).fetchone()
    assert row is not None
    times: list[tuple[float, float]] = []
    with database.reader() as conn, reading(conn, asker.require_token()) as held:
        for case in cases[:QUESTIONS]:
            times.append(_both(held, MaxSim(embedder), embedder, case.question))
    stored, computed = (1000 * median(column) for column in zip(*times, strict=True))
    return (
        f"local MaxSim over {DEPTH} passages, median of {len(times)} questions: {stored:.0f} ms with stored "
        f"token vectors, {computed:.0f} ms with computed; {row[0]:.0f} bytes a chunk of {row[1]:.0f} of text"
    )


def _both(held: Reading, reranker: MaxSim, embedder: Embedder, question: str) -> tuple[float, float]:
    query = Query(question, embedder.embed_query(question))
    passages = rank(held, query, SearchSettings(), 8).passages[:DEPTH]
    taken = []
    for one in (reranker.over(held), reranker):
        began = time.perf_counter()
        one.scores(question, passages)
        taken.append(time.perf_counter() - began)
    return taken[0], taken[1]
