"""Claude through its SDK: one request, streamed, with every way it can end told apart."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from threading import Thread
from types import ModuleType
from typing import Any, Literal

from answerer.citations import Location
from notewarden.errors import ConfigError, ProviderFailed
from notewarden.secret_files import read_secret
from notewarden.settings_fields import is_loopback
from notewarden.settings_sections import AnswerSettings

HOME = "https://api.anthropic.com"
_CONNECT_S = 10.0
_RETRIES = 2  # after the first call; the SDK waits as long as Retry-After asks
_ABOUT_S = 30.0
_COMPLETE = frozenset({"end_turn", "stop_sequence"})
_TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504, 529})

Ending = Literal["complete", "cut", "refusal", "max_tokens", "context", "down", "interrupted"]


class ModelDown(ProviderFailed):
    """The model provider cannot be reached."""


class ModelRejected(ModelDown):
    """The model provider does not take the request as it is."""


class ModelUnknown(ProviderFailed):
    """The model provider does not know the model."""


class Unfinished(ProviderFailed):
    """The model broke off."""

    def __init__(self, message: str, ending: Ending) -> None:
        """`ending` is what the audit calls it."""
        super().__init__(message)
        self.ending: Ending = ending


@dataclass(frozen=True)
class Text:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True)
class Block:
    """The end of a block of text."""


@dataclass
class Usage:
    """Tokens as billed; `cache_read` and `cache_write` are not in `fresh`."""

    fresh: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def input(self) -> int:
        """All that went in, cached or not."""
        return self.fresh + self.cache_read + self.cache_write

    def take(self, told: Any) -> None:
        """Go by the last numbers told; they are cumulative."""
        self.fresh = _number(told, "input_tokens", self.fresh)
        self.output = _number(told, "output_tokens", self.output)
        self.cache_read = _number(told, "cache_read_input_tokens", self.cache_read)
        self.cache_write = _number(told, "cache_creation_input_tokens", self.cache_write)


Event = Text | Location | Block


@dataclass
class Call:
    """One request to a model. `usage` fills while it runs, also when it breaks off.

    `schema`: the JSON schema that the reply must fit; then it holds no citations.
    """

    model: str
    system: str
    messages: Sequence[dict[str, Any]]
    max_tokens: int
    usage: Usage = field(default_factory=Usage)
    schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class AboutModel:
    """What the provider tells of a model; `lifecycle` "" and limits (tokens) None where it does not."""

    name: str
    lifecycle: str
    retires: date | None
    most_input: int | None
    most_output: int | None


class Claude:
    """A server that speaks the Messages API. Threads may share it."""

    def __init__(self, settings: AnswerSettings) -> None:
        """Raises ConfigError where the provider's own address would be called without a key."""
        self._settings = settings
        key = read_secret(settings.api_key_file, "ANTHROPIC_API_KEY")
        if key is None and settings.base_url is None:
            raise ConfigError(
                "[answer] provider anthropic needs a key; set api_key_file or the variable ANTHROPIC_API_KEY."
            )
        self._key = key or "none"
        Thread(target=_sdk, daemon=True, name="import-sdk").start()  # it takes a second, beside the search

    def stream(self, call: Call) -> Generator[Event, None, None]:
        """Yield the answer as it comes.

        Raises ModelDown before anything was yielded and Unfinished after; an answer that ends without a word
        of why is not a whole one.
        """
        started = False
        try:
            with closing(self._events(call)) as events:
                for event in events:
                    started = True
                    yield event
        except Unfinished as error:
            if error.ending == "cut" and not started:
                raise _down_or_cut(started) from None
            raise
        except (ProviderFailed, GeneratorExit):
            raise
        except Exception as error:  # whatever the SDK and its HTTP library raise
            raise self._ours(error, started) from None

    def _events(self, call: Call) -> Generator[Event, None, None]:
        deadline = time.monotonic() + self._settings.timeout.total_seconds()
        ended: str | None = None
        with self._client().messages.create(**self._request(call), stream=True) as stream:
            for event in stream:
                if time.monotonic() > deadline:
                    raise Unfinished("The model took too long and was cut off.", "cut")
                if event.type == "message_start":
                    call.usage.take(event.message.usage)
                elif event.type == "message_delta":
                    call.usage.take(event.usage)
                    ended = event.delta.stop_reason or ended
                else:
                    yield from _parts(event)
        _require_complete(ended)

    def complete(self, call: Call) -> str:
        """Return the text of a short reply as a whole. Raises ModelDown, Unfinished."""
        return "".join(event.text for event in self.stream(call) if isinstance(event, Text))

    def about(self, model: str) -> AboutModel | None:
        """Ask what the provider knows of a model; it costs nothing.

        None from a server of another kind that does not tell. Raises ModelUnknown, ModelDown.
        """
        try:
            with _new_client(_sdk(), self._key, self._settings.base_url or HOME, _ABOUT_S) as client:
                told = client.models.retrieve(model)
        except Exception as error:  # whatever the SDK and its HTTP library raise
            status = getattr(error, "status_code", None)
            if status == 404 and self._is_claudes(error):
                raise ModelUnknown(f"The model provider does not know {model!r}.") from None
            if status in (404, 405, 501):
                return None
            raise self._ours(error, started=False) from None
        return _about(told)

    def _is_claudes(self, error: Any) -> bool:
        """Whether a "not found" is about the model: a server that lacks the question says it otherwise."""
        body = error.body if isinstance(error.body, dict) else {}
        kind = body.get("error", {}).get("type") if isinstance(body.get("error"), dict) else None
        return self._settings.base_url is None or (body.get("type"), kind) == ("error", "not_found_error")

    def _request(self, call: Call) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": call.model,
            "max_tokens": call.max_tokens,
            "system": [{"type": "text", "text": call.system, "cache_control": {"type": "ephemeral"}}],
            "messages": list(call.messages),
        }
        output: dict[str, Any] = {"effort": self._settings.effort} if self._settings.effort else {}
        if call.schema is not None:
            output["format"] = {"type": "json_schema", "schema": call.schema}
        if output:
            request["output_config"] = output
        return request

    def _client(self) -> Any:
        sdk = _sdk()
        address = self._settings.base_url or HOME
        return _client(sdk, self._key, address, self._settings.timeout.total_seconds())

    def _ours(self, error: Exception, started: bool) -> ProviderFailed:
        sdk = _sdk()
        status = getattr(error, "status_code", None) if isinstance(error, sdk.APIStatusError) else None
        if started or status == 200:  # an error event in a stream that had begun well
            return _down_or_cut(started)
        if isinstance(error, sdk.APITimeoutError):
            return ModelDown("The model provider did not answer in time.")
        if status is None:
            return ModelDown("The model provider cannot be reached.")
        return _by_status(int(status))


def _down_or_cut(started: bool) -> ProviderFailed:
    if started:
        return Unfinished("The connection to the model broke off; what was shown is incomplete.", "cut")
    return ModelDown("The model provider broke off before it said anything.")


def _by_status(status: int) -> ModelDown:
    if status in (401, 403):
        return ModelDown("The model provider refuses the API key; check [answer] api_key_file.")
    if status == 404:
        return ModelDown("The model provider does not know the model; check [answer] model and base_url.")
    if status in (400, 413, 422):
        return ModelRejected(f"The model provider does not take the request (HTTP status {status}).")
    if status == 429:
        return ModelDown("The model provider takes no more requests for now (HTTP status 429).")
    if status in _TRANSIENT:
        return ModelDown(f"The model provider is overloaded or failing (HTTP status {status}).")
    return ModelDown(f"The model provider answered with HTTP status {status}.")


def _parts(event: Any) -> Iterator[Event]:
    """Pick text and citations by their type: thinking and whatever else may come is not the answer."""
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        if event.delta.text:
            yield Text(event.delta.text)
    elif event.type == "content_block_delta" and event.delta.type == "citations_delta":
        one = event.delta.citation
        if one.type == "search_result_location":
            yield Location(one.search_result_index, one.start_block_index, one.end_block_index)
        else:
            yield Location(-1, 0, 0)  # nothing of the kind was given: it falls
    elif event.type == "content_block_stop":
        yield Block()


def _require_complete(ended: str | None) -> None:
    if ended in _COMPLETE:
        return
    if ended == "refusal":
        raise Unfinished("The model refused to answer this.", "refusal")
    if ended == "max_tokens":
        raise Unfinished(
            "The answer reached its length limit and is incomplete; ask for less, or raise [answer] "
            "max_tokens.",
            "max_tokens",
        )
    if ended == "model_context_window_exceeded":
        raise Unfinished("The notes are too long for the model; ask within a --folder.", "context")
    raise Unfinished("The model broke off; what was shown is incomplete.", "cut")


def _about(told: Any) -> AboutModel:
    """The SDK does not check what it reads: another server may leave out anything."""
    retires = getattr(told, "retires_at", None)
    limits = [getattr(told, name, None) for name in ("max_input_tokens", "max_tokens")]
    most_input, most_output = (one if isinstance(one, int) and one > 0 else None for one in limits)
    return AboutModel(
        name=str(getattr(told, "display_name", None) or getattr(told, "id", None) or ""),
        lifecycle=str(getattr(told, "lifecycle", None) or ""),
        retires=retires.date() if isinstance(retires, datetime) else None,
        most_input=most_input,
        most_output=most_output,
    )


def _number(told: Any, name: str, before: int) -> int:
    value = getattr(told, name, None)
    return int(value) if isinstance(value, int) and value >= 0 else before


def _new_client(sdk: ModuleType, key: str, address: str, patience: float) -> Any:
    """A machine's proxy is not asked for itself."""
    each = patience / (_RETRIES + 1)  # a server that is alive sends pings while its model thinks
    timeout = sdk.Timeout(each, connect=min(_CONNECT_S, each))
    options = {"http_client": sdk.DefaultHttpxClient(trust_env=False)} if is_loopback(address) else {}
    return sdk.Anthropic(api_key=key, base_url=address, timeout=timeout, max_retries=_RETRIES, **options)


@cache
def _client(sdk: ModuleType, key: str, address: str, patience: float) -> Any:
    """One client for each address: its connections are kept."""
    return _new_client(sdk, key, address, patience)


@cache
def _sdk() -> ModuleType:
    """Import the SDK when it is first needed."""
    import anthropic

    return anthropic
