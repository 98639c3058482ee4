"""The hint: what a listing shows of a file. It may only say "unchanged", and only when it is old enough."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

# File id, size, modification and change time. The device is the share's identity's matter.
FORM = struct.Struct("<QQqq")

# Local file systems whose times step with the kernel's clock (a few milliseconds) instead of seconds.
_FINE = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay"})
_FINE_STEP_NS = 50_000_000
_COARSE_STEP_NS = 2_000_000_000


def hint_of(info: os.stat_result) -> bytes:
    """Return the hint of a file's state: equal bytes mean that size, times and file id are equal."""
    return FORM.pack(info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def inode_of(hint: bytes) -> int:
    """Return the file id inside a hint."""
    return int(FORM.unpack(hint)[0])


def size_of(hint: bytes) -> int:
    """Return the size inside a hint, in bytes."""
    return int(FORM.unpack(hint)[1])


def mtime_of(hint: bytes) -> int:
    """Return the modification time inside a hint, in ns."""
    return int(FORM.unpack(hint)[2])


def ctime_of(hint: bytes) -> int:
    """Return the change time inside a hint, in ns."""
    return int(FORM.unpack(hint)[3])


@dataclass(frozen=True)
class Clock:
    """By how much a file system's times step (ns), and whether its ctime is this kernel's own."""

    step_ns: int
    local: bool

    @staticmethod
    def of(file_system: str) -> Clock:
        """Return the clock of a file system type (proc(5), mountinfo); an unknown one steps by 2 s."""
        fine = file_system in _FINE
        return Clock(_FINE_STEP_NS if fine else _COARSE_STEP_NS, fine)

    def trusts(self, info: os.stat_result, now_ns: int) -> bool:
        """Tell whether a change after `now_ns`, when the file was about to be read, would move its times.

        Where ctime is this kernel's own it moves with every change, so a modification time that somebody
        set to the future does not matter.
        """
        newest = info.st_ctime_ns if self.local else max(info.st_ctime_ns, info.st_mtime_ns)
        return newest <= now_ns - self.step_ns
