"""Which files may configure us: only those that nobody but root and their owner can change."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from notewarden import patient
from notewarden.errors import ConfigError

_MOST_LINKS = 40  # as the kernel's own limit on following links
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def require_trusted(path: Path, inside: Sequence[Path] = ()) -> None:
    """Refuse a configuration, people or secret file that somebody else could have written.

    Its owner must be root or the running account; the file, and each folder above it that has no sticky bit,
    may be writable by nobody but root and that owner; and it may not lie inside one of the share roots
    `inside`, where everybody who may write notes could plant it. Links are followed step by step, each step
    held to the same rule. Raises ConfigError naming the file, the fault and the remedy.
    """
    info = _file_info(path)
    if info.st_uid not in (0, os.geteuid()):
        raise ConfigError(
            f"{path} belongs to uid {info.st_uid}; it must belong to root or to the account that runs."
        )
    for step, found in _steps(path):
        _require_unwritable(path, step, found, {0, info.st_uid})
    for root in inside:
        if _lies_inside(path, root):
            raise ConfigError(
                f"{path} lies inside the share {root}; move it to a folder outside every share."
            )


def read_trusted(path: Path, inside: Sequence[Path] = ()) -> bytes:
    """Return the bytes of a file that passes `require_trusted`; raises ConfigError for one that does not."""
    require_trusted(path, inside)
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error


def _file_info(path: Path) -> os.stat_result:
    try:
        info = path.stat()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(info.st_mode):
        raise ConfigError(f"{path} is not a regular file.")
    return info


def _steps(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every folder, link and file that the kernel passes on its way to `path`, from the root down."""
    here = Path("/")
    waiting = list(reversed(path.absolute().parts[1:]))
    links = 0
    yield here, here.lstat()
    while waiting:
        name = waiting.pop()
        here = here.parent if name == ".." else here / name
        info = here.lstat()
        yield here, info
        if stat.S_ISLNK(info.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise ConfigError(f"{path} passes too many symbolic links.")
            target = here.readlink()
            waiting.extend(reversed([part for part in target.parts if part != "/"]))
            here = Path("/") if target.is_absolute() else here.parent


def _require_unwritable(path: Path, step: Path, info: os.stat_result, owners: set[int]) -> None:
    if info.st_uid not in owners:
        raise ConfigError(
            f"{path} cannot be trusted: {step} belongs to uid {info.st_uid}, who could replace it; "
            "move it to a folder of its owner or of root."
        )
    if stat.S_ISLNK(info.st_mode):
        return  # a link's own mode means nothing: its folder decides who may replace it
    sticky_folder = stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX
    if info.st_mode & _OTHERS_WRITE and not sticky_folder:
        raise ConfigError(f"{path} cannot be trusted: others may write to {step}; run `chmod go-w {step}`.")


def _lies_inside(path: Path, root: Path) -> bool:
    """Compare by device and inode, so that links, bind mounts and spellings make no difference.

    A root that does not answer holds no file that could just be looked at: its name is enough then.
    """
    try:
        wanted = patient.call(root, root.stat)
    except OSError:
        names = (path.resolve(), patient.plain_path(path))
        return any(name.is_relative_to(patient.plain_path(root)) for name in names)
    return any(os.path.samestat(folder.stat(), wanted) for folder in path.resolve().parents)
