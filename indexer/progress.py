"""How far a run is, on standard error: one moving line on a terminal, a plain one now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from indexer.context import Progress
from notewarden.display import printable

_EVERY_S = 10.0
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Tells notes done and in all, the rate, and the time left. `close` it before printing anything else."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        terminal_only: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`terminal_only` keeps it silent where `stream` (standard error) is no terminal."""
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._silent = terminal_only and not self._terminal
        self._clock = clock
        self._share: str | None = None
        self._began = self._told = self._last = clock()
        self._open = False

    def __call__(self, progress: Progress) -> None:
        """Take one step's figures."""
        now = self._clock()
        if progress.share != self._share:  # its first step took time too
            self._share, self._began = progress.share, self._last
        self._last = now
        if self._silent or (not self._terminal and now - self._told < _EVERY_S):
            return
        self._told = now
        line = describe(progress, now - self._began)
        self._stream.write(f"{_CLEAR}{line}" if self._terminal else f"notewarden: {line}\n")
        self._stream.flush()
        self._open = self._terminal

    def say(self, words: str) -> None:
        """Show on a terminal what is waited for."""
        if self._terminal:
            self._stream.write(f"{_CLEAR}{words} … {_length(self._clock() - self._began)}")
            self._stream.flush()
            self._open = True

    def close(self) -> None:
        """Take the moving line away."""
        if self._open:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._open = False


def describe(progress: Progress, elapsed_s: float) -> str:
    """Return one line: what is done after `elapsed_s` seconds of this share, how fast, and what is left."""
    line = f"{printable(progress.share)}: {progress.done} of {progress.total} notes"
    line += f", {progress.embedded} chunks embedded"
    if elapsed_s <= 0 or not progress.done:
        return line
    rate = progress.done / elapsed_s
    return line + f", {rate:.1f} notes/s, {_length((progress.total - progress.done) / rate)} left"


def _length(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
