"""Descriptors as bytes, and a second reading of them that shares no code with ours, to hold ours against.

The reference is the access check as MS-DTYP 2.5.3.2 tells it, walked over the bytes for one right, by one who
trusts the sender: it repairs nothing and checks only what it needs to go on.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

GENERIC = {0x80000000: 0x120089, 0x40000000: 0x120116, 0x20000000: 0x1200A0, 0x10000000: 0x1F01FF}
OWNER_RIGHTS = "S-1-3-4"
CREATORS = {"S-1-3-0", "S-1-3-1", "S-1-3-2", "S-1-3-3"}


def reference_allows(raw: bytes, sids: set[str], bit: int) -> bool:
    """Whether a token of exactly these SIDs gets the right by the literal check. Raises on cut-off bytes."""
    control, at_owner, at_dacl = struct.unpack_from("<H", raw, 2)[0], *struct.unpack_from("<I8xI", raw, 4)
    owner = _sid(raw, at_owner) if at_owner else None
    if not control & 4 or not at_dacl:
        return True  # Windows: no list at all grants everything
    for kind, flags, mask, sid in _aces(raw, at_dacl):
        effective = mask
        for generic, mapped in GENERIC.items():
            effective |= mapped if mask & generic else 0
        who = owner if sid == OWNER_RIGHTS else sid
        if flags & 8 or who not in sids or sid in CREATORS or not effective & bit:
            continue
        if kind == 0:
            return True
        if kind in (1, 10):
            return False
    return False


def _aces(raw: bytes, at: int) -> Iterator[tuple[int, int, int, str]]:
    count = struct.unpack_from("<H", raw, at + 4)[0]
    at += 8
    for _ in range(count):
        kind, flags, size = struct.unpack_from("<BBH", raw, at)
        if kind in (0, 1, 9, 10):
            yield kind, flags, struct.unpack_from("<I", raw, at + 4)[0], _sid(raw, at + 8)
        at += size
        if size == 0:
            raise ValueError("an entry without a size never ends")


def _sid(raw: bytes, at: int) -> str:
    count = raw[at + 1]
    authority = int.from_bytes(raw[at + 2 : at + 8], "big")
    parts = struct.unpack_from(f"<{count}I", raw, at + 8)
    return f"S-{raw[at]}-{authority}" + "".join(f"-{part}" for part in parts)


def mutated(raw: bytes, dice: random.Random) -> bytes:
    """The bytes after one to four accidents: a bit, a byte, a length, a cut, a repeat, a piece moved."""
    found = bytearray(raw)
    for _ in range(dice.randint(1, 4)):
        if not found:
            break
        at = dice.randrange(len(found))
        match dice.randrange(7):
            case 0:
                found[at] ^= 1 << dice.randrange(8)
            case 1:
                found[at] = dice.choice([0, 1, 2, 4, 8, 0x7F, 0x80, 0xFF, dice.randrange(256)])
            case 2:
                del found[at:]
            case 3:
                found[at:at] = found[at : at + dice.randrange(1, 40)]
            case 4:
                struct.pack_into(
                    "<H", found, min(at, max(0, len(found) - 2)), dice.choice([0, 1, 4, 8, 0xFFFF])
                ) if len(found) > 1 else None
            case 5:
                start = dice.choice([4, 8, 12, 16])
                if len(found) >= start + 4:
                    struct.pack_into(
                        "<I",
                        found,
                        start,
                        dice.choice([0, 4, 20, at, len(found) - 4 if len(found) > 4 else 0, 0xFFFFFFFC]),
                    )
            case _:
                piece = found[at : at + dice.randrange(1, 30)]
                where = dice.randrange(len(found))
                found[where : where + len(piece)] = piece
    return bytes(found)
