"""Is the share the share it was? Absence proves nothing where another folder, or none, is mounted."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from db.notes import Known
from indexer.files import Files, opened_folder, opened_note
from indexer.hint import inode_of, mtime_of, size_of
from indexer.patience import Patience
from notewarden import patient
from notewarden.errors import ShareUnavailable
from notewarden.settings_sections import ShareSettings

MARKER = b".notewarden-share"
_MARKER_BYTES = 1_000
_SAMPLE = 50
_AGREEING = 0.8


@contextmanager
def opened_share(files: Files, root: Path, patience: Patience | None = None) -> Iterator[int]:
    """Open the share's root. Raises ShareUnavailable."""
    patience = patience or Patience("")
    if not patient.answers(root, min(patient.FIRST_S, patience.limit_s)):
        raise ShareUnavailable(
            f"The file system of the share's folder {root} does not answer; check the mount and its server. "
            "Nothing was deleted."
        )
    try:
        fd = patience.call(lambda: files.open_root(root), discard=os.close)
    except OSError as error:
        raise ShareUnavailable(
            f"The share's folder {root} cannot be opened ({error.strerror}); check that it is mounted. "
            "Nothing was deleted."
        ) from error
    try:
        yield fd
    finally:
        os.close(fd)


def identity_of(files: Files, root: int) -> dict[str, Any]:
    """Return what the open root shows of itself: device, file id, and what its marker says (None: no marker).

    A marker is a small file `.notewarden-share` in the root; it is optional, and only an admin writes it.
    """
    info = files.stat(root)
    return {"device": info.st_dev, "inode": info.st_ino, "marker": _marker(files, root)}


def _marker(files: Files, root: int) -> str | None:
    try:
        if not stat.S_ISREG(files.look(root, MARKER).st_mode):
            return None
        fd = files.open_note(root, MARKER)
    except OSError as error:
        # One that we may not read tells nothing; whoever wrote it must not stop the polls with it.
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.EINVAL, errno.EACCES, errno.EPERM):
            return None
        raise
    try:
        text = files.read(fd, _MARKER_BYTES).decode("utf-8", "replace")
        return text.replace("\0", "\ufffd").strip()
    finally:
        os.close(fd)


class Identity:
    """The identity that a share showed when it was last good."""

    def __init__(self, files: Files, share: ShareSettings, recorded: dict[str, Any] | None) -> None:
        self._files = files
        self._share = share
        self._path = share.path
        self.recorded = recorded

    def check(self, root: int, known: Iterable[Known]) -> dict[str, Any]:
        """Return the open root's identity if it is the share it was. Raises ShareUnavailable otherwise.

        A marker that was there must be there again, unless it only came to a share that had been good without
        one, and all else is as it was. Where the folder is another one, as after a remount or a
        restore, it is the share all the same if its marker names the share or is the one that it always had
        (one that came later may have been copied from the very share that is mounted now), or if nearly every
        indexed note of a sample stands there as the same file or with the same bytes.
        """
        try:
            seen = identity_of(self._files, root)
        except OSError as error:
            raise ShareUnavailable(
                f"The share's folder {self._path} cannot be read ({error.strerror})."
            ) from error
        if self.recorded is None or self._agrees(seen, root, list(known)):
            seen["unmarked"] = self._was_unmarked(seen["marker"])
            self.recorded = seen
            return seen
        raise ShareUnavailable(
            f"The folder {self._path} is not the share that was indexed (another device or folder is mounted "
            f"there, or its {os.fsdecode(MARKER)} changed); mount the right one, or, if this is the "
            f"share, write its name {self._share.name!r} into a file {os.fsdecode(MARKER)} there. "
            "Nothing was deleted."
        )

    def _agrees(self, seen: dict[str, Any], root: int, known: Sequence[Known]) -> bool:
        assert self.recorded is not None
        before, marker = self.recorded.get("marker"), seen["marker"]
        strayed = bool(self.recorded.get("unmarked"))
        if marker is not None and (marker == self._share.name or (marker == before and not strayed)):
            return True
        same = all(seen[key] == self.recorded.get(key) for key in ("device", "inode"))
        if before is not None and marker != before:
            return strayed and same and (not known or self._same_notes(root, known))
        return same or self._same_notes(root, known)

    def _was_unmarked(self, marker: str | None) -> bool:
        """Whether the share was good without a marker before this one, which may have strayed in, came."""
        if self.recorded is None or marker in (None, self._share.name):
            return False
        return self.recorded.get("marker") is None or bool(self.recorded.get("unmarked"))

    def still(self, root: int) -> None:
        """Check again before deleting: the path must still lead to the open root. Raises ShareUnavailable."""
        try:
            fd = self._files.open_root(self._path)
        except OSError as error:
            raise ShareUnavailable(f"The share's folder {self._path} went away during the poll.") from error
        try:
            same = identity_of(self._files, fd) == identity_of(self._files, root)
        finally:
            os.close(fd)
        if not same:
            raise ShareUnavailable(f"Another folder was mounted at {self._path} during the poll.")

    def _same_notes(self, root: int, notes: Sequence[Known]) -> bool:
        step = max(1, len(notes) // _SAMPLE)
        sample = notes[::step][:_SAMPLE]
        same = sum(self._same_note(root, note) for note in sample)
        return bool(sample) and same >= _AGREEING * len(sample)

    def _same_note(self, root: int, note: Known) -> bool:
        """Whether it stands there as the same file, or one of the same size that holds the same bytes."""
        try:
            with opened_note(self._files, root, note.path) as fd:
                info, size = self._files.stat(fd), size_of(note.hint)
                if info.st_ino == inode_of(note.hint) and info.st_mtime_ns == mtime_of(note.hint):
                    return True
                if info.st_size != size:
                    return False
                return hashlib.sha256(self._files.read(fd, size + 1)).digest() == note.content_hash
        except OSError:
            return False


def is_gone(files: Files, root: int, path: bytes) -> bool:
    """Look for `path` once more; true only if the system says that no such regular file exists."""
    folder, _, name = path.rpartition(b"/")
    try:
        with opened_folder(files, root, folder) as parent:
            return not stat.S_ISREG(files.look(parent, name).st_mode)
    except OSError as error:
        return error.errno in (errno.ENOENT, errno.ENOTDIR)
