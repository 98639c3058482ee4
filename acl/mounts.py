"""Which file system a folder lies on, as the kernel tells it (proc(5): /proc/self/mountinfo)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from notewarden.errors import ShareUnavailable

# File systems on which two names that differ only in case are one.
_IGNORE_CASE = frozenset(
    ("cifs", "smb3", "smbfs", "vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk", "hfsplus")
)
_OCTAL = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One mount: type (``ext4``), what is mounted (``nas:/export``), and all its options."""

    point: bytes
    kind: str
    source: str
    options: frozenset[str]

    @property
    def ignores_case(self) -> bool:
        """Whether names that differ only in case are the same file here, as far as the type tells."""
        return self.kind in _IGNORE_CASE


def mount_of(path: Path) -> Mount:
    """The mount a folder lies on, found by the mount id of its open descriptor.

    Neither names nor device numbers would do: mounts lie on top of each other, and btrfs has a device per
    subvolume. Raises ShareUnavailable if the folder cannot be opened or its mount is not listed.
    """
    try:
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ShareUnavailable(f"The folder {path} cannot be opened: {error.strerror}.") from error
    try:
        mount_id = _mount_id(Path(f"/proc/self/fdinfo/{fd}").read_text("ascii"))
    finally:
        os.close(fd)
    mounts = parse_mountinfo(Path("/proc/self/mountinfo").read_bytes())
    if mount_id not in mounts:
        raise ShareUnavailable(f"The kernel does not say which file system {path} is on.")
    return mounts[mount_id]


def mount_above(path: Path) -> Mount | None:
    """The mount that `path` seems to lie on by its name alone, found without touching it.

    For telling of a mount that does not answer; nothing may be decided by it.
    """
    name, found = os.path.normpath(os.fsencode(path.absolute())), None
    for mount in parse_mountinfo(Path("/proc/self/mountinfo").read_bytes()).values():
        inside = (name + b"/").startswith(mount.point.rstrip(b"/") + b"/")
        if inside and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def parse_mountinfo(text: bytes) -> dict[int, Mount]:
    """The mounts by their id. Lines that are not understood are left out."""
    mounts: dict[int, Mount] = {}
    for line in text.splitlines():
        head, dash, tail = line.partition(b" - ")
        before, after = head.split(b" "), tail.split(b" ")
        if not dash or len(before) < 6 or len(after) < 3:
            continue
        options = frozenset(os.fsdecode(before[5] + b"," + after[2]).split(","))
        source = os.fsdecode(after[1])  # still escaped: a part of SIDs, which hold no blanks
        mounts[int(before[0])] = Mount(_unescape(before[4]), os.fsdecode(after[0]), source, options)
    return mounts


def all_ids_mapped() -> bool:
    """Whether every uid and gid has its own number here.

    If not, all foreign ones show as 65534 (user_namespaces(7)).
    """
    return all(_is_full_map(Path(f"/proc/self/{name}").read_text("ascii")) for name in ("uid_map", "gid_map"))


def _is_full_map(text: str) -> bool:
    return [line.split() for line in text.splitlines()] == [["0", "0", "4294967295"]]


def _mount_id(fdinfo: str) -> int:
    found = re.search(r"^mnt_id:\s*(\d+)$", fdinfo, re.MULTILINE)
    return int(found.group(1)) if found else -1


def _unescape(name: bytes) -> bytes:
    return _OCTAL.sub(lambda match: bytes([int(match.group(1), 8)]), name)
