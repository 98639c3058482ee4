"""A fake Claude: the Messages API on loopback, as the real SDK speaks to it. Test equipment.

It answers by quoting the block that fits the question best, or plays a script: whole replies, errors, broken
streams. Every request is recorded as it came over the wire.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Cite = tuple[int, int, int]
"""search_result_index, start_block_index, end_block_index."""

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


@dataclass
class Reply:
    """One reply: text blocks with what they cite. `blocks` may be a function of the request's body."""

    blocks: Sequence[tuple[str, Sequence[Cite]]] | Callable[[dict[str, Any]], Any] = ()
    stop_reason: str | None = "end_turn"
    thinking: str = ""
    usage: dict[str, int] = field(default_factory=lambda: {"input_tokens": 100, "output_tokens": 20})
    cut_after: int | None = None  # events sent before the connection is closed
    ended: bool = True  # False: no message_delta and no message_stop, though the response ends well
    error_after: int | None = None  # events sent before an error event
    garbage_after: int | None = None  # events sent before something that is no JSON
    hang_after: int | None = None  # events sent before silence
    delay: float = 0.0  # seconds before the first event
    pause: float = 0.0  # seconds between pieces
    piece: int = 12  # characters of a text delta


@dataclass
class Failure:
    """An error instead of a reply."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "told by the fake"


@dataclass
class Silence:
    """A server that takes the request and says nothing for `seconds`, then hangs up."""

    seconds: float = 5.0


@dataclass
class HangUp:
    """The connection is closed at once."""


Step = Reply | Failure | Silence | HangUp


@dataclass
class Request:
    """One request: path, headers in lower case, JSON body and the raw bytes."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes
    at: float


class FakeClaude:
    """The running server. `script` is played first; then `otherwise`, quoting unless told differently."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.script: deque[Step] = deque()
        self.otherwise: Step = Reply(quoting)
        self.first_token_at: list[float] = []
        self.without_search_results = False  # as a server that has never heard of them
        self.models: dict[str, dict[str, Any] | Failure] | None = None  # None: no Models API
        self.stopping = threading.Event()
        fake = self

        class Handler(_Handler):
            claude = fake

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def reset(self) -> None:
        """Forget every request and every script."""
        self.requests.clear()
        self.script.clear()
        self.first_token_at.clear()
        self.otherwise = Reply(quoting)
        self.without_search_results = False
        self.models = None

    def reset_times(self) -> None:
        """Forget when tokens were sent."""
        self.first_token_at.clear()

    def next_step(self, body: dict[str, Any]) -> Step:
        if self.without_search_results and "search_result" in json.dumps(body):
            return Failure(400)
        return self.script.popleft() if self.script else self.otherwise

    @property
    def wire(self) -> str:
        """Everything that was sent, decoded, JSON escapes resolved."""
        return "\n".join(json.dumps(one.body, ensure_ascii=False) for one in self.requests)


@contextmanager
def fake_claude() -> Iterator[FakeClaude]:
    """Yield a running fake."""
    fake = FakeClaude()
    fake.start()
    try:
        yield fake
    finally:
        fake.stop()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Clients that leave are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    claude: FakeClaude
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """The Models API: what is told of one model."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.claude.requests.append(Request(self.path, headers, {}, b"", time.monotonic()))
        name = self.path.removeprefix("/v1/models/")
        if self.claude.models is None:
            self._json(404, {"detail": "Not Found"})  # as a server that only answers
        elif isinstance(known := self.claude.models.get(name, Failure(404)), Failure):
            self._fail(known)
        else:
            told = {"id": name, "type": "model", "display_name": name.title(), "lifecycle": "active"}
            self._json(200, {**told, "created_at": "2026-01-01T00:00:00Z", **known})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        body = json.loads(raw)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.claude.requests.append(Request(self.path, headers, body, raw, time.monotonic()))
        if self.path != "/v1/messages":
            self._fail(Failure(404))
            return
        problem = _invalid(body)
        step: Step = Failure(400, message=problem) if problem else self.claude.next_step(body)
        if isinstance(step, Failure):
            self._fail(step)
        elif isinstance(step, Silence):
            self.claude.stopping.wait(step.seconds)
            self.close_connection = True
        elif isinstance(step, HangUp):
            self.close_connection = True
        elif body.get("stream"):
            self._stream(step, body)
        else:
            self._whole(step, body)

    def _fail(self, failure: Failure) -> None:
        error = {"type": _ERRORS.get(failure.status, "api_error"), "message": failure.message}
        self._json(
            failure.status, {"type": "error", "error": error, "request_id": "req_fake"}, failure.headers
        )

    def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _whole(self, step: Reply, body: dict[str, Any]) -> None:
        content = [
            {"type": "text", "text": text, "citations": [_location(body, cite) for cite in cites] or None}
            for text, cites in _blocks(step, body)
        ]
        message = {**_head(body), "content": content, "stop_reason": step.stop_reason, "usage": step.usage}
        self._json(200, message)

    def _stream(self, step: Reply, body: dict[str, Any]) -> None:
        self.claude.stopping.wait(step.delay)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for number, event in enumerate(_events(step, body)):
                if number == step.cut_after or not self._broken(step, number):
                    return
                self._send(event)
                if step.pause:
                    self.claude.stopping.wait(step.pause)
        except OSError:
            return  # who asked has gone

    def _broken(self, step: Reply, number: int) -> bool:
        """Play the faults due before event `number`; returns whether the stream goes on."""
        if number == step.error_after:
            error = {"type": "overloaded_error", "message": "Overloaded"}
            self._send({"type": "error", "error": error})
            return False
        if number == step.garbage_after:
            self.wfile.write(b"event: content_block_delta\ndata: {no json\n\n")
            return False
        if number == step.hang_after:
            self.claude.stopping.wait(30)
            return False
        return True

    def _send(self, event: dict[str, Any]) -> None:
        if event.get("delta", {}).get("type") == "text_delta":
            self.claude.first_token_at.append(time.monotonic())
        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()


def _head(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _blocks(step: Reply, body: dict[str, Any]) -> Any:
    return step.blocks(body) if callable(step.blocks) else step.blocks


def _events(step: Reply, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = {**step.usage, "output_tokens": 1}
    yield {"type": "message_start", "message": {**_head(body), "usage": usage}}
    index = 0
    if step.thinking:
        yield _start(index, {"type": "thinking", "thinking": "", "signature": ""})
        yield _delta(index, {"type": "thinking_delta", "thinking": step.thinking})
        yield _delta(index, {"type": "signature_delta", "signature": "sig"})
        yield {"type": "content_block_stop", "index": index}
        index += 1
    for text, cites in _blocks(step, body):
        yield _start(index, {"type": "text", "text": "", **({"citations": []} if cites else {})})
        for at in range(0, len(text), step.piece):
            yield _delta(index, {"type": "text_delta", "text": text[at : at + step.piece]})
        for cite in cites:
            yield _delta(index, {"type": "citations_delta", "citation": _location(body, cite)})
        yield {"type": "content_block_stop", "index": index}
        index += 1
    if step.ended:
        stop = {"stop_reason": step.stop_reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": stop, "usage": step.usage}
        yield {"type": "message_stop"}


def _start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def search_results(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the search_result blocks of a request in the order in which they are counted."""
    found = []
    for message in body["messages"]:
        if isinstance(message["content"], list):
            found += [block for block in message["content"] if block["type"] == "search_result"]
    return found


def question_of(body: dict[str, Any]) -> str:
    """Return the last text of the last message."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


def _location(body: dict[str, Any], cite: Cite) -> dict[str, Any]:
    index, start, end = cite
    results = search_results(body)
    result = (
        results[index] if 0 <= index < len(results) else {"source": "made up", "title": "", "content": []}
    )
    return {
        "type": "search_result_location",
        "search_result_index": index,
        "start_block_index": start,
        "end_block_index": end,
        "source": result["source"],
        "title": result["title"],
        "cited_text": "".join(block["text"] for block in result["content"][start:end]),
    }


_MARK = re.compile(r"\[(\d+\.\d+)\] ")


def quoting(body: dict[str, Any]) -> list[tuple[str, list[Cite]]]:
    """Answer with the block that shares most words with the question, whole, and cite it."""
    words = set(re.findall(r"\w{3,}", question_of(body).casefold()))
    best: tuple[int, str, list[Cite]] = (0, "", [])
    for index, result in enumerate(search_results(body)):
        for number, block in enumerate(result["content"]):
            shared = len(words & set(re.findall(r"\w{3,}", block["text"].casefold())))
            if shared > best[0]:
                best = (shared, block["text"], [(index, number, number + 1)])
    if not search_results(body) and isinstance(body["messages"][-1]["content"], list):
        for block in body["messages"][-1]["content"][:-1]:
            mark = _MARK.match(block["text"])
            shared = len(words & set(re.findall(r"\w{3,}", block["text"].casefold())))
            if mark and shared > best[0]:
                best = (shared, f"{block['text'][mark.end() :]} [{mark[1]}]", [])
    if not best[0]:
        return [("The notes do not cover this.", [])]
    return [(best[1], best[2])]


def _invalid(body: dict[str, Any]) -> str | None:
    """Refuse what the real API refuses."""
    if not body.get("model") or not body.get("max_tokens") or not body.get("messages"):
        return "model, max_tokens and messages are required"
    if {"temperature", "top_p", "top_k"} & body.keys():
        return "sampling parameters are not supported"
    if body["messages"][-1]["role"] != "user":
        return "prefill is not supported"
    cited = {bool(one.get("citations", {}).get("enabled")) for one in search_results(body)}
    if len(cited) > 1:
        return "citations must be enabled on all or none"
    for one in search_results(body):
        if not one["content"] or any(not block["text"].strip() for block in one["content"]):
            return "text content blocks must be non-empty"
    return None
