"""The keyword leg: BM25 with the asker's own statistics, so that no hidden note can move a score."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from db.search import Postings, Reading
from notewarden.terms import query_words

K1 = 1.2
B = 0.75
_NOBODY: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
_SPARSE = 64  # ids for each key beyond which counting by place would waste memory


def idf(n_chunks: int, frequency: int) -> float:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5)), Lucene's form, which is never negative."""
    return math.log(1 + (n_chunks - frequency + 0.5) / (frequency + 0.5))


@dataclass(frozen=True, eq=False)
class Word:
    """One word of the question: the terms that stand for it, its idf, the readable chunks that hold it."""

    terms: tuple[str, ...]
    idf: float
    holders: NDArray[np.int64]

    @cached_property
    def chunk_ids(self) -> frozenset[int]:
        """The readable chunks that hold the word, as a set: costly for a common word."""
        return frozenset(self.holders.tolist())


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
        if not len(found.chunk_ids):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        weights = [self.idf[self._names[term_id]] for term_id in found.runs]
        idfs = np.repeat(weights, [end - start for start, end in found.runs.values()])
        norm = K1 * (1 - B + B * found.lengths / self.average)
        parts = idfs * (found.tfs * (K1 + 1) / (found.tfs + norm))
        return _sum_by(found.chunk_ids, parts)

    def top(self, limit: int, among: Collection[int] | None = None) -> list[int]:
        """Return the best chunks, best first, ties by id; with `among` of these only."""
        chunk_ids, scores = self.scores()
        if among is not None:
            kept = np.isin(chunk_ids, np.fromiter(among, dtype=np.int64, count=len(among)))
            chunk_ids, scores = chunk_ids[kept], scores[kept]
        if len(scores) > limit:  # sort only what can be among the best
            kept = scores >= np.partition(scores, -limit)[-limit]
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

    def exact_holders(self) -> set[int]:
        """Return the chunks that hold, as it stands, a code, version, host or path that the question names.

        What stands in more than one chunk in twenty tells nothing and is left out.
        """
        most = max(1, self.n_chunks // 20)
        named = [word for word in self.words if word.terms[0].startswith("=") and len(word.holders) <= most]
        return {chunk_id for word in named for chunk_id in word.holders.tolist()}

    def _idf_by_term(self, ids: Mapping[str, int]) -> dict[str, float]:
        frequency = {term: len(self._postings.holders(ids[term])) for term in ids}
        return {term: idf(self.n_chunks, frequency.get(term, 0)) for term in self.terms}

    def _word(self, terms: tuple[str, ...], ids: Mapping[str, int]) -> Word:
        runs = [self._postings.holders(ids[term]) for term in terms if term in ids]
        holders = runs[0] if len(runs) == 1 else np.unique(np.concatenate([_NOBODY, *runs]))
        return Word(terms, idf(self.n_chunks, len(holders)), holders)


def _sum_by(
    keys: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the distinct keys, ascending, and the sum of the values of each."""
    first, last = int(keys.min()), int(keys.max())
    if last - first > _SPARSE * len(keys):
        distinct, places = np.unique(keys, return_inverse=True)
        return distinct, np.bincount(places, weights=values).astype(np.float64)
    sums = np.bincount(keys - first, weights=values)
    places = np.flatnonzero(np.bincount(keys - first))
    return places + first, sums[places].astype(np.float64)


def _documents(
    postings: Postings, candidates: Sequence[int], names: Mapping[int, str]
) -> tuple[list[dict[str, float]], list[float]]:
    counts: dict[int, dict[str, float]] = {chunk_id: {} for chunk_id in candidates}
    lengths: dict[int, float] = {}
    wanted = np.asarray(candidates, dtype=np.int64)
    for term_id, (start, end) in postings.runs.items():
        rows = start + np.flatnonzero(np.isin(postings.chunk_ids[start:end], wanted))
        columns: list[Any] = [postings.chunk_ids, postings.tfs, postings.lengths]
        for chunk_id, tf, length in zip(*(column[rows].tolist() for column in columns), strict=True):
            counts[chunk_id][names[term_id]] = tf
            lengths[chunk_id] = length
    # A chunk without any term scores 0 whatever its length.
    return list(counts.values()), [lengths.get(chunk_id, 1.0) for chunk_id in candidates]
