"""The keyword leg: BM25 with the asker's own statistics, so that no hidden note can move a score."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from db.search import Postings, Reading
from notewarden.terms import query_words

K1 = 1.2
B = 0.75


def idf(n_chunks: int, frequency: int) -> float:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5)), Lucene's form, which is never negative."""
    return math.log(1 + (n_chunks - frequency + 0.5) / (frequency + 0.5))


@dataclass(frozen=True)
class Word:
    """One word of the question: the terms that stand for it, the readable chunks that hold it, its idf."""

    terms: tuple[str, ...]
    chunk_ids: frozenset[int]
    idf: float


class KeywordLeg:
    """What one question finds by its words among the chunks of one reading."""

    def __init__(self, reading: Reading, question: str) -> None:
        self.n_chunks, total = reading.sizes()
        self.average = total / self.n_chunks if self.n_chunks else 0.0
        groups = query_words(question)
        self.terms = list(dict.fromkeys(term for group in groups for term in group))
        ids = reading.term_ids(self.terms)
        self._postings = reading.postings(sorted(ids.values()))
        self._names = {term_id: term for term, term_id in ids.items()}
        self.idf = self._idf_by_term(ids)
        self.words = [self._word(group, ids) for group in groups]

    def scores(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the ids of all readable chunks that hold a term, ascending, and their BM25 scores."""
        found = self._postings
        if not len(found.term_ids):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        terms = np.unique(found.term_ids)
        weights = np.array([self.idf[self._names[int(term)]] for term in terms], dtype=np.float64)
        idfs = weights[np.searchsorted(terms, found.term_ids)]
        norm = K1 * (1 - B + B * found.lengths / self.average)
        parts = idfs * (found.tfs * (K1 + 1) / (found.tfs + norm))
        chunk_ids, places = np.unique(found.chunk_ids, return_inverse=True)
        return chunk_ids, np.bincount(places, weights=parts).astype(np.float64)

    def top(self, limit: int, among: Collection[int] | None = None) -> list[int]:
        """Return the best chunks, best first, ties by id; with `among` of these only."""
        chunk_ids, scores = self.scores()
        if among is not None:
            kept = np.isin(chunk_ids, np.fromiter(among, dtype=np.int64, count=len(among)))
            chunk_ids, scores = chunk_ids[kept], scores[kept]
        order = np.lexsort((chunk_ids, -scores))[:limit]
        return [int(chunk_id) for chunk_id in chunk_ids[order]]

    def okapi(self, candidates: Sequence[int]) -> dict[int, float]:
        """Return rank_bm25's score of each candidate, given the asker's own N, idf and average length."""
        if not candidates or not self.n_chunks:
            return dict.fromkeys(candidates, 0.0)
        counts, lengths = _documents(self._postings, candidates, self._names)
        scorer = BM25Okapi.__new__(BM25Okapi)  # its constructor would count the candidates instead
        scorer.k1, scorer.b, scorer.epsilon = K1, B, 0.0
        scorer.corpus_size, scorer.avgdl = len(candidates), self.average
        scorer.doc_freqs, scorer.doc_len, scorer.idf = counts, lengths, dict(self.idf)
        return dict(zip(candidates, map(float, scorer.get_scores(self.terms)), strict=True))

    def _idf_by_term(self, ids: Mapping[str, int]) -> dict[str, float]:
        found, counts = np.unique(self._postings.term_ids, return_counts=True)
        frequency = dict(zip(found.tolist(), counts.tolist(), strict=True))
        return {term: idf(self.n_chunks, frequency.get(ids.get(term), 0)) for term in self.terms}

    def _word(self, terms: tuple[str, ...], ids: Mapping[str, int]) -> Word:
        wanted = [ids[term] for term in terms if term in ids]
        rows = np.isin(self._postings.term_ids, wanted)
        holders = frozenset(self._postings.chunk_ids[rows].tolist())
        return Word(terms, holders, idf(self.n_chunks, len(holders)))


def _documents(
    postings: Postings, candidates: Sequence[int], names: Mapping[int, str]
) -> tuple[list[dict[str, float]], list[float]]:
    counts: dict[int, dict[str, float]] = {chunk_id: {} for chunk_id in candidates}
    lengths: dict[int, float] = {}
    rows = np.isin(postings.chunk_ids, np.asarray(candidates, dtype=np.int64))
    columns: list[Any] = [postings.term_ids, postings.chunk_ids, postings.tfs, postings.lengths]
    for term_id, chunk_id, tf, length in zip(*(column[rows].tolist() for column in columns), strict=True):
        counts[chunk_id][names[term_id]] = tf
        lengths[chunk_id] = length
    # A chunk without any term scores 0 whatever its length.
    return list(counts.values()), [lengths.get(chunk_id, 1.0) for chunk_id in candidates]
