"""Security descriptors from the bytes that servers send (MS-DTYP 2.4.6, self-relative form).

Whatever is not exactly understood is an error or an entry of unknown kind, and closes the note: nothing is
guessed, skipped or repaired here.
"""

from __future__ import annotations

import struct

from acl.model import Ace, AceKind, Descriptor
from acl.sid import Sid

# A descriptor holds two SIDs and two lists of at most 64 KiB each; nothing a note carries comes near.
LONGEST = 132 * 1024

OWNER, GROUP, DACL = 0x1, 0x2, 0x4

_HEADER = struct.Struct("<BBHIIII")
_ACL = struct.Struct("<BBHHH")
_ACE = struct.Struct("<BBHI")
_ACE_HEAD = 4
_SELF_RELATIVE, _DACL_PRESENT = 0x8000, 0x0004
_INHERIT_ONLY = 0x08
_MOST_AUTHORITIES = 15
_ACL_REVISIONS = (2, 4)

# The types whose SID follows the mask (MS-DTYP 2.4.4.2, 2.4.4.4, 2.4.4.6, 2.4.4.8). Object entries have GUIDs
# before it and mean nothing on files; all other types are not understood.
_KINDS = {
    0x00: AceKind.ALLOW,
    0x01: AceKind.DENY,
    0x09: AceKind.CALLBACK_ALLOW,
    0x0A: AceKind.CALLBACK_DENY,
}
_CALLBACKS = (AceKind.CALLBACK_ALLOW, AceKind.CALLBACK_DENY)
_NOBODY = Sid("S-1-0-0")


class DescriptorError(ValueError):
    """Bytes that are no security descriptor we understand; the text says why, for people."""


def parse_descriptor(raw: bytes) -> Descriptor:
    """The descriptor in `raw`, entries in stored order, SIDs not yet qualified by their server.

    An absent DACL and a NULL one both come back as ``aces=None``; an entry of a type that is not understood
    as AceKind.UNKNOWN. Raises DescriptorError for anything that breaks the format or a bound of it.
    """
    if not _HEADER.size <= len(raw) <= LONGEST:
        raise DescriptorError(f"a descriptor cannot have {len(raw)} bytes")
    revision, _, control, at_owner, at_group, _, at_dacl = _HEADER.unpack_from(raw)
    if revision != 1 or not control & _SELF_RELATIVE:
        raise DescriptorError("the descriptor has an unknown revision or is not self-relative")
    aces = _dacl(raw, at_dacl) if control & _DACL_PRESENT and at_dacl else None
    return Descriptor(_sid_at(raw, at_owner), aces, raw, _sid_at(raw, at_group))


def _sid_at(raw: bytes, at: int) -> Sid | None:
    if not at:
        return None
    if at < _HEADER.size:
        raise DescriptorError("an owner or group lies within the descriptor's head")
    return _sid(raw, at, len(raw))[0]


def _sid(raw: bytes, at: int, end: int) -> tuple[Sid, int]:
    """The SID that starts at `at`, and where it ends (MS-DTYP 2.4.2.2)."""
    if at + 8 > end:
        raise DescriptorError("a SID is cut off")
    revision, count = raw[at], raw[at + 1]
    after = at + 8 + 4 * count
    if revision != 1 or not 1 <= count <= _MOST_AUTHORITIES or after > end:
        raise DescriptorError("a SID is cut off, or has an unknown form")
    authority = int.from_bytes(raw[at + 2 : at + 8], "big")
    parts = struct.unpack_from(f"<{count}I", raw, at + 8)
    return Sid(f"S-1-{authority}-" + "-".join(map(str, parts))), after


def _dacl(raw: bytes, at: int) -> tuple[Ace, ...]:
    if at < _HEADER.size or at + _ACL.size > len(raw):
        raise DescriptorError("the access list lies outside the descriptor")
    revision, _, size, count, _ = _ACL.unpack_from(raw, at)
    end = at + size
    if revision not in _ACL_REVISIONS or size < _ACL.size or end > len(raw):
        raise DescriptorError("the access list has an unknown revision or is cut off")
    aces, here = [], at + _ACL.size
    for _ in range(count):
        ace, here = _ace(raw, here, end)
        aces.append(ace)
    return tuple(aces)


def _ace(raw: bytes, at: int, end: int) -> tuple[Ace, int]:
    if at + _ACE_HEAD > end:
        raise DescriptorError("the access list has fewer entries than it says")
    kind, flags, size = struct.unpack_from("<BBH", raw, at)
    after = at + size
    if size < _ACE_HEAD or size % 4 or after > end:
        raise DescriptorError("an entry of the access list is cut off")
    meant = _KINDS.get(kind, AceKind.UNKNOWN)
    if meant is AceKind.UNKNOWN:
        return Ace(meant, _NOBODY, 0), after
    if size < _ACE.size:
        raise DescriptorError("an entry of the access list has no SID")
    mask: int = _ACE.unpack_from(raw, at)[3]
    sid, told = _sid(raw, at + _ACE.size, after)
    if told != after and meant not in _CALLBACKS:
        raise DescriptorError("an entry of the access list says more than its type may")
    return Ace(meant, sid, mask, bool(flags & _INHERIT_ONLY)), after
