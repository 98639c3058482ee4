"""The local reranker on a real index: its token vectors come from there, under the asker's rights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from support.answer_house import House

from answerer.rerank_local import MaxSim
from db.search import Passage, reading
from notewarden.embedding.local import LocalEmbedder

QUESTION = "How do I renew the certificate for the tunnel?"
LOCAL = '[rerank]\nprovider = "local"\n'


class Watched(LocalEmbedder):
    """The local model, which remembers what it was asked the token vectors of."""

    def __init__(self) -> None:
        super().__init__("all-MiniLM-L6-v2", 384)
        self.asked: list[str] = []

    def token_vectors(self, text: str, head: int = 0) -> object:  # type: ignore[override]
        self.asked.append(text)
        return super().token_vectors(text, head)


def scores(house: House, person: str, model: Watched) -> tuple[list[Passage], Sequence[float]]:
    """Return every passage this person may read with its score; `model.asked` is what had to be computed."""
    model.asked.clear()
    with house.database.reader() as conn, reading(conn, house.asker(person).require_token()) as held:
        passages = held.passages(held.any_chunks(1_000))
        found = MaxSim(model).over(held).scores(QUESTION, passages)
    assert model.asked.pop(0) == QUESTION
    return passages, found


def test_vectors_come_from_the_index_and_those_it_lacks_are_computed_alike(
    build_house: Callable[..., House],
) -> None:
    house, model = build_house(LOCAL, provider="local"), Watched()
    passages, stored = scores(house, "ben", model)
    assert model.asked == [], "nothing is computed but the question's own"
    best = passages[max(range(len(stored)), key=stored.__getitem__)]
    assert best.path == b"it/vpn.md" and best.share == "notes"
    with house.database.owner() as conn:
        empty = "update nw.token_vectors set vectors = '' where chunk_id = %s"
        conn.execute(empty, [passages[0].chunk_id])
    _, changed = scores(house, "ben", model)
    assert (changed[0], changed[1:]) == (0.0, stored[1:]), "what stands there is what is compared"
    with house.database.owner() as conn:
        conn.execute("delete from nw.token_vectors")
    _, computed = scores(house, "ben", model)
    assert len(model.asked) == len(passages)
    assert computed == pytest.approx(stored, abs=0.02)


def test_reranking_says_nothing_and_an_index_of_another_model_is_left_alone(
    build_house: Callable[..., House],
) -> None:
    house, model = build_house(LOCAL, provider="local"), Watched()
    reply = house.engine.search(house.asker("anna"), "certificate gateway walrus", k=8)
    assert reply.notices == ()
    assert reply.result.results and all(row.path.split("/")[0] != "it" for row in reply.result.results)
    model.identity = "another"
    passages, _ = scores(house, "anna", model)
    assert len(model.asked) == len(passages) > 0
