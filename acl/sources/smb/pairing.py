"""Is the file that SMB spoke of the one that is open here? Only then its descriptor belongs to this text."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from acl.sources.smb.client import REPARSE_POINT, Answer
from acl.sources.smb.modes import Mode

# Seconds between 1601 and 1970, in FILETIME's 100 ns.
_EPOCH = 116_444_736_000_000_000


@dataclass(frozen=True)
class Mismatch:
    """Why two views are not of one file; `moving`: it may only be changing right now."""

    reason: str
    moving: bool = False


def mismatch(answer: Answer, info: os.stat_result, *, same_ids: bool = True) -> Mismatch | None:
    """Why SMB's answer does not belong to the open file, None if it does.

    `same_ids` False: the mount shows file ids of its own, so only size and time are compared; the text must
    then come from SMB too.
    """
    if answer.attributes & REPARSE_POINT:
        return Mismatch("it is a link on the server; links are not followed")
    if same_ids and answer.file_id != info.st_ino:
        return Mismatch("SMB shows another file under this name (a twin in case or form, or it was replaced)")
    return None if stat.S_ISDIR(info.st_mode) else _changed(answer, info.st_size, info.st_mtime_ns)


def mode_mismatch(answer: Answer, mode: Mode) -> Mismatch | None:
    """Why the mode found at posix_path does not belong to the file that SMB spoke of, None if it does."""
    if answer.file_id != mode.file_id:
        return Mismatch("posix_path shows another file under this name")
    return None if stat.S_ISDIR(mode.state.mode) else _changed(answer, mode.size, mode.write_ns)


def filetime(mtime_ns: int) -> int:
    """A modification time as a FILETIME."""
    return mtime_ns // 100 + _EPOCH


def _changed(answer: Answer, size: int, mtime_ns: int) -> Mismatch | None:
    if answer.size != size:
        return Mismatch("its size differs between the mount and SMB", moving=True)
    if answer.write_time != filetime(mtime_ns):
        return Mismatch("its write time differs between the mount and SMB", moving=True)
    return None
