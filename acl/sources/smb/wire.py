"""The few SMB 2 requests that descriptors need, as bytes, and their answers (MS-SMB2 2.2).

One question about a file is one packet: open it for READ_CONTROL alone, ask its file id, ask its descriptor,
close it. So it works where the account may not read the text, and costs one round trip.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

CREATE, CLOSE, READ, TREE_CONNECT, QUERY_INFO = 5, 6, 8, 3, 16
RESPONSE, RELATED, SIGNED = 0x1, 0x4, 0x8
HEADER_SIZE = 64
PENDING, END_OF_FILE = 0x00000103, 0xC0000011

READ_CONTROL = 0x20000
READ_TEXT = 0x120089
LARGEST_ANSWER = 65_536
# Every request that follows in one packet speaks of the file that the first one opened.
SAME_FILE = b"\xff" * 16

_OPEN_REPARSE_POINT = 0x00200000
_SHARE_ALL = 7
_IMPERSONATION = 2
_FILE_OPEN = 1
_FILE_INFO, _SECURITY_INFO = 1, 3
_INTERNAL_INFORMATION = 6
_OWNER_GROUP_DACL = 0x7
_MAXIMAL_ACCESS = struct.pack("<IHHHHI", 0, 16, 4, 0, 24, 0) + b"MxAc" + b"\0" * 4

_HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
_CREATE = struct.Struct("<HBBIQQIIIIIHHII")
_CREATED = struct.Struct("<HBBIQQQQQQII16sII")
_QUERY = struct.Struct("<HBBIHHIII16s")
_READ = struct.Struct("<HBBIQ16sIIIHH")


@dataclass(frozen=True)
class Message:
    """One answer: its NT status, the credits it grants, and its body."""

    command: int
    status: int
    credits: int
    message_id: int
    tree_id: int
    signature: bytes
    body: bytes


@dataclass(frozen=True)
class Opened:
    """What the answer to an open tells: times are FILETIMEs (100 ns since 1601), size is in bytes."""

    write_time: int
    size: int
    attributes: int
    maximal_access: int | None


def header(
    command: int, message_id: int, session: tuple[int, int], *, credits: int = 1, flags: int = 0
) -> bytes:
    """A request's head, unsigned; `session` is (session id, tree id)."""
    session_id, tree_id = session
    return _HEADER.pack(
        b"\xfeSMB",
        HEADER_SIZE,
        0,
        0,
        command,
        credits,
        flags,
        0,
        message_id,
        0,
        tree_id,
        session_id,
        b"\0" * 16,
    )


def create(path: str, access: int = READ_CONTROL, *, maximal: bool = False) -> bytes:
    """Open an existing file or folder; a reparse point is opened itself, not followed."""
    name = path.encode("utf-16-le")
    context = _MAXIMAL_ACCESS if maximal else b""
    padded = name + b"\0" * (-len(name) % 8)
    at_context = HEADER_SIZE + _CREATE.size + len(padded) if context else 0
    head = _CREATE.pack(
        57,
        0,
        0,
        _IMPERSONATION,
        0,
        0,
        access,
        0,
        _SHARE_ALL,
        _FILE_OPEN,
        _OPEN_REPARSE_POINT,
        HEADER_SIZE + _CREATE.size,
        len(name),
        at_context,
        len(context),
    )
    return head + ((padded + context) if context else (name or b"\0"))


def query_file_id() -> bytes:
    """Ask for the file id (MS-FSCC 2.4.22), which needs no right at all."""
    return _query(_FILE_INFO, _INTERNAL_INFORMATION, 8, 0)


def query_security() -> bytes:
    """Ask for owner, group and DACL."""
    return _query(_SECURITY_INFO, 0, LARGEST_ANSWER, _OWNER_GROUP_DACL)


def _query(kind: int, level: int, room: int, parts: int) -> bytes:
    return _QUERY.pack(41, kind, level, room, 0, 0, 0, parts, 0, SAME_FILE) + b"\0"


def read(offset: int, length: int) -> bytes:
    """Read from the file just opened."""
    return _READ.pack(49, 0, 0, length, offset, SAME_FILE, 0, 0, 0, 0, 0) + b"\0"


def close() -> bytes:
    """Close the file just opened."""
    return struct.pack("<HHI16s", 24, 0, 0, SAME_FILE)


def tree_connect(target: str) -> bytes:
    r"""Connect to a share, `\\server\share`."""
    name = target.encode("utf-16-le")
    return struct.pack("<HHHH", 9, 0, HEADER_SIZE + 8, len(name)) + name


def unpack(packet: bytes) -> list[tuple[Message, bytes]]:
    """The answers in one packet, each with its own raw bytes. Raises ValueError for what is no answer."""
    found, at = [], 0
    while True:
        if len(packet) - at < HEADER_SIZE:
            raise ValueError("the server's answer is cut off")
        parts = _HEADER.unpack_from(packet, at)
        magic, size, _, status, command, credits, flags, after, message_id, _, tree_id, _, signature = parts
        if magic != b"\xfeSMB" or size != HEADER_SIZE or not flags & RESPONSE:
            raise ValueError("the server's answer is not of SMB 2")
        if after and not HEADER_SIZE <= after <= len(packet) - at:
            raise ValueError("the server's answer is cut off")
        raw = packet[at : at + after] if after else packet[at:]
        body = raw[HEADER_SIZE:]
        found.append((Message(command, status, credits, message_id, tree_id, signature, body), raw))
        if not after:
            return found
        at += after


def opened(body: bytes) -> Opened:
    """What an open tells of the file. Raises ValueError if it is cut off."""
    if len(body) < _CREATED.size:
        raise ValueError("the server's answer to an open is cut off")
    parts = _CREATED.unpack_from(body)
    write_time, size, attributes, at, length = parts[6], parts[9], parts[10], parts[13], parts[14]
    contexts = body[at - HEADER_SIZE : at - HEADER_SIZE + length] if at and length else b""
    return Opened(write_time, size, attributes, _maximal_access(contexts))


def _maximal_access(contexts: bytes) -> int | None:
    while len(contexts) >= 16:
        after, at_name, name_length, _, at, length = struct.unpack_from("<IHHHHI", contexts)
        if contexts[at_name : at_name + name_length] == b"MxAc" and length >= 8:
            status, access = struct.unpack_from("<II", contexts.ljust(at + 8, b"\0"), at)
            return int(access) if status == 0 else None
        if not after:
            break
        contexts = contexts[after:]
    return None


def payload(body: bytes) -> bytes:
    """The bytes that the answer to a query carries. Raises ValueError if they are cut off."""
    if len(body) < 8:
        raise ValueError("the server's answer to a query is cut off")
    _, at, length = struct.unpack_from("<HHI", body)
    found = body[at - HEADER_SIZE : at - HEADER_SIZE + length] if length else b""
    if len(found) != length:
        raise ValueError("the server's answer to a query is cut off")
    return found


def text(body: bytes) -> bytes:
    """The bytes that the answer to a read carries. Raises ValueError if they are cut off."""
    if len(body) < 16:
        raise ValueError("the server's answer to a read is cut off")
    at, length = body[2], struct.unpack_from("<I", body, 4)[0]
    found = body[at - HEADER_SIZE : at - HEADER_SIZE + length]
    if len(found) != length:
        raise ValueError("the server's answer to a read is cut off")
    return found
