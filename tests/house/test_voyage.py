"""The Voyage embedder through the real SDK against a server that replies well, wrongly or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.fake_voyage import GOOD_KEY, FakeVoyage, serving, texts_of, unit_vector

from notewarden.embedding import make_embedder
from notewarden.embedding.voyage import VoyageAccess, VoyageEmbedder
from notewarden.errors import ConfigError, EmbeddingFailed
from notewarden.settings_sections import EmbeddingSettings

TEXTS = ["the VPN", "the lunch menu", "holidays", "the printer on floor 3"]


@pytest.fixture
def fake() -> Iterator[FakeVoyage]:
    with serving(FakeVoyage()) as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def embedder(fake: FakeVoyage, waits: list[float]) -> VoyageEmbedder:
    return VoyageEmbedder("voyage-4", 8, VoyageAccess(GOOD_KEY, fake.url), sleep=waits.append)


def expected(texts: list[str]) -> np.ndarray:
    return np.array([unit_vector(text, 8) for text in texts], dtype=np.float32)


def test_documents_and_questions_are_sent_as_what_they_are(
    embedder: VoyageEmbedder, fake: FakeVoyage
) -> None:
    np.testing.assert_allclose(embedder.embed_documents(TEXTS), expected(TEXTS), atol=1e-6)
    np.testing.assert_allclose(embedder.embed_query("why?"), expected(["why?"])[0], atol=1e-6)
    assert [request["input_type"] for request in fake.requests] == ["document", "query"]
    assert all(
        request["output_dimension"] == 8 and request["model"] == "voyage-4" for request in fake.requests
    )
    assert not any(request["truncation"] for request in fake.requests), "a text must never be cut in silence"


def test_vectors_go_to_the_texts_their_index_names(embedder: VoyageEmbedder, fake: FakeVoyage) -> None:
    fake.faults = ["shuffled"]
    np.testing.assert_allclose(embedder.embed_documents(TEXTS), expected(TEXTS), atol=1e-6)
    assert len(fake.requests) == 1


@pytest.mark.parametrize("fault", ["short", "twice", "nothing", "dimension", "nan", "long", "garbage"])
def test_a_wrong_reply_is_asked_for_again(embedder: VoyageEmbedder, fake: FakeVoyage, fault: str) -> None:
    fake.faults = [fault]
    np.testing.assert_allclose(embedder.embed_documents(TEXTS), expected(TEXTS), atol=1e-6)
    assert texts_of(fake.requests) == [4, 4]


@pytest.mark.parametrize(
    "fault", ["short", "twice", "nothing", "dimension", "nan", "long", "garbage", "500", "503"]
)
def test_what_stays_wrong_is_a_failure_that_may_pass(
    embedder: VoyageEmbedder, fake: FakeVoyage, fault: str
) -> None:
    fake.faults = [fault] * 20
    with pytest.raises(EmbeddingFailed) as failure:
        embedder.embed_documents(TEXTS)
    assert not failure.value.permanent
    assert failure.value.exit_code == 8
    assert len(fake.requests) == 6


def test_the_servers_own_waiting_time_is_kept(
    embedder: VoyageEmbedder, fake: FakeVoyage, waits: list[float]
) -> None:
    fake.faults = ["429", "429"]
    np.testing.assert_allclose(embedder.embed_documents(TEXTS), expected(TEXTS), atol=1e-6)
    assert waits == [7.0, 7.0]


def test_a_question_waits_for_fewer_attempts(embedder: VoyageEmbedder, fake: FakeVoyage) -> None:
    fake.faults = ["500"] * 20
    with pytest.raises(EmbeddingFailed):
        embedder.embed_query("why?")
    assert len(fake.requests) == 3


def test_a_refused_batch_is_halved_until_it_passes(embedder: VoyageEmbedder, fake: FakeVoyage) -> None:
    fake.max_texts = 3
    texts = [f"text {number}" for number in range(10)]
    np.testing.assert_allclose(embedder.embed_documents(texts), expected(texts), atol=1e-6)
    assert texts_of(fake.requests) == [10, 5, 2, 3, 5, 2, 3]


def test_a_text_that_is_refused_alone_fails_for_good(embedder: VoyageEmbedder, fake: FakeVoyage) -> None:
    fake.poison = "lunch"
    with pytest.raises(EmbeddingFailed) as failure:
        embedder.embed_documents(TEXTS)
    assert failure.value.permanent
    assert "lunch" not in str(failure.value)


def test_batches_stay_under_the_limits_of_one_call(embedder: VoyageEmbedder, fake: FakeVoyage) -> None:
    texts = [f"{number} {'x' * 50_000}" for number in range(3)] + [f"{number}" for number in range(1_500)]
    assert embedder.embed_documents(texts).shape == (1_503, 8)
    assert texts_of(fake.requests) == [2, 1_000, 501]
    assert all(sum(map(len, request["input"])) <= 120_000 for request in fake.requests)


def test_no_texts_are_no_call(embedder: VoyageEmbedder, fake: FakeVoyage) -> None:
    assert embedder.embed_documents([]).shape == (0, 8)
    assert fake.requests == []


def test_a_refused_key_says_so_and_does_not_repeat_it(fake: FakeVoyage) -> None:
    embedder = VoyageEmbedder("voyage-4", 8, VoyageAccess("pa-wrong-key", fake.url))
    with pytest.raises(EmbeddingFailed, match="api_key_file") as failure:
        embedder.embed_documents(TEXTS)
    assert "pa-wrong-key" not in str(failure.value)
    assert len(fake.requests) == 1


def test_a_dead_server_is_a_failure_that_may_pass(waits: list[float]) -> None:
    with serving(FakeVoyage()) as gone:
        pass
    embedder = VoyageEmbedder("voyage-4", 8, VoyageAccess(GOOD_KEY, gone.url), sleep=waits.append)
    with pytest.raises(EmbeddingFailed, match="cannot be reached") as failure:
        embedder.embed_query("why?")
    assert not failure.value.permanent


def test_the_factory_takes_key_address_model_and_dimension(fake: FakeVoyage, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(f"{GOOD_KEY}\n")
    key.chmod(0o600)
    settings = EmbeddingSettings(
        provider="voyage", model="voyage-4-lite", dimension=8, api_key_file=key, base_url=fake.url
    )
    made = make_embedder(settings)
    made.embed_query("why?")
    assert fake.requests[0]["model"] == "voyage-4-lite"
    assert made.identity == "voyage/voyage-4-lite/8/r1"


def test_without_a_key_the_configuration_is_refused() -> None:
    settings = EmbeddingSettings.model_validate({"provider": "voyage"})
    with pytest.raises(ConfigError, match="VOYAGE_API_KEY"):
        make_embedder(settings)


def test_what_is_private_never_leaves_with_a_text(embedder: VoyageEmbedder, fake: FakeVoyage) -> None:
    private = "Write to anna@example.com or call +49 30 1234567, password: hunter2!"
    sent = "Write to [E-MAIL] or call [PHONE], password: [SECRET]"
    embedder.embed_documents([private])
    embedder.embed_query(private)
    assert [text.rstrip("!") for request in fake.requests for text in request["input"]] == [sent, sent]


def test_billed_tokens_are_counted_once(embedder: VoyageEmbedder) -> None:
    embedder.embed_documents(TEXTS)
    embedder.embed_query("why?")
    assert (embedder.take_tokens(), embedder.take_tokens()) == (2, 0)


def test_questions_may_go_to_a_cheaper_model_of_the_series(fake: FakeVoyage) -> None:
    access = VoyageAccess(GOOD_KEY, fake.url, "voyage-4-lite")
    embedder = VoyageEmbedder("voyage-4-large", 8, access)
    embedder.embed_documents(TEXTS)
    embedder.embed_query("why?")
    assert [request["model"] for request in fake.requests] == ["voyage-4-large", "voyage-4-lite"]
    assert embedder.identity.startswith("voyage/voyage-4-large/8"), "the index is the large model's"


@pytest.mark.parametrize(("model", "query_model"), [("voyage-4", "voyage-3-lite"), ("voyage-3", "voyage-4")])
def test_models_of_two_spaces_are_not_mixed(model: str, query_model: str) -> None:
    with pytest.raises(ValueError, match="voyage-4"):
        EmbeddingSettings.model_validate({"provider": "voyage", "model": model, "query_model": query_model})
