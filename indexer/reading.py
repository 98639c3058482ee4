"""Reading a note: lists, text, lists again, all from one descriptor: a policy belongs to one text."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from acl.model import AccessList
from acl.source import Source, TextGiving
from db.notes import FileState, Known
from indexer.files import Files, opened_folder, opened_note
from indexer.hint import Clock, ctime_of, hint_of, inode_of, size_of
from indexer.patience import Patience
from notewarden.errors import NoteChanged, NoteSkipped, NoteUnreadable

_TRIES = 3
_PAUSE_S = 0.05


@dataclass(frozen=True)
class ReadNote:
    """A note as it stood: bytes, the note's own lists that held before and after, and the file's state."""

    path: bytes
    raw: bytes
    lists: tuple[AccessList, ...]
    state: FileState


class NoteMoving(NoteChanged):
    """The note changed while it was read; the next poll reads it again."""

    def __init__(self, lists: tuple[AccessList, ...] | None) -> None:
        """`lists`: what guards it now, if at least that stood still; None if that changed too."""
        super().__init__()
        self.lists = lists


class NoteTooLarge(NoteSkipped):
    """The note is larger than the share's max_bytes."""

    def __init__(self, reason: str, hint: bytes | None) -> None:
        """`hint` is that of the version, None if not to be trusted."""
        super().__init__(reason)
        self.hint = hint


class NoteGone(NoteUnreadable):
    """The note was listed but is gone; the next poll decides."""


class NoteReader:
    """Reads the notes of one share."""

    def __init__(
        self, files: Files, source: Source, clock: Clock, max_bytes: int, patience: Patience | None = None
    ) -> None:
        self._files = files
        self._source = source
        self._clock = clock
        self._max_bytes = max_bytes
        self._patience = patience or Patience("")

    def read(self, root: int, path: bytes) -> ReadNote:
        """Read the note at `path` below the open `root`.

        Raises NoteGone, NoteUnreadable (refused or failing), NoteTooLarge, NoteMoving (never the same twice).
        """
        try:
            return self._patience.call(lambda: self._read(root, path))
        except OSError as error:
            raise _trouble(error) from error

    def _read(self, root: int, path: bytes) -> ReadNote:
        with opened_note(self._files, root, path) as fd:
            return self._settled(fd, path)

    def is_old_file_of(self, root: int, path: bytes, note: Known) -> bool:
        """Tell whether the file at `path` was there already when `note` was last read, as its file.

        A file that was given the id of a deleted one is younger than that.
        """
        try:
            return self._patience.call(lambda: self._existed(root, path, note))
        except OSError:
            return False

    def _existed(self, root: int, path: bytes, note: Known) -> bool:
        with opened_note(self._files, root, path) as fd:
            born = self._files.born(fd)
            same = self._files.stat(fd).st_ino == inode_of(note.hint)
            return same and born is not None and born <= ctime_of(note.hint)

    def unchanged(self, root: int, folder: bytes, notes: Sequence[Known]) -> set[int]:
        """Hash the notes of one folder; return the ids of those that still hold the indexed text.

        Their hint is compared on the open file, so what it says of the lists holds for this very file.
        """
        try:
            return self._patience.call(lambda: self._same_in(root, folder, notes))
        except OSError:
            return set()

    def _same_in(self, root: int, folder: bytes, notes: Sequence[Known]) -> set[int]:
        with opened_folder(self._files, root, folder) as parent:
            return {note.note_id for note in notes if self._is_same(parent, note)}

    def _is_same(self, parent: int, note: Known) -> bool:
        files = self._files
        self._patience.tick()
        try:
            fd = files.open_known(parent, note.path.rpartition(b"/")[2])
        except OSError:
            return False
        try:
            raw = files.read(fd, size_of(note.hint))  # if it grew meanwhile, its hint changed too
            return hashlib.sha256(raw).digest() == note.content_hash and hint_of(files.stat(fd)) == note.hint
        except OSError:
            return False
        finally:
            os.close(fd)

    def lists(self, root: int, path: bytes) -> tuple[AccessList, ...]:
        """Read only the note's own lists. Raises NoteGone, NoteUnreadable."""
        try:
            return self._patience.call(lambda: self._lists(root, path))
        except OSError as error:
            raise _trouble(error) from error

    def _lists(self, root: int, path: bytes) -> tuple[AccessList, ...]:
        with opened_note(self._files, root, path) as fd:
            return self._source.note_lists(fd, path)

    def _settled(self, fd: int, path: bytes) -> ReadNote:
        lists: tuple[AccessList, ...] | None = None
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE_S)
            self._await_step(fd)
            before, found = self._once(fd, path)
            if found is not None:
                return found
            lists = before
        raise NoteMoving(lists)

    def _await_step(self, fd: int) -> None:
        # Where times step by milliseconds, a note saved a moment ago is worth waiting one step for: its
        # hint can then be trusted. Steps of seconds are not waited for.
        info = self._files.stat(fd)
        late_by = info.st_ctime_ns + self._clock.step_ns - time.time_ns()
        if self._clock.local and 0 < late_by <= self._clock.step_ns:
            time.sleep(late_by / 1e9)

    def _once(self, fd: int, path: bytes) -> tuple[tuple[AccessList, ...] | None, ReadNote | None]:
        now_ns = time.time_ns()
        before = self._files.stat(fd)
        lists = self._source.note_lists(fd, path)
        if before.st_size > self._max_bytes:
            hint = hint_of(before) if self._clock.trusts(before, now_ns) else None
            raise NoteTooLarge(f"larger than max_bytes ({before.st_size} > {self._max_bytes} bytes)", hint)
        raw = self._text(fd, path)
        agree = _keys(self._source.note_lists(fd, path)) == _keys(lists)
        same = hint_of(self._files.stat(fd)) == hint_of(before) and len(raw) == before.st_size
        if not (agree and same):
            return (lists if agree else None), None
        state = FileState(
            content_hash=hashlib.sha256(raw).digest(),
            size=len(raw),
            modified_at=modified_at(before.st_mtime_ns),
            hint=hint_of(before),
            hint_trusted=self._clock.trusts(before, now_ns),
        )
        return lists, ReadNote(path, raw, lists, state)

    def _text(self, fd: int, path: bytes) -> bytes:
        source, most = self._source, self._max_bytes + 1
        if isinstance(source, TextGiving) and source.gives_text:
            return source.text(path, most)
        return self._files.read(fd, most)


def modified_at(mtime_ns: int) -> datetime:
    """Return a modification time in UTC, held within the years that a database and a reader can show."""
    seconds = min(max(mtime_ns // 1_000_000_000, 0), 253402300799)
    return datetime.fromtimestamp(seconds, UTC)


def _keys(lists: tuple[AccessList, ...]) -> list[bytes]:
    return sorted(one.key for one in lists)


def _trouble(error: OSError) -> NoteUnreadable:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NoteGone()
    if error.errno in (errno.EACCES, errno.EPERM):
        return NoteUnreadable("this service's account may not read it", permanent=True)
    if error.errno == errno.ELOOP:
        return NoteUnreadable("a link stands in its way; links are not followed", permanent=True)
    return NoteUnreadable(
        f"reading failed: {error.strerror or errno.errorcode.get(error.errno or 0, 'unknown')}"
    )
