"""The late check: before note text leaves, share, parents and note are read again from the share itself."""

from __future__ import annotations

import errno
import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from acl.directory import Directory
from acl.live import NoteNow
from acl.model import AccessList
from acl.sid import Sid
from acl.source import Prefetching, Source, TextGiving, make_source
from db.latecheck import Indexed
from db.notes import Known
from indexer.files import Files
from indexer.hint import hint_of
from indexer.identity import Identity
from indexer.patience import Patience
from indexer.patterns import Patterns
from notewarden import patient
from notewarden.errors import ConfigError, NoteError, ShareRefused, ShareUnavailable
from notewarden.settings import Settings
from notewarden.settings_sections import ShareSettings

# An answer, if not the one we hoped for: it closes, and nothing is fallen back on.
_ANSWERS = (ShareRefused, ConfigError, OSError)
_LONGEST_S = 10.0  # without a sign of life: whoever asked is waiting
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL})
# What a mount says whose server is not there. A root that refuses us is an answer; these are none.
_NO_ANSWER = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ESTALE,
        errno.ENODEV,
        errno.ENXIO,
        errno.ENOTCONN,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.ECONNABORTED,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.ETIMEDOUT,
    }
)


class LateCheck:
    """Looks at notes as they stand in the configured shares. Threads may share it."""

    def __init__(self, settings: Settings, directory: Directory, files: Files | None = None) -> None:
        files = files or Files()
        self._shares = {share.name: _ShareCheck(share, directory, files) for share in settings.shares}

    def __call__(self, notes: Sequence[Indexed]) -> dict[int, NoteNow]:
        """Return each note's state now. A share that gives no answer makes its notes "unreachable".

        Raises DirectoryUnreachable where nobody can tell what a declared name means.
        """
        by_share: dict[str, list[Indexed]] = defaultdict(list)
        for note in notes:
            by_share[note.share].append(note)
        found: dict[int, NoteNow] = {}
        for name, ones in by_share.items():
            share = self._shares.get(name)
            found |= _all(ones, NoteNow("error")) if share is None else share.look(ones)
        return found


def make(settings: Settings, directory: Directory) -> LateCheck:
    """Return the late check of this configuration: the entry point by which the other side finds it."""
    return LateCheck(settings, directory)


def look_at(
    share: ShareSettings, directory: Directory, notes: Sequence[Indexed], files: Files | None = None
) -> dict[int, NoteNow]:
    """Return the state of notes of one share now. Raises DirectoryUnreachable."""
    check = _ShareCheck(share, directory, files or Files())
    try:
        return check.look(notes) if notes else {}
    finally:
        check.close()


class _ShareCheck:
    """The notes of one share. Its source is made once and keeps what connections it has."""

    def __init__(self, share: ShareSettings, directory: Directory, files: Files) -> None:
        self._share = share
        self._directory = directory
        self._files = files
        self._patterns = Patterns(share.include, share.exclude)
        self._source: Source | None = None
        self._patience = Patience(share.name, limit_s=_LONGEST_S)
        self._lock = Lock()

    def look(self, notes: Sequence[Indexed]) -> dict[int, NoteNow]:
        """Return each note's state. Raises DirectoryUnreachable."""
        with self._lock:
            if not patient.answers(self._share.path, min(patient.FIRST_S, _LONGEST_S)):
                return _all(notes, NoteNow("unreachable"))
            try:
                return self._patience.call(lambda: self._look(notes))
            except TimeoutError:  # a mount that hangs
                self._source = None
                return _all(notes, NoteNow("unreachable"))
            except _ANSWERS:
                return _all(notes, NoteNow("error"))
            except ShareUnavailable:
                return _all(notes, NoteNow("unreachable"))

    def close(self) -> None:
        """Let the waiting thread end."""
        self._patience.close()

    def _look(self, notes: Sequence[Indexed]) -> dict[int, NoteNow]:
        with self._opened_root() as root:
            self._require_same_share(root, notes)
            source = self._checked_source()
            above = source.share_lists()
            found: dict[int, NoteNow] = {}
            for folder, ones in _by_folder(notes).items():
                found |= self._folder(root, folder, ones, above)
            if any(now.state == "gone" for now in found.values()):
                self._require_filled(root)
            return found

    def _folder(
        self, root: int, folder: bytes, notes: Sequence[Indexed], above: tuple[AccessList, ...]
    ) -> dict[int, NoteNow]:
        try:
            with self._guarded_folder(root, folder) as (fd, guards):
                self._prefetch(folder, notes)
                return {note.note_id: self._note(fd, note, above + guards) for note in notes}
        except (OSError, NoteError) as error:
            return _all(notes, _trouble(error))

    def _prefetch(self, folder: bytes, notes: Sequence[Indexed]) -> None:
        source = self._checked_source(again=False)
        if isinstance(source, Prefetching):
            source.prefetch(folder, [note.path.rpartition(b"/")[2] for note in notes])

    @contextmanager
    def _guarded_folder(self, root: int, folder: bytes) -> Iterator[tuple[int, tuple[AccessList, ...]]]:
        """Step down from the root; guards are read from the descriptor that the next step goes through."""
        source = self._checked_source(again=False)
        current, path = os.dup(root), b""
        try:
            guards = source.parent_lists(current, path)
            for name in folder.split(b"/") if folder else ():
                step = self._files.open_folder(current, name)
                os.close(current)
                current, path = step, path + b"/" + name if path else name
                guards += source.parent_lists(current, path)
            yield current, guards
        finally:
            os.close(current)

    def _note(self, folder: int, note: Indexed, above: tuple[AccessList, ...]) -> NoteNow:
        self._patience.tick()
        if not self._patterns.takes_path(os.fsdecode(note.path)):
            return NoteNow("gone")
        try:
            fd = self._files.open_note(folder, note.path.rpartition(b"/")[2])
        except OSError as error:
            return _trouble(error)
        try:
            lists = above + self._checked_source(again=False).note_lists(fd, note.path)
            state = "current" if self._has_indexed_text(fd, note) else "changed"
            return NoteNow(state, lists, self._unresolvable(lists))  # type: ignore[arg-type]
        except (OSError, NoteError) as error:
            return _trouble(error)
        finally:
            os.close(fd)

    def _has_indexed_text(self, fd: int, note: Indexed) -> bool:
        if note.hint_trusted and hint_of(self._files.stat(fd)) == note.hint:
            return True
        source, most = self._checked_source(again=False), self._share.max_bytes + 1
        if isinstance(source, TextGiving) and source.gives_text:
            raw = source.text(note.path, most)
        else:
            raw = self._files.read(fd, most)
        return hashlib.sha256(raw).digest() == note.content_hash

    def _unresolvable(self, lists: Iterable[AccessList]) -> frozenset[Sid]:
        denied = {sid for one in lists for clause in one.clauses for sid in clause.deny}
        named = (sid for sid in denied if not sid.startswith("?"))
        return frozenset(sid for sid in named if not self._directory.enumerable(sid))

    def _checked_source(self, *, again: bool = True) -> Source:
        if self._source is None:
            self._source = make_source(self._share, self._directory)
        if again:
            self._source.recheck()
        return self._source

    @contextmanager
    def _opened_root(self) -> Iterator[int]:
        try:
            fd = self._files.open_root(self._share.path)
        except OSError as error:
            if error.errno in _NO_ANSWER:
                raise _missing(self._share.path) from error
            raise
        try:
            yield fd
        finally:
            os.close(fd)

    def _require_same_share(self, root: int, notes: Sequence[Indexed]) -> None:
        """Raise ShareUnavailable if another folder stands where the share was.

        The same folder of the same device is the share whatever stands in it: nobody who may write there can
        make it look like another one.
        """
        recorded, info = notes[0].root, self._files.stat(root)
        if recorded and (recorded.get("device"), recorded.get("inode")) == (info.st_dev, info.st_ino):
            return
        known = [Known(note.path, note.note_id, 0, note.hint, note.content_hash, 0) for note in notes]
        Identity(self._files, self._share, notes[0].root).check(root, known)

    def _require_filled(self, root: int) -> None:
        if all(self._patterns.is_junk(name) for name, _ in self._files.scan(root)):
            raise _missing(self._share.path)


def _by_folder(notes: Iterable[Indexed]) -> dict[bytes, list[Indexed]]:
    folders: dict[bytes, list[Indexed]] = defaultdict(list)
    for note in notes:
        folders[note.path.rpartition(b"/")[0]].append(note)
    return folders


def _all(notes: Iterable[Indexed], now: NoteNow) -> dict[int, NoteNow]:
    return {note.note_id: now for note in notes}


def _trouble(error: OSError | NoteError) -> NoteNow:
    return NoteNow("gone" if isinstance(error, OSError) and error.errno in _ABSENT else "error")


def _missing(root: Path) -> ShareUnavailable:
    return ShareUnavailable(f"The share's folder {root} is missing or empty; check that it is mounted.")
