"""Voyage's embedding models through their SDK, whose replies are not trusted to be complete."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from types import ModuleType
from typing import Any, Literal

import numpy as np
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from notewarden.embedding.base import Vectors, require_unit_vectors
from notewarden.errors import EmbeddingFailed, QuotaReached
from notewarden.privacy import redact_for_embedding

_MAX_TEXTS = 1_000  # the provider's limit for one call
_MAX_CHARACTERS = 120_000  # its smallest token limit for one call, at the worst of one token a character
_WINDOW = 32_000
_REDACTION = "r1"  # how private parts are replaced: another way gives other vectors
_TIMEOUT_S = 60.0
_LONGEST_WAIT_S = 60.0
DOCUMENT_ATTEMPTS, QUERY_ATTEMPTS = 6, 3  # a person waits for a question, nobody for a sync
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_TOO_MANY = 429
_QUOTA_WAIT_S = 60.0  # where the server does not say how long
_REFUSED = frozenset({400, 413, 422})

Purpose = Literal["document", "query"]


@dataclass(frozen=True)
class VoyageAccess:
    """Where and as whom the provider is called. `base_url` None is the provider's own address.

    `query_model`: a cheaper model for questions, of the same series and so of the same space; "": the same.
    """

    api_key: str
    base_url: str | None = None
    query_model: str = ""


class Transient(Exception):
    """A failure that another attempt may not meet; `after`: seconds the server asks to wait."""

    def __init__(self, what: str, after: float = 0.0, *, quota: bool = False) -> None:
        super().__init__(what)
        self.after = after
        self.quota = quota


class Refused(Exception):
    """The server does not take this batch as it is."""


class VoyageEmbedder:
    """One model of Voyage at one dimension.

    Calls that fail in passing are repeated, with growing waits or the server's Retry-After; a batch that is
    refused is halved until it passes or one text stands alone. A reply whose count, order, dimension or
    length of vectors does not fit the request is a failed call, never half a result. What is private is
    replaced by its kind before anything is sent, in notes and questions alike.
    """

    relevance_floor = 0.40
    max_tokens = _WINDOW

    def __init__(
        self, model: str, dimension: int, access: VoyageAccess, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.dimension = dimension
        self.identity = f"voyage/{model}/{dimension}/{_REDACTION}"
        self._model, self._access, self._sleep = model, access, sleep
        self._tokens, self._counting = 0, Lock()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text, shape (len(texts), dimension). Raises EmbeddingFailed."""
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)
        texts = [redact_for_embedding(text) for text in texts]
        for first, last in _batches(texts):
            rows[first:last] = self._embed_halving(texts[first:last])
        return rows

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector, shape (dimension,), of a question. Raises EmbeddingFailed."""
        try:
            unit: Vectors = self._embed([redact_for_embedding(text)], "query", QUERY_ATTEMPTS)[0]
        except Refused:
            raise EmbeddingFailed(
                "The embedding provider does not take this question.", permanent=True
            ) from None
        return unit

    def try_key(self) -> None:
        """Ask for no text at all: a good key is told that this is no request, and nothing is spent.

        Raises EmbeddingFailed for a key or a model that is refused, or a provider that does not answer.
        """
        try:
            self._call([], "query")
        except Refused:
            return
        except Transient as error:
            raise EmbeddingFailed(
                f"The embedding provider does not answer ({error}); check [embedding] base_url and whether "
                "this machine, or its service, may go there."
            ) from None

    def _embed_halving(self, texts: Sequence[str]) -> Vectors:
        try:
            return self._embed(texts, "document", DOCUMENT_ATTEMPTS)
        except Refused:
            if len(texts) == 1:
                raise refusal_of(texts[0]) from None
        half = len(texts) // 2
        return np.concatenate([self._embed_halving(texts[:half]), self._embed_halving(texts[half:])])

    def _embed(self, texts: Sequence[str], purpose: Purpose, attempts: int) -> Vectors:
        return self._patiently(lambda: self._call(texts, purpose), attempts)

    def _patiently(self, call: Callable[[], Vectors], attempts: int) -> Vectors:
        """Repeat a call that fails in passing. Raises EmbeddingFailed, Refused."""
        retrying = Retrying(
            stop=stop_after_attempt(attempts),
            wait=_wait,
            retry=retry_if_exception_type(Transient),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return retrying(call)
        except Transient as error:
            if error.quota:
                raise QuotaReached(
                    "The embedding provider's quota is used up (HTTP status 429); its notes wait.",
                    after_s=error.after or _QUOTA_WAIT_S,
                ) from None
            raise EmbeddingFailed(
                f"The embedding provider failed {attempts} times: {error}; try later."
            ) from None

    def _call(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        model = self._access.query_model or self._model if purpose == "query" else self._model
        sent = {"input": [sendable(text) for text in texts], "truncation": False, "model": model}
        return self._checked(self._reply("Embedding", sent, purpose), len(texts))

    def _reply(self, endpoint: str, sent: Mapping[str, Any], purpose: Purpose) -> Any:
        """Call one endpoint of the SDK and book what it bills. Raises Transient, Refused, EmbeddingFailed."""
        sdk = _sdk()
        try:
            reply = getattr(sdk, endpoint).create(
                **sent,
                input_type=purpose,
                output_dimension=self.dimension,
                api_key=self._access.api_key,
                base_url=self._access.base_url,
                request_timeout=_TIMEOUT_S,
            )
        except sdk.error.VoyageError as error:
            raise _ours(error) from None  # its text carries headers and bodies: neither shown nor logged
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise unreadable(error) from None
        self._count(reply)
        return reply

    def take_tokens(self) -> int:
        """Return how many tokens were billed since this was last asked."""
        with self._counting:
            tokens, self._tokens = self._tokens, 0
        return tokens

    def _count(self, reply: Any) -> None:
        try:
            tokens = int(reply["usage"]["total_tokens"])
        except (AttributeError, KeyError, TypeError, ValueError):
            return
        with self._counting:
            self._tokens += max(tokens, 0)

    def _checked(self, reply: Any, count: int) -> Vectors:
        try:
            entries = placed(reply["data"], count)
            vectors = np.array([entry["embedding"] for entry in entries], dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable(error) from None
        return self._unit(vectors, count)

    def _unit(self, vectors: Vectors, count: int) -> Vectors:
        try:
            return require_unit_vectors(vectors, count, self.dimension)
        except EmbeddingFailed as error:
            raise Transient(str(error)) from None


def placed(entries: Sequence[Any], count: int) -> list[Any]:
    """Return the entries of a reply in the order their index names. Raises Transient unless each of `count`
    stands there once.
    """
    found = sorted(entries, key=lambda entry: int(entry["index"]))
    if [int(entry["index"]) for entry in found] != list(range(count)):
        raise Transient(f"its reply does not hold one vector for each of {count} texts")
    return found


def unreadable(error: Exception) -> Transient:
    """Return the failure of a reply that has not the documented form."""
    return Transient(f"its reply cannot be read ({type(error).__name__})")


def refusal_of(text: str) -> EmbeddingFailed:
    """Return the failure of one text that is refused by itself; its length is told, its words are not."""
    what = f"The embedding provider does not take a text of {len(text)} characters."
    return EmbeddingFailed(what, permanent=True)


def sendable(text: str) -> str:
    """Return `text` without lone surrogates, which JSON in UTF-8 cannot carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield half-open ranges of `texts`, each under the limits of one call, or one text alone."""
    first, size = 0, 0
    for number, text in enumerate(texts):
        if number > first and (number - first >= _MAX_TEXTS or size + len(text) > _MAX_CHARACTERS):
            yield first, number
            first, size = number, 0
        size += len(text)
    if first < len(texts):
        yield first, len(texts)


def _ours(error: Any) -> Exception:
    """Turn an error of the SDK into ours by its status alone; without one the connection itself failed."""
    status = error.http_status
    if status is None:
        return Transient("it cannot be reached")
    if status in _REFUSED:
        return Refused()
    if status in (401, 403):
        return EmbeddingFailed("The embedding provider refuses the API key; check [embedding] api_key_file.")
    if status == 404:
        return EmbeddingFailed(
            "The embedding provider does not know the model; check [embedding] model and base_url."
        )
    if status in _TRANSIENT or status < 400 or status >= 500:
        return Transient(f"HTTP status {status}", _retry_after(error), quota=status == _TOO_MANY)
    return EmbeddingFailed(f"The embedding provider answered with HTTP status {status}.")


def _retry_after(error: Any) -> float:
    """Return the seconds that a 429 or 503 asks to wait; 0 where the header is absent, a date or absurd."""
    try:
        seconds = float({key.lower(): value for key, value in dict(error.headers).items()}["retry-after"])
    except (KeyError, TypeError, ValueError):
        return 0.0
    return seconds if 0 <= seconds <= _LONGEST_WAIT_S else 0.0


def _wait(state: RetryCallState) -> float:
    """Wait as long as the server asks, else a random time below 1, 2, 4 … seconds."""
    failure = state.outcome.exception() if state.outcome else None
    asked = failure.after if isinstance(failure, Transient) else 0.0
    return asked or wait_random_exponential(multiplier=1, max=_LONGEST_WAIT_S)(state)


def _sdk() -> ModuleType:
    """Import the SDK when it is first needed: it takes about a second, and warns about its own parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import voyageai
    return voyageai
