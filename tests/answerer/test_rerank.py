"""Rerankers: the right order from whatever scores come, the fused order and a word where none do."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from support.answer_house import House
from support.fake_voyage import GOOD_KEY, FakeVoyage, serving

from answerer.rerank import DEPTH, reordered
from answerer.rerank_local import MaxSim
from answerer.reranker import ClaudeReranker, VoyageReranker
from db.search import Passage
from notewarden.embedding.hashed import HashEmbedder
from notewarden.embedding.local import LocalEmbedder
from notewarden.embedding.tokens import max_sim
from notewarden.errors import ProviderFailed

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
TEXTS = ["the lunch menu of May", "renew the vpn certificate here", "the vpn is down"]


def passage(number: int, text: str, share: str = "open") -> Passage:
    return Passage(number, number, 0, share, b"a.md", None, "", [], 1, 1, text, NOW, "en", None, "")


PASSAGES = [passage(number, text) for number, text in enumerate(TEXTS)]


@dataclass
class Lengths:
    """Prefers long texts; remembers what it was shown."""

    leaves_host: bool = False
    shown: list[str] = field(default_factory=list)

    def scores(self, question: str, passages: Sequence[Passage]) -> list[float]:
        self.shown += [one.content for one in passages]
        return [float(len(one.content)) for one in passages]


@dataclass
class Broken:
    leaves_host: bool = False

    def scores(self, question: str, passages: Sequence[Passage]) -> list[float]:
        raise ProviderFailed("it is broken.")


def test_the_first_are_put_in_order_and_those_behind_stay() -> None:
    passages = [passage(number, "x" * (number % 7)) for number in range(DEPTH + 10)]
    found, notice = reordered(Lengths(), "q", passages, frozenset())
    assert notice is None
    lengths = [len(one.content) for one in found[:DEPTH]]
    assert lengths == sorted(lengths, reverse=True)
    assert found[DEPTH:] == passages[DEPTH:]
    assert sorted(one.chunk_id for one in found) == list(range(DEPTH + 10))


def test_text_of_a_share_that_stays_here_is_shown_to_nobody_and_keeps_its_place() -> None:
    passages = [passage(1, "a"), passage(2, "secret", "closed"), passage(3, "long text"), passage(4, "bb")]
    reranker = Lengths(leaves_host=True)
    found, _ = reordered(reranker, "q", passages, frozenset({"open"}))
    assert reranker.shown == ["a", "long text", "bb"]
    assert [one.chunk_id for one in found] == [3, 2, 4, 1]
    reranker = Lengths(leaves_host=True)
    assert reordered(reranker, "q", passages, frozenset()) == (passages, None)
    assert reranker.shown == []


@pytest.mark.parametrize("scores", [[1.0], [1.0, 2.0, 3.0]])
def test_a_failing_reranker_leaves_the_order_and_says_so(scores: list[float]) -> None:
    passages = [passage(1, "a"), passage(2, "bb")]
    found, notice = reordered(Broken(), "q", passages, frozenset())
    assert found == passages and notice is not None and "broken" in notice
    odd = Lengths()
    odd.scores = lambda question, passages: scores  # type: ignore[method-assign]
    found, notice = reordered(odd, "q", passages, frozenset())
    assert found == passages and notice


@pytest.fixture
def fake() -> Iterator[FakeVoyage]:
    with serving(FakeVoyage()) as running:
        yield running


def test_voyage_scores_go_to_the_texts_their_index_names(fake: FakeVoyage) -> None:
    reranker = VoyageReranker("rerank-2.5", GOOD_KEY, fake.url, 5.0)
    scores = reranker.scores("renew the vpn certificate", PASSAGES)
    assert np.argsort(scores).tolist() == [0, 2, 1]
    assert fake.requests[0]["model"] == "rerank-2.5"


def test_voyage_is_shown_no_private_numbers(fake: FakeVoyage) -> None:
    VoyageReranker("rerank-2.5", GOOD_KEY, fake.url, 5.0).scores(
        "who is anna@example.com", [passage(1, "write to anna@example.com"), passage(2, "nothing")]
    )
    assert "anna@example.com" not in json.dumps(fake.requests)


@pytest.mark.parametrize(
    "fault", ["short", "twice", "nan", "nothing", "garbage", "429", "500", "dropped", "slow"]
)
def test_every_fault_of_voyage_is_a_failure_that_falls_back(fake: FakeVoyage, fault: str) -> None:
    fake.faults = [fault] * 5
    reranker = VoyageReranker("rerank-2.5", GOOD_KEY, fake.url, 1.0)
    try:
        found, notice = reordered(reranker, "renew the vpn certificate", PASSAGES, frozenset({"open"}))
    finally:
        fake.patience.set()
    assert found == PASSAGES
    assert notice is not None and notice.startswith("Not reranked: ")
    assert GOOD_KEY not in notice


class Model:
    """In the place of the model: says what it is told to."""

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.calls: list[object] = []

    def complete(self, call: object) -> str:
        self.calls.append(call)
        return self.reply


def test_a_small_model_scores_by_a_fixed_form() -> None:
    model = Model('{"scores": [1, 9, 4]}')
    assert ClaudeReranker("small", model).scores("q", PASSAGES) == [1.0, 9.0, 4.0]  # type: ignore[arg-type]
    assert model.calls[0].schema["required"] == ["scores"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "reply", ["", "I think", '{"scores": [1, 2]}', '{"scores": "9"}', '{"scores": [1, "2", 3]}', "[1, 2, 3]"]
)
def test_any_other_reply_of_the_model_is_a_failure(reply: str) -> None:
    with pytest.raises(ProviderFailed):
        ClaudeReranker("small", Model(reply)).scores("q", PASSAGES)  # type: ignore[arg-type]


def test_max_sim_takes_the_nearest_token_of_each_of_the_question() -> None:
    asked = np.array([[1, 0], [0, 1]], dtype=np.float32)
    held = np.array([[1, 0], [0.6, 0.8]], dtype=np.float32)
    assert max_sim(asked, held) == pytest.approx(0.9)
    assert max_sim(asked, held[:0]) == 0.0


def test_the_local_reranker_knows_what_a_question_means_and_when_time_is_up() -> None:
    embedder = LocalEmbedder("all-MiniLM-L6-v2", 384)
    scores = MaxSim(embedder).scores("how do I renew the VPN certificate?", PASSAGES)
    assert int(np.argmax(scores)) == 1
    with pytest.raises(ProviderFailed, match="longer"):
        MaxSim(embedder, patience_s=-1.0).scores("q", PASSAGES)
    with pytest.raises(ProviderFailed, match="local"):
        MaxSim(HashEmbedder(8)).scores("q", PASSAGES)


def test_the_engine_falls_back_and_tells(build_house: Callable[..., House]) -> None:
    house = build_house('[rerank]\nprovider = "local"\n')
    reply = house.engine.search(house.asker("ben"), "gateway hall", k=5)
    assert len(reply.result.results) == 5
    assert any("Not reranked" in notice for notice in reply.notices), "the hash model has no tokens"
