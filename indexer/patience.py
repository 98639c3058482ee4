"""How long is waited for a file system, or for the cutting of one note, that may never come back.

A read on a dead mount cannot be broken off. So it runs in a thread of its own: when that does not return in
time it is left behind, and closes what it opened if it ever does.
"""

from __future__ import annotations

import ctypes
import errno
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from notewarden.errors import ShareUnavailable

_T = TypeVar("_T")

LIMIT_S = 60.0
_MOST_STUCK = 3
_SLICE_S = 0.5
_HEED_STOP_S = 2.0


class TookTooLong(BaseException):
    """Thrown into a thread whose work is no longer wanted; it must pass every `except Exception`."""


class Patience:
    """Calls for one share, one at a time, each given up after a time without a sign of life.

    Where several calls are stuck at once the share counts as one that does not answer, until they return.
    """

    def __init__(
        self, name: str, limit_s: float = LIMIT_S, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        """`name` is the share's; `limit_s` the seconds; a stop that is asked for ends a long wait."""
        self._name = name
        self.limit_s = limit_s
        self.stopped = stopped
        # On a disk of this machine a read ends, or the whole machine stands: nothing to wait apart for.
        self.direct = False
        self._worker: _Worker | None = None
        self._stuck: list[_Worker] = []

    def call(
        self,
        work: Callable[[], _T],
        *,
        discard: Callable[[_T], object] = lambda result: None,
        limit_s: float | None = None,
        breakable: bool = False,
    ) -> _T:
        """Return what `work` returns, or raise what it raises.

        `discard` gets a result that came too late. `breakable`: the work is Python alone and is broken off.
        Raises TimeoutError when it takes too long, ShareUnavailable when too many calls are stuck.
        """
        if self.direct and not breakable:
            return work()
        self._require_life()
        if self._worker is None:
            self._worker = _Worker()
        worker = self._worker
        if worker is threading.current_thread():
            return work()
        worker.give(work, discard)
        waited = self._wait(worker, self.limit_s if limit_s is None else limit_s)
        if waited is None or not worker.abandon(breakable=breakable):
            if waited is not None:
                worker.done.acquire()  # it came back in this very moment
            return worker.result()  # type: ignore[no-any-return]
        self._worker = None
        if not breakable:
            self._stuck.append(worker)
            self._require_life()
        if waited == "stopped":
            raise ShareUnavailable(f"Stopped while share {self._name!r} did not answer.")
        raise TimeoutError(errno.ETIMEDOUT, "it did not end in time")

    def tick(self) -> None:
        """Say from within long work that it goes on."""
        worker = threading.current_thread()
        if isinstance(worker, _Worker):
            worker.heard = time.monotonic()

    def close(self) -> None:
        """Let the waiting thread end."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _wait(self, worker: _Worker, limit_s: float) -> Literal["late", "stopped"] | None:
        """Wait for the worker; None when it is done, else why no longer."""
        while not worker.done.acquire(timeout=min(_SLICE_S, limit_s)):
            silent = time.monotonic() - worker.heard
            if silent >= limit_s:
                return "late"
            if silent > _HEED_STOP_S and self.stopped():
                return "stopped"
        return None

    def _require_life(self) -> None:
        if len(self._stuck) >= _MOST_STUCK:
            self._stuck = [one for one in self._stuck if one.is_alive()]
        if len(self._stuck) >= _MOST_STUCK:
            raise ShareUnavailable(
                f"The file system of share {self._name!r} does not answer ({len(self._stuck)} reads hang); "
                "check the mount and its server. Nothing was deleted."
            )


class _Worker(threading.Thread):
    """One thread that does one thing after another, until it is left behind."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="notewarden-files")
        self._inbox: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Any], object]] | None]
        self._inbox = queue.SimpleQueue()
        self._outcome: tuple[Any, BaseException | None] = (None, None)
        self._lock = threading.Lock()
        self._finished = self._abandoned = False
        self.done = threading.Semaphore(0)
        self.heard = 0.0
        self.start()

    def give(self, work: Callable[[], Any], discard: Callable[[Any], object]) -> None:
        self.heard = time.monotonic()
        self._finished = False
        self._inbox.put((work, discard))

    def end(self) -> None:
        self._inbox.put(None)

    def result(self) -> Any:
        (value, error), self._outcome = self._outcome, (None, None)
        if error is not None:
            raise error
        return value

    def abandon(self, *, breakable: bool) -> bool:
        """Leave the thread to itself; False if it just came back after all."""
        with self._lock:
            if self._finished:
                return False
            self._abandoned = True
            if breakable and self.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self.ident), ctypes.py_object(TookTooLong)
                )
        return True

    def run(self) -> None:
        try:
            while (given := self._inbox.get()) is not None:
                if not self._do(*given):
                    return
        except TookTooLong:
            return

    def _do(self, work: Callable[[], Any], discard: Callable[[Any], object]) -> bool:
        value: Any = None
        error: BaseException | None = None
        try:
            value = work()
        except BaseException as raised:
            error = raised
        with self._lock:
            self._outcome = (value, error)
            self._finished = True
            if not self._abandoned:
                self.done.release()
                return True
        if error is None:
            discard(value)
        return False
