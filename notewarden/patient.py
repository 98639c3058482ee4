"""Looks at a folder that may never answer: on a mount whose server is gone every system call waits for ever.

Such a call cannot be broken off, so each look runs in a thread of its own and is left behind after a time.
One that was left behind is remembered: until it returns, or something else is mounted, nobody waits for the
same folder again.
"""

from __future__ import annotations

import errno
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from notewarden.errors import ConfigError

_T = TypeVar("_T")

LIMIT_S = 3.0
"""For what can do without an answer."""
FIRST_S = 15.0
"""For what needs the share itself: the disks of a NAS may have to wake up first."""


def call(root: Path, work: Callable[[], _T], limit_s: float | None = None) -> _T:
    """Return what `work`, which touches the file system at `root`, returns, or raise what it raises.

    Raises TimeoutError after `limit_s` seconds (None: LIMIT_S), counted from when the look began that is out.
    """
    limit_s = LIMIT_S if limit_s is None else limit_s
    before = _left_behind.get(root)
    if before is not None and is_silent(root):
        before.wait(limit_s)
    _left_behind.pop(root, None)
    look = _Look(work)
    try:
        look.wait(limit_s)
    except TimeoutError:
        _left_behind[root] = look
        raise
    return look.result()  # type: ignore[no-any-return]


def answers(root: Path, limit_s: float | None = None) -> bool:
    """Whether the file system at `root` says anything in time; that something is missing is an answer."""
    try:
        call(root, partial(os.stat, root), limit_s)
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def is_silent(root: Path) -> bool:
    """Whether a look at `root` was left behind and is still out; nothing is looked at for this."""
    before = _left_behind.get(root)
    return before is not None and not before.done.is_set() and before.mounts == _mounts()


def real_path(path: Path) -> Path:
    """Return `path` without links, or as it is written where its file system does not answer."""
    try:
        return call(path, path.resolve)
    except TimeoutError:
        return plain_path(path)


def plain_path(path: Path) -> Path:
    """Return the absolute path as its spelling alone gives it: nothing is looked at, links stay."""
    return Path(os.path.normpath(path.absolute()))


def real_paths(paths: Sequence[Path]) -> list[Path]:
    """Return the `real_path` of each, all looked up at once: several dead mounts cost the time of one."""
    looks = [_Look(partial(real_path, path)) for path in paths]
    return [look.result() for look in looks]


def is_file(path: Path) -> bool:
    """Whether a configuration is there. Raises ConfigError where its file system does not answer."""
    try:
        return call(path, path.is_file)
    except TimeoutError as error:
        raise ConfigError(
            f"The file system does not answer that {path} would be on; check its server, or name another "
            "configuration with --config."
        ) from error


class _Look:
    """One call in a thread of its own while it lasts."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._began = time.monotonic()
        self.mounts = _mounts()
        self.done = threading.Event()
        self._value: Any = None
        self._error: BaseException | None = None
        try:
            hand = _idle.pop()
        except IndexError:
            hand = _Hand()
        hand.given.put(self)

    def wait(self, limit_s: float) -> None:
        """Raise TimeoutError if it is not done `limit_s` seconds after it began."""
        if not self.done.wait(max(0.0, self._began + limit_s - time.monotonic())):
            raise TimeoutError(errno.ETIMEDOUT, "its file system does not answer")

    def result(self) -> Any:
        """Return or raise what came of it, as soon as it is done."""
        self.done.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def run(self, hand: _Hand) -> None:
        """Do it; the hand is free again before anybody hears of it."""
        try:
            self._value = self._work()
        except BaseException as error:
            self._error = error
        _idle.append(hand)
        self.done.set()


class _Hand(threading.Thread):
    """Does one look after another; it keeps no process from ending."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="notewarden-look")
        self.given: queue.SimpleQueue[_Look] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            self.given.get().run(self)


_left_behind: dict[Path, _Look] = {}
_idle: list[_Hand] = []
for _of_threads in (_left_behind, _idle):  # a child process has none of them
    os.register_at_fork(after_in_child=_of_threads.clear)


def _mounts() -> bytes:
    """The mounts of this machine: after `umount -l` an old look hangs on, and says nothing of the new one."""
    return Path("/proc/self/mountinfo").read_bytes()
