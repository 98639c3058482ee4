"""How the share's files are touched: the only place that opens, lists or reads them.

Nothing is followed out of a folder: every step goes through a directory descriptor with O_NOFOLLOW, and what
was opened must be a regular file (or folder) of the same device. Tests put faults and latency behind the
same interface.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acl.mounts import mount_of

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NOTE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_BLOCK = 1 << 20

# struct statx: the mask comes first, the birth time at byte 80.
_LIBC = ctypes.CDLL(None, use_errno=True)
_STATX, _STATX_BYTES = struct.Struct("=I76xqI"), 256
_AT_EMPTY_PATH, _STATX_BTIME = 0x1000, 0x800

Entry = tuple[str, os.stat_result]


class Files:
    """The real file system. Every method raises OSError as the system gives it.

    `may_hang`: whether reads may never end even where the file system is this machine's own.
    """

    may_hang: bool = False

    def open_root(self, root: Path) -> int:
        """Open the share's root; the root itself may be reached through links, nothing below it may."""
        return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def open_folder(self, parent: int, name: bytes) -> int:
        """Open a folder in an open folder. Raises ELOOP or ENOTDIR for a link, EXDEV for another device."""
        return _same_device(os.open(name, _FOLDER, dir_fd=parent), parent)

    def open_note(self, parent: int, name: bytes) -> int:
        """Open a regular file in an open folder. Raises ELOOP for a link, EINVAL for anything else."""
        fd = self.open_known(parent, name)
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a regular file")
        # A regular file has its folder's device unless another file is mounted over it.
        if info.st_dev != os.fstat(parent).st_dev:
            os.close(fd)
            raise OSError(errno.EXDEV, "another file system is mounted over it")
        return fd

    def open_known(self, parent: int, name: bytes) -> int:
        """Open as `open_note` does, for a caller who compares the file's id and size with those of a note."""
        return os.open(name, _NOTE, dir_fd=parent)

    def scan(self, folder: int) -> list[Entry]:
        """List an open folder whole: (name, stat of the entry itself), in no order; names by surrogateescape.

        A folder that cannot be listed to its end raises; an entry that is gone by then is left out.
        """
        with os.scandir(folder) as listed:
            entries = list(listed)
        try:
            return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        except FileNotFoundError:
            return list(_still_there(entries))

    def kind(self, root: Path) -> str:
        """Return the file system type that the share lies on (proc(5), mountinfo)."""
        return mount_of(root).kind

    def stat(self, fd: int) -> os.stat_result:
        """Return the state of an open file."""
        return os.fstat(fd)

    def born(self, fd: int) -> int | None:
        """Return when an open file was made, in ns; None where the file system does not say (statx(2))."""
        filled = ctypes.create_string_buffer(_STATX_BYTES)
        statx = getattr(_LIBC, "statx", None)
        if statx is None or statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, filled) != 0:
            return None
        mask, seconds, nanoseconds = _STATX.unpack_from(filled)
        return seconds * 1_000_000_000 + nanoseconds if mask & _STATX_BTIME else None

    def look(self, parent: int, name: bytes) -> os.stat_result:
        """Return the state of an entry without opening or following it."""
        return os.stat(name, dir_fd=parent, follow_symlinks=False)

    def read(self, fd: int, most: int) -> bytes:
        """Read an open file from its start, at most `most` bytes."""
        pieces, at = [], 0
        while at < most and (piece := os.pread(fd, min(most - at, _BLOCK), at)):
            pieces.append(piece)
            at += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@contextmanager
def opened_folder(files: Files, root: int, folder: bytes) -> Iterator[int]:
    """Open `folder` (raw, relative to the open `root`) step by step."""
    current = os.dup(root)
    try:
        for name in folder.split(b"/") if folder else ():
            step = files.open_folder(current, name)
            os.close(current)
            current = step
        yield current
    finally:
        os.close(current)


@contextmanager
def opened_note(files: Files, root: int, path: bytes) -> Iterator[int]:
    """Open the note at `path` (raw, relative to the open `root`) step by step."""
    folder, _, name = path.rpartition(b"/")
    with opened_folder(files, root, folder) as parent:
        fd = files.open_note(parent, name)
        try:
            yield fd
        finally:
            os.close(fd)


def _still_there(entries: list[os.DirEntry[str]]) -> Iterator[Entry]:
    for entry in entries:
        try:
            yield entry.name, entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue


def _same_device(fd: int, parent: int) -> int:
    if os.fstat(fd).st_dev == os.fstat(parent).st_dev:
        return fd
    os.close(fd)
    raise OSError(errno.EXDEV, "it lies on another file system")
