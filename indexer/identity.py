"""Is the share the share it was? Absence proves nothing where another folder, or none, is mounted."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from db.notes import Known
from indexer.files import Files, opened_folder
from indexer.hint import inode_of
from notewarden.errors import ShareUnavailable

_SAMPLE = 50
_AGREEING = 0.8


@contextmanager
def opened_share(files: Files, root: Path) -> Iterator[int]:
    """Open the share's root. Raises ShareUnavailable."""
    try:
        fd = files.open_root(root)
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
    """Return what the open root shows of itself: device and file id."""
    info = files.stat(root)
    return {"device": info.st_dev, "inode": info.st_ino}


class Identity:
    """The identity that a share showed when it was last good."""

    def __init__(self, files: Files, path: Path, recorded: dict[str, Any] | None) -> None:
        self._files = files
        self._path = path
        self.recorded = recorded

    def check(self, root: int, known: Iterable[Known]) -> dict[str, Any]:
        """Return the open root's identity if it is the share it was. Raises ShareUnavailable otherwise.

        A remount can change the device number, so another one is accepted where the indexed notes stand as
        the same files.
        """
        seen = identity_of(self._files, root)
        if self.recorded is None or seen == self.recorded or self._same_notes(root, known):
            self.recorded = seen
            return seen
        raise ShareUnavailable(
            f"The folder {self._path} is not the share that was indexed (another device or folder is mounted "
            "there); mount the right one. Nothing was deleted."
        )

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

    def _same_notes(self, root: int, known: Iterable[Known]) -> bool:
        sample = [note for note, _ in zip(known, range(_SAMPLE), strict=False)]
        same = sum(self._same_file(root, note) for note in sample)
        return bool(sample) and same >= _AGREEING * len(sample)

    def _same_file(self, root: int, note: Known) -> bool:
        folder, _, name = note.path.rpartition(b"/")
        try:
            with opened_folder(self._files, root, folder) as parent:
                return self._files.look(parent, name).st_ino == inode_of(note.hint)
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
