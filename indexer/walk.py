"""The walk: one listing per folder, or the error that kept it from being listed. An error is data."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from acl.model import AccessList
from acl.source import Source
from indexer.files import Entry, Files
from indexer.patience import Patience
from indexer.patterns import MAYBE_JUNK, Patterns

_KIND = stat.S_IFMT(0o177777)

DEEPEST = 200
"""Folders below the root that a note may stand in: each adds its lists to those that guard the note, of which
a row holds 1,024, and an open descriptor to the walk."""


@dataclass(frozen=True)
class Listing:
    """One folder that listed well: its guards from the root down, and its notes as (path, stat).

    `odd` are names that look like notes but are no regular files, with the reason. `entries` counts what a
    root holds that is no junk: one with nothing but `@eaDir` or `#recycle` in it is an emptied one.
    """

    folder: bytes
    guards: tuple[AccessList, ...]
    notes: list[tuple[bytes, os.stat_result]]
    odd: list[tuple[bytes, str]] = field(default_factory=list)
    entries: int = 0


@dataclass(frozen=True)
class Failure:
    """One folder that could not be opened, listed or whose guards could not be read."""

    folder: bytes
    error: OSError

    @property
    def refused(self) -> bool:
        """Whether the folder is closed to this service for good, rather than failing for now."""
        return self.error.errno in (errno.EACCES, errno.EPERM, errno.EXDEV, errno.ENAMETOOLONG)

    @property
    def reason(self) -> str:
        """What happened, for the ledger."""
        if self.error.errno == errno.EXDEV:
            return "another file system is mounted there; make it a share of its own"
        if self.error.errno == errno.ENAMETOOLONG:
            return f"more than {DEEPEST} folders stand one in the other here; move it up"
        if self.refused:
            return "this service's account may not list the folder"
        return f"the folder could not be listed ({self.error.strerror})"


Outcome = Listing | Failure


@dataclass
class _Frame:
    """An open folder on the way down, with the names of its folders still to be walked."""

    fd: int
    folder: str
    guards: tuple[AccessList, ...]
    names: list[str]


class Walk:
    """Walks a share depth first through directory descriptors; as many are open as the folder is deep."""

    def __init__(
        self, files: Files, source: Source, patterns: Patterns, patience: Patience | None = None
    ) -> None:
        self._files = files
        self._source = source
        self._patterns = patterns
        self._patience = patience or Patience("")

    def run(self, root: int) -> Generator[Outcome]:
        """Yield every folder below the open `root`, itself first; `root` stays open."""
        stack: list[_Frame] = []
        try:
            yield self._enter(lambda: os.dup(root), "", (), stack)
            while stack:
                frame = stack[-1]
                if frame.names:
                    yield self._step(frame, frame.names.pop(), stack)
                else:
                    os.close(stack.pop().fd)
        finally:
            for frame in stack:
                os.close(frame.fd)

    def _step(self, frame: _Frame, name: str, stack: list[_Frame]) -> Outcome:
        path = f"{frame.folder}/{name}" if frame.folder else name
        raw_name = os.fsencode(name)
        if len(stack) > DEEPEST:
            return Failure(os.fsencode(path), OSError(errno.ENAMETOOLONG, "it stands too deep"))
        return self._enter(lambda: self._files.open_folder(frame.fd, raw_name), path, frame.guards, stack)

    def _enter(
        self, opener: Callable[[], int], folder: str, guards: tuple[AccessList, ...], stack: list[_Frame]
    ) -> Outcome:
        raw = os.fsencode(folder)
        try:
            fd, own, entries = self._patience.call(
                lambda: self._look_into(opener, raw), discard=lambda looked: os.close(looked[0])
            )
        except OSError as error:
            return Failure(raw, error)
        listing, names = self._sort(raw, guards + own, folder, entries)
        stack.append(_Frame(fd, folder, listing.guards, sorted(names, reverse=True)))
        return listing

    def _look_into(
        self, opener: Callable[[], int], raw: bytes
    ) -> tuple[int, tuple[AccessList, ...], list[Entry]]:
        fd = opener()
        try:
            return fd, self._source.parent_lists(fd, raw), self._files.scan(fd)
        except BaseException:
            os.close(fd)
            raise

    def _sort(
        self,
        raw: bytes,
        guards: tuple[AccessList, ...],
        folder: str,
        entries: list[tuple[str, os.stat_result]],
    ) -> tuple[Listing, list[str]]:
        prefix, raw_prefix = (folder + "/", raw + b"/") if folder else ("", b"")
        standing = len(entries) if raw else sum(not self._patterns.is_junk(name) for name, _ in entries)
        listing = Listing(raw, guards, [], [], standing)
        folders = []
        takes, add, suffix = self._patterns.takes_note, listing.notes.append, self._patterns.plain_suffix
        for name, info in entries:  # once for every file of the share: no calls that are not needed
            kind = info.st_mode & _KIND
            if kind == stat.S_IFREG:
                if (name.endswith(suffix) and name[0] not in MAYBE_JUNK) or takes(prefix, name):
                    add((raw_prefix + name.encode("utf-8", "surrogateescape"), info))
            elif kind == stat.S_IFDIR:
                if self._patterns.takes_folder(prefix + name, name):
                    folders.append(name)
            elif takes(prefix, name):
                reason = "a link; links are not followed" if kind == stat.S_IFLNK else "not a regular file"
                listing.odd.append((raw_prefix + name.encode("utf-8", "surrogateescape"), reason))
        return listing, folders
