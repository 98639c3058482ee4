"""A file system of one process, over the kernel's protocol (linux/fuse.h, 7.26): `fuse_server.py FROM AT`.

It shows the folder FROM at AT, to be read only, and lets the kernel remember nothing: when the process is
stopped, whoever asks for anything waits, as on a mount whose server is gone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_IN, _OUT = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
_ATTRIBUTES = struct.Struct("<6Q10I")
_READ = struct.Struct("<QQI")
_ENTRY = struct.Struct("<QQII")
_MOST = 1 << 17
_UNHEARD = {2, 36, 42}  # FORGET, INTERRUPT and BATCH_FORGET get no answer
_DIRECT_IO = 1


class Server:
    """Answers the kernel; nodes are numbered as they are met, the root is 1."""

    def __init__(self, source: Path) -> None:
        self._paths = {1: source}
        self._numbers = {source: 1}
        self._answers: dict[int, Callable[[Path, bytes], bytes]] = {
            1: self._lookup,
            3: lambda path, body: bytes(16) + _attributes(path),  # GETATTR
            4: lambda path, body: bytes(16) + _attributes(path),  # SETATTR, which changes nothing
            14: lambda path, body: struct.pack("<QII", 0, _DIRECT_IO, 0),  # OPEN
            15: self._read,
            17: lambda path, body: bytes(80),  # STATFS
            18: lambda path, body: b"",  # RELEASE
            25: lambda path, body: b"",  # FLUSH
            26: lambda path, body: struct.pack("<IIIIHHII32x", 7, 26, _MOST, 0, 12, 9, 4096, 1),  # INIT
            27: lambda path, body: bytes(16),  # OPENDIR
            28: self._list,
            29: lambda path, body: b"",  # RELEASEDIR
        }

    def answer(self, request: bytes) -> bytes | None:
        """Return the reply to a request, None where there is none."""
        _, code, unique, node, *_ = _IN.unpack_from(request)
        if code in _UNHEARD:
            return None
        body, fault = b"", 0
        try:
            body = self._answers[code](self._paths.get(node, Path("/nonexistent")), request[_IN.size :])
        except KeyError:
            fault = errno.ENOSYS
        except OSError as error:
            fault = error.errno or errno.EIO
        return _OUT.pack(_OUT.size + len(body), -fault, unique) + body

    def _lookup(self, parent: Path, body: bytes) -> bytes:
        path = parent / os.fsdecode(body.rstrip(b"\0"))
        attributes = _attributes(path)
        number = self._numbers.setdefault(path, len(self._numbers) + 1)
        self._paths[number] = path
        return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + attributes

    def _read(self, path: Path, body: bytes) -> bytes:
        _, offset, size = _READ.unpack_from(body)
        return path.read_bytes()[offset : offset + size]

    def _list(self, path: Path, body: bytes) -> bytes:
        _, offset, size = _READ.unpack_from(body)
        found = b""
        for number, (inode, name) in enumerate(_entries(path), 1):
            entry = _ENTRY.pack(inode, number, len(name), 0) + name + bytes(-len(name) % 8)
            if number > offset and len(found) + len(entry) <= size:
                found += entry
        return found


def _entries(path: Path) -> Iterator[tuple[int, bytes]]:
    for entry in sorted(path.iterdir()):
        yield entry.lstat().st_ino, os.fsencode(entry.name)


def _attributes(path: Path) -> bytes:
    info = path.lstat()
    times = [info.st_atime_ns, info.st_mtime_ns, info.st_ctime_ns]
    seconds, rests = [t // 10**9 for t in times], [t % 10**9 for t in times]
    about = (info.st_mode, info.st_nlink, info.st_uid, info.st_gid, 0, 4096, 0)
    return _ATTRIBUTES.pack(info.st_ino, info.st_size, info.st_blocks, *seconds, *rests, *about)


def main(source: str, target: str) -> None:
    """Mount, say so, and answer until unmounted."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40755,user_id=0,group_id=0,allow_other,default_permissions"
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"notes", os.fsencode(target), b"fuse.notes", 0, options.encode()):
        raise SystemExit(os.strerror(ctypes.get_errno()))
    sys.stdout.write("mounted\n")
    sys.stdout.flush()
    server = Server(Path(source))
    while True:
        try:
            request = os.read(device, _MOST + 4096)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            if error.errno in (errno.ENOENT, errno.EINTR):  # the asker is gone
                continue
            raise
        reply = server.answer(request)
        if reply is not None:
            os.write(device, reply)


if __name__ == "__main__":
    main(*sys.argv[1:])
