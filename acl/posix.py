"""POSIX modes and ACLs as ordered lists (POSIX 1003.1e draft 17, section 23.1.5: access check algorithm)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from acl.compile import Entry, Meaning, compile_entries, quarantine
from acl.model import AccessList
from acl.sid import EVERYONE, Sid, unix_group, unix_user

READ = 4
EXECUTE = 1

XATTR = "system.posix_acl_access"
_VERSION = 2
_HEADER = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_STATE = struct.Struct("<IIH?")
_LARGEST = 65_536  # the kernel's limit on one extended attribute
_NO_ID = 0xFFFFFFFF
_OWNER, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_RIGHTS = {READ: "read", EXECUTE: "pass through"}


@dataclass(frozen=True)
class PosixAcl:
    """A parsed ACL: permission bits 0-7 per entry; ``mask`` limits named users and groups, None: no mask."""

    owner: int
    users: tuple[tuple[int, int], ...]
    group: int
    groups: tuple[tuple[int, int], ...]
    mask: int | None
    other: int


@dataclass(frozen=True)
class PosixState:
    """What the kernel decides by: owner, owning group, mode, and the ACL attribute's bytes or None."""

    uid: int
    gid: int
    mode: int
    xattr: bytes | None

    def raw(self) -> bytes:
        """The state as bytes, for the list's key and for comparing two reads; only rwx bits of the mode."""
        head = _STATE.pack(self.uid, self.gid, self.mode & 0o777, self.xattr is not None)
        return head + (self.xattr or b"")


def from_mode(mode: int) -> PosixAcl:
    """The ACL that plain mode bits stand for."""
    return PosixAcl(mode >> 6 & 7, (), mode >> 3 & 7, (), None, mode & 7)


def parse_xattr(raw: bytes) -> PosixAcl:
    """Parse the bytes of system.posix_acl_access (linux/posix_acl_xattr.h), with the kernel's own checks.

    Raises ValueError for anything the kernel would not have stored.
    """
    entries = list(_entries(raw))
    order = [(tag, number) for tag, _, number in entries]
    if order != sorted(set(order)):
        raise ValueError("entries are out of order or doubled")
    single = {tag: bits for tag, bits, _ in entries if tag not in (_USER, _GROUP)}
    users = tuple((number, bits) for tag, bits, number in entries if tag == _USER)
    groups = tuple((number, bits) for tag, bits, number in entries if tag == _GROUP)
    if not {_OWNER, _GROUP_OBJ, _OTHER} <= set(single):
        raise ValueError("an entry for owner, group or other is missing")
    if (users or groups) and _MASK not in single:
        raise ValueError("named entries need a mask")
    return PosixAcl(single[_OWNER], users, single[_GROUP_OBJ], groups, single.get(_MASK), single[_OTHER])


def _entries(raw: bytes) -> Iterator[tuple[int, int, int]]:
    """Tag, permission bits and id of each entry; the id is 0 where an entry has none."""
    if not _HEADER.size <= len(raw) <= _LARGEST or (len(raw) - _HEADER.size) % _ENTRY.size:
        raise ValueError(f"{len(raw)} bytes are no whole ACL")
    if _HEADER.unpack_from(raw)[0] != _VERSION:
        raise ValueError("its version is not 2")
    for tag, bits, number in _ENTRY.iter_unpack(raw[_HEADER.size :]):
        named = tag in (_USER, _GROUP)
        if not named and tag not in (_OWNER, _GROUP_OBJ, _MASK, _OTHER):
            raise ValueError(f"an entry has the unknown tag {tag:#x}")
        if bits > 7 or (named and number == _NO_ID):
            raise ValueError("an entry has impossible permissions or no id")
        yield tag, bits, number if named else 0


def ordered_entries(acl: PosixAcl, state: PosixState, right: int, server: str) -> tuple[Entry, ...]:
    """The access check as one ordered list for one right: the first entry that matches decides.

    Owner, then each named user: their own entry decides. Then all groups that grant, then all that do not:
    being in one granting group is enough, being in any group keeps "other" away. Then other.
    The mask limits named users and groups also where it is ``---``. Linux skips all named entries then,
    so that those they name may pass as "other"; the standard closes there, and so do we.
    """
    mask = 7 if acl.mask is None else acl.mask
    named = f", within mask {_rwx(mask)}" if acl.mask is not None else ""
    groups = ((state.gid, acl.group, "owning group"), *((gid, bits, "group") for gid, bits in acl.groups))
    said = [
        (unix_group(gid, server), bits & mask & right, f"{words} {_rwx(bits)}{named}")
        for gid, bits, words in groups
    ]
    entries = [_entry(unix_user(state.uid, server), acl.owner & right, f"owner {_rwx(acl.owner)}")]
    entries += [
        _entry(unix_user(uid, server), bits & mask & right, f"user {_rwx(bits)}{named}")
        for uid, bits in acl.users
    ]
    entries += [_entry(*group) for group in said if group[1]]
    entries += [_entry(*group) for group in said if not group[1]]
    entries.append(_entry(EVERYONE, acl.other & right, f"other {_rwx(acl.other)}"))
    return tuple(entries)


@lru_cache(maxsize=8_192)
def compile_posix(state: PosixState, right: int, meaning: Meaning) -> AccessList:
    """The access list of one file or folder for one right (READ or EXECUTE); quarantined if unparsable."""
    owner = unix_user(state.uid, meaning.server)
    try:
        acl = from_mode(state.mode) if state.xattr is None else parse_xattr(state.xattr)
    except ValueError as error:
        return quarantine(meaning, f"its POSIX ACL is not understood: {error}", owner=owner, raw=state.raw())
    entries = ordered_entries(acl, state, right, meaning.server)
    return compile_entries(entries, meaning, right, owner=owner, raw=state.raw())


def _entry(sid: Sid, granted: int, words: str) -> Entry:
    return Entry("allow" if granted else "deny", sid, words)


def _rwx(bits: int) -> str:
    return "".join(letter if bits & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
