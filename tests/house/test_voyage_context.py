"""Voyage's contextualized models through the real SDK: whole notes together, and every fault told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.fake_voyage import GOOD_KEY, FakeVoyage, in_context, serving, unit_vector

from notewarden.embedding import make_embedder
from notewarden.embedding.voyage import VoyageAccess
from notewarden.embedding.voyage_context import VoyageContextEmbedder
from notewarden.errors import EmbeddingFailed, QuotaReached
from notewarden.settings_sections import EmbeddingSettings

GROUPS = [["the VPN", "its gateway"], ["the lunch menu"], ["holidays", "of May", "of June"]]


@pytest.fixture
def fake() -> Iterator[FakeVoyage]:
    with serving(FakeVoyage()) as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def embedder(fake: FakeVoyage, waits: list[float]) -> VoyageContextEmbedder:
    access = VoyageAccess(GOOD_KEY, fake.url)
    return VoyageContextEmbedder("voyage-context-4", 8, access, sleep=waits.append)


def expected(groups: Sequence[Sequence[str]]) -> np.ndarray:
    rows = [unit_vector(in_context(group, at), 8) for group in groups for at in range(len(group))]
    return np.array(rows, dtype=np.float32)


def test_the_chunks_of_a_note_go_together_and_a_question_as_a_question(
    embedder: VoyageContextEmbedder, fake: FakeVoyage
) -> None:
    np.testing.assert_allclose(embedder.embed_groups(GROUPS), expected(GROUPS), atol=1e-6)
    np.testing.assert_allclose(embedder.embed_query("why?"), expected([["why?"]])[0], atol=1e-6)
    assert [request["inputs"] for request in fake.requests] == [GROUPS, [["why?"]]]
    assert [request["input_type"] for request in fake.requests] == ["document", "query"]
    assert all(one["output_dimension"] == 8 for one in fake.requests)
    assert embedder.take_tokens() == 7


def test_vectors_go_to_the_texts_their_indexes_name(
    embedder: VoyageContextEmbedder, fake: FakeVoyage
) -> None:
    fake.faults = ["shuffled"]
    np.testing.assert_allclose(embedder.embed_groups(GROUPS), expected(GROUPS), atol=1e-6)
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    "fault", ["short", "group", "twice", "nothing", "dimension", "nan", "long", "garbage", "dropped", "500"]
)
def test_a_wrong_reply_is_asked_for_again_and_is_a_failure_where_it_stays(
    embedder: VoyageContextEmbedder, fake: FakeVoyage, fault: str
) -> None:
    fake.faults = [fault]
    np.testing.assert_allclose(embedder.embed_groups(GROUPS), expected(GROUPS), atol=1e-6)
    assert len(fake.requests) == 2
    fake.faults = [fault] * 20
    with pytest.raises(EmbeddingFailed) as failure:
        embedder.embed_groups(GROUPS)
    assert not failure.value.permanent
    assert len(fake.requests) == 2 + 6


def test_the_servers_own_waiting_time_is_kept(
    embedder: VoyageContextEmbedder, fake: FakeVoyage, waits: list[float]
) -> None:
    fake.faults = ["429"]
    embedder.embed_groups(GROUPS)
    assert waits == [7.0]
    fake.faults = ["429"] * 20
    with pytest.raises(QuotaReached):
        embedder.embed_groups(GROUPS)


def test_what_is_refused_is_halved_by_groups_and_then_inside_one(
    embedder: VoyageContextEmbedder, fake: FakeVoyage
) -> None:
    fake.max_texts = 2
    found = embedder.embed_groups(GROUPS)
    np.testing.assert_allclose(found, expected([*GROUPS[:2], ["holidays"], ["of May", "of June"]]), atol=1e-6)


def test_a_text_that_is_refused_alone_fails_for_good(
    embedder: VoyageContextEmbedder, fake: FakeVoyage
) -> None:
    fake.poison = "lunch"
    with pytest.raises(EmbeddingFailed) as failure:
        embedder.embed_groups(GROUPS)
    assert failure.value.permanent and "lunch" not in str(failure.value)


def test_a_long_note_goes_as_groups_of_neighbours_that_tile_it(
    embedder: VoyageContextEmbedder, fake: FakeVoyage
) -> None:
    texts = [f"{number} {'x' * 1_000}" for number in range(80)] + ["y" * 40_000, "the end"]
    ranges = embedder.groups(texts)
    assert [at for first, last in ranges for at in range(first, last)] == list(range(82))
    assert [last - first for first, last in ranges] == [31, 31, 18, 1, 1]
    groups = [texts[first:last] for first, last in ranges]
    np.testing.assert_allclose(embedder.embed_groups(groups), expected(groups), atol=1e-6)
    sizes = [sum(len(text) for group in one["inputs"] for text in group) for one in fake.requests]
    assert all(size <= 32_000 or size == 40_000 for size in sizes)
    assert embedder.groups([]) == [] and embedder.embed_groups([]).shape == (0, 8)


def test_small_notes_share_a_call(embedder: VoyageContextEmbedder, fake: FakeVoyage) -> None:
    embedder.embed_groups([[f"note {number}"] for number in range(1_200)])
    assert [len(request["inputs"]) for request in fake.requests] == [1_000, 200]


def test_what_is_private_never_leaves_with_a_text(embedder: VoyageContextEmbedder, fake: FakeVoyage) -> None:
    embedder.embed_groups([["Write to anna@example.com", "or not"]])
    embedder.embed_query("who is anna@example.com")
    assert "anna@example.com" not in str(fake.requests) and "[E-MAIL]" in str(fake.requests)


def test_the_name_of_the_model_chooses_it_and_a_key_can_be_tried(fake: FakeVoyage, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(f"{GOOD_KEY}\n")
    key.chmod(0o600)
    settings = EmbeddingSettings(
        provider="voyage", model="voyage-context-4", dimension=8, api_key_file=key, base_url=fake.url
    )
    made = make_embedder(settings)
    assert isinstance(made, VoyageContextEmbedder)
    made.try_key()
    assert made.take_tokens() == 0 and len(fake.requests) == 1
    assert made.identity == "voyage/voyage-context-4/8/r1/n1"


def test_questions_cannot_go_to_a_model_of_another_space() -> None:
    with pytest.raises(ValueError, match="voyage-4"):
        EmbeddingSettings.model_validate(
            {"provider": "voyage", "model": "voyage-context-4", "query_model": "voyage-4-lite"}
        )
