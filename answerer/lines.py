"""An answer over HTTP as it comes: JSON lines, the last one the whole answer or why there is none."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any

from anyio import to_thread
from fastapi.responses import StreamingResponse

from answerer.results import Answer
from answerer.visit import Reply
from notewarden.errors import Interrupted, NotewardenError
from notewarden.log import get_logger

LINES = "application/x-ndjson"
"""What a client accepts that wants text as it comes."""

_BUG = "The answerer failed unexpectedly; its log has more."
_PATIENCE_S = 1.0  # between looks at whether the client is still there

_Answering = Callable[[Callable[[str], None]], Reply[Answer]]


class _Work:
    """One answer in the making, in a thread of its own."""

    def __init__(self, answer: _Answering) -> None:
        self._answer = answer
        self.events: Queue[dict[str, Any]] = Queue()
        self.left = Event()
        self.thread = Thread(target=self._run, daemon=True, name="answer")

    def _show(self, text: str) -> None:
        if self.left.is_set():
            raise Interrupted
        self.events.put({"text": text})

    def _run(self) -> None:
        try:
            reply = self._answer(self._show)
            self.events.put({"answer": reply.result.to_json(), "notices": list(reply.notices)})
        except NotewardenError as error:
            self.events.put({"error": error})
        except Exception as error:  # it may quote a note: its type alone is logged
            get_logger(__name__).error("unexpected fault", fault=type(error).__name__)
            self.events.put({"error": NotewardenError(_BUG)})


def as_lines(answer: _Answering) -> StreamingResponse:
    """Return a response of lines {"text"}, then {"answer", "notices"} or {"error", "exit_code"}.

    What fails before there is any text is raised, so that it is answered with its HTTP status. Where the
    client has gone, the model is told to stop.
    """
    work = _Work(answer)
    work.thread.start()
    first = work.events.get()
    if "error" in first:
        raise first["error"]
    return StreamingResponse(_lines(work, first), media_type=LINES, headers={"Content-Type": LINES})


async def _lines(work: _Work, first: dict[str, Any]) -> AsyncIterator[bytes]:
    event: dict[str, Any] | None = first
    try:
        while event is not None:
            yield _line(event)
            last = bool(event.keys() & {"answer", "error"})
            event = None if last else await to_thread.run_sync(_next, work, abandon_on_cancel=True)
    finally:
        work.left.set()  # also where the client has gone: then this is cancelled


def _next(work: _Work) -> dict[str, Any]:
    while True:
        try:
            return work.events.get(timeout=_PATIENCE_S)
        except Empty:
            if work.left.is_set() or not (work.thread.is_alive() or work.events.qsize()):
                return {"error": NotewardenError(_BUG)}


def _line(event: dict[str, Any]) -> bytes:
    error = event.get("error")
    if isinstance(error, NotewardenError):
        event = {"error": str(error), "exit_code": error.exit_code}
    return json.dumps(event).encode("ascii") + b"\n"
