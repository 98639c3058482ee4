"""The keyword leg is BM25 over exactly the asker's chunks: rank_bm25 over that corpus says the same."""

from __future__ import annotations

import numpy as np
import pytest
from rank_bm25 import BM25Okapi
from support.answer_house import QUESTIONS, House

from answerer.keyword import K1, B, KeywordLeg, idf
from db.search import reading


def corpus(house: House, chunk_ids: list[int]) -> list[list[str]]:
    """Every term of every chunk as often as it stands there, read as the owner."""
    with house.database.owner() as conn:
        rows = conn.execute(
            "select chunk_id, term, tf from nw.posting join nw.term using (term_id)"
            " where chunk_id = any (%s)",
            [chunk_ids],
        ).fetchall()
    documents: dict[int, list[str]] = {chunk_id: [] for chunk_id in chunk_ids}
    for chunk_id, term, tf in rows:
        documents[chunk_id] += [term] * tf
    return [documents[chunk_id] for chunk_id in chunk_ids]


def truth(documents: list[list[str]]) -> BM25Okapi:
    """rank_bm25 over the whole readable corpus, with Lucene's idf."""
    scorer = BM25Okapi(documents, k1=K1, b=B)
    counts: dict[str, int] = {}
    for document in scorer.doc_freqs:
        for term in document:
            counts[term] = counts.get(term, 0) + 1
    scorer.idf = {
        term: float(np.log(1 + (len(documents) - df + 0.5) / (df + 0.5))) for term, df in counts.items()
    }
    return scorer


@pytest.mark.parametrize("person", ["anna", "ben", "cleo"])
def test_the_leg_equals_rank_bm25_over_the_readable_chunks(house: House, person: str) -> None:
    with house.database.reader() as conn, reading(conn, house.asker(person).token) as held:
        chunk_ids = held.any_chunks(1000)
        scorer = truth(corpus(house, chunk_ids))
        for question in QUESTIONS:
            leg = KeywordLeg(held, question)
            expected = dict(zip(chunk_ids, scorer.get_scores(leg.terms), strict=True))
            found, scores = leg.scores()
            assert set(found.tolist()) == {at for at, score in expected.items() if score > 0}
            np.testing.assert_allclose(scores, [expected[at] for at in found.tolist()], rtol=1e-12)
            united = leg.okapi(chunk_ids)
            np.testing.assert_allclose(list(united.values()), list(expected.values()), rtol=1e-12)


def test_top_is_sorted_and_keeps_to_what_it_is_given(house: House) -> None:
    with house.database.reader() as conn, reading(conn, house.asker("ben").token) as held:
        leg = KeywordLeg(held, "gateway number stands in hall")
        best = leg.top(100)
        scores = dict(zip(*(column.tolist() for column in leg.scores()), strict=True))
        assert len(best) > 5
        assert [scores[at] for at in best] == sorted(scores.values(), reverse=True)
        assert leg.top(3) == best[:3]
        assert leg.top(100, among=best[2:4]) == best[2:4]


def test_words_nobody_wrote_score_nothing(house: House) -> None:
    with house.database.reader() as conn, reading(conn, house.asker("ben").token) as held:
        leg = KeywordLeg(held, "xylophone")
        assert leg.top(10) == []
        assert [word.chunk_ids for word in leg.words] == [frozenset()]
        assert leg.okapi(held.any_chunks(2)) == dict.fromkeys(held.any_chunks(2), 0.0)


def test_idf_is_never_negative_and_falls_with_frequency() -> None:
    values = [idf(100, frequency) for frequency in range(101)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 0
