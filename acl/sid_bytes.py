"""SIDs as bytes (MS-DTYP 2.4.2.2): revision, count, a 48-bit authority, 32-bit sub-authorities."""

from __future__ import annotations

import struct

from acl.sid import Sid, is_sid

_HEAD = 8
_MOST = 15  # sub-authorities


def unpack_sid(raw: bytes) -> Sid | None:
    """The SID that exactly these bytes are, None if they are none."""
    if len(raw) < _HEAD + 4 or raw[0] != 1 or not 1 <= raw[1] <= _MOST or len(raw) != _HEAD + 4 * raw[1]:
        return None
    authority = int.from_bytes(raw[2:8], "big")
    parts = struct.unpack(f"<{raw[1]}I", raw[8:])
    return Sid("-".join(["S-1", str(authority), *map(str, parts)]))


def pack_sid(sid: Sid) -> bytes | None:
    """The bytes of a global SID, None for one that is qualified by a server or has no such form."""
    if not is_sid(sid) or "@" in sid:
        return None
    authority, *parts = map(int, sid.split("-")[2:])
    if authority >= 1 << 48 or any(part >= 1 << 32 for part in parts):
        return None
    head = bytes([1, len(parts)]) + authority.to_bytes(6, "big")
    return head + struct.pack(f"<{len(parts)}I", *parts)
