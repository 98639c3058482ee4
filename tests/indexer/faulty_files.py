"""A file system with switches: the real one, on which opens fail, listings end early, and clocks are coarse.

Paths are raw and relative to the share's root, as in the index. Which path an operation is about is asked of
the kernel, so descriptors that were duplicated or used again are no trouble.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from indexer.files import Entry, Files

OPEN_FOLDER, OPEN_NOTE, SCAN, STAT, LOOK, READ = "open_folder", "open_note", "scan", "stat", "look", "read"
EVERYTHING = frozenset({OPEN_FOLDER, OPEN_NOTE, SCAN, STAT, LOOK, READ})


@dataclass
class Fault:
    """An error for every operation of `kinds` on `path` and, with `below`, on all that lies under it."""

    path: bytes
    error: int
    kinds: frozenset[str] = EVERYTHING
    below: bool = True

    def hits(self, kind: str, path: bytes) -> bool:
        under = self.below and (not self.path or path.startswith(self.path + b"/"))
        return kind in self.kinds and (path == self.path or under)


@dataclass
class FaultyFiles(Files):
    """Files with faults. `heal` takes them all away."""

    may_hang = True
    root: Path
    faults: list[Fault] = field(default_factory=list)
    halved: dict[bytes, int] = field(default_factory=dict)
    latency: float = 0.0
    step_ns: int = 1
    before_read: Callable[[bytes], None] = lambda path: None
    after_read: Callable[[bytes], None] = lambda path: None
    opened: list[bytes] = field(default_factory=list)
    elsewhere: Path | None = None  # what is mounted at the root instead
    hanging: dict[bytes, frozenset[str]] = field(default_factory=dict)
    released: threading.Event = field(default_factory=threading.Event)

    def hang(self, path: bytes, *kinds: str) -> None:
        """Let operations on `path` and below not come back before `heal`."""
        self.released = threading.Event()
        self.hanging[path] = frozenset(kinds) or EVERYTHING

    def fail(self, path: bytes, error: int, *kinds: str, below: bool = True) -> None:
        """Let operations on `path` (all kinds unless some are named) fail with an errno."""
        self.faults.append(Fault(path, error, frozenset(kinds) or EVERYTHING, below))

    def heal(self) -> None:
        """Take every fault away."""
        self.faults.clear()
        self.halved.clear()
        self.hanging.clear()
        self.released.set()
        self.elsewhere = None
        self.latency, self.step_ns = 0.0, 1
        self.before_read = self.after_read = lambda path: None

    def open_root(self, root: Path) -> int:
        self._trip(OPEN_FOLDER, b"")
        return super().open_root(self.elsewhere or root)

    def kind(self, root: Path) -> str:
        return "cifs" if self.step_ns > 1 else super().kind(root)

    def open_folder(self, parent: int, name: bytes) -> int:
        self._trip(OPEN_FOLDER, self._join(parent, name))
        time.sleep(self.latency)
        return super().open_folder(parent, name)

    def open_known(self, parent: int, name: bytes) -> int:
        self._trip(OPEN_NOTE, self._join(parent, name))
        time.sleep(self.latency)
        self.opened.append(self._join(parent, name))
        return super().open_known(parent, name)

    def scan(self, folder: int) -> list[Entry]:
        path = self.path_of(folder)
        self._trip(SCAN, path)
        entries = [(name, self._coarse(info)) for name, info in super().scan(folder)]
        return sorted(entries, key=lambda entry: entry[0])[: self.halved.get(path)]

    def stat(self, fd: int) -> os.stat_result:
        self._trip(STAT, self.path_of(fd))
        return self._coarse(super().stat(fd))

    def look(self, parent: int, name: bytes) -> os.stat_result:
        self._trip(LOOK, self._join(parent, name))
        return self._coarse(super().look(parent, name))

    def read(self, fd: int, most: int) -> bytes:
        path = self.path_of(fd)
        self._trip(READ, path)
        self.before_read(path)
        raw = super().read(fd, most)
        self.after_read(path)
        return raw

    def path_of(self, fd: int) -> bytes:
        """The raw path of an open file below the root, b"" for the root itself."""
        place = Path(f"/proc/self/fd/{fd}").readlink()
        if not place.is_relative_to(self.root):
            return os.fsencode(place)  # moved away meanwhile
        return b"" if place == self.root else os.fsencode(place.relative_to(self.root))

    def _join(self, parent: int, name: bytes) -> bytes:
        folder = self.path_of(parent)
        return folder + b"/" + name if folder else name

    def _trip(self, kind: str, path: bytes) -> None:
        for place, kinds in list(self.hanging.items()):
            if kind in kinds and (path == place or path.startswith(place + b"/") or not place):
                self.released.wait(60)
        for fault in self.faults:
            if fault.hits(kind, path):
                raise OSError(fault.error, os.strerror(fault.error))

    def _coarse(self, info: os.stat_result) -> os.stat_result:
        """The same state as a file system shows it whose times step by `step_ns`."""
        if self.step_ns == 1:
            return info
        times = {
            name: getattr(info, name) // self.step_ns * self.step_ns
            for name in ("st_atime_ns", "st_mtime_ns", "st_ctime_ns")
        }
        return os.stat_result(tuple(info), times)
