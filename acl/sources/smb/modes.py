"""The real modes of a tree that SMB shows only through its lists, read where the configuration says."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from acl.mounts import mount_of
from acl.posix import XATTR, PosixState
from acl.sources.posix import has_no_acls, why_not_enforced
from notewarden.errors import ConfigError, ShareUnavailable

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_NOTHING = frozenset({errno.ENODATA})


@dataclass(frozen=True)
class Mode:
    """One file's real mode, and what tells which file it is; `write_ns` is its modification time."""

    state: PosixState
    file_id: int
    size: int
    write_ns: int


class PosixTree:
    """The tree below `posix_path`. Nothing is followed, and nothing is opened for reading."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def check(self) -> None:
        """Raise ConfigError where this is no folder whose modes are those that the server enforces."""
        try:
            trouble = why_not_enforced(mount_of(self._root))
        except ShareUnavailable as error:
            raise ConfigError(f"posix_path {self._root} cannot be used: {error}") from error
        if trouble:
            raise ConfigError(f"posix_path {self._root} cannot be used: {trouble}; leave it out.")

    def mode(self, path: bytes) -> Mode:
        """The mode of a note or folder, "" for the root. Raises OSError if it or its ACL cannot be read."""
        fd = os.open(self._root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in path.split(b"/") if path else ():
                step = os.open(name, _LOOK, dir_fd=fd)
                os.close(fd)
                fd = step
            info = os.fstat(fd)
            if stat.S_ISLNK(info.st_mode):
                raise OSError(errno.ELOOP, "a link stands in its way")
            state = PosixState(info.st_uid, info.st_gid, info.st_mode, self._acl_bytes(fd))
            return Mode(state, info.st_ino, info.st_size, info.st_mtime_ns)
        finally:
            os.close(fd)

    def _acl_bytes(self, fd: int) -> bytes | None:
        """None where the file truly has plain mode bits. The link under /proc leads to this very file."""
        try:
            return os.getxattr(f"/proc/self/fd/{fd}", XATTR)
        except OSError as error:
            if error.errno in _NOTHING:
                return None
            if error.errno == errno.ENOTSUP and has_no_acls(mount_of(self._root)):
                return None
            raise
