"""NFSv4 access lists as ordered lists (RFC 7530 6.2.1): the first entry that speaks of a right decides it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from acl.compile import Entry, Meaning, compile_entries, quarantine
from acl.model import AccessList
from acl.sid import EVERYONE, Sid, unix_group, unix_user

XATTR = "system.nfs4_acl"
READ_DATA, EXECUTE = 0x1, 0x20

_WORD = struct.Struct(">I")
_ACE = struct.Struct(">IIII")
_LARGEST = 65_536  # the kernel's limit on one extended attribute
_LONGEST_WHO = 1_024
_ALLOW, _DENY = 0, 1
_INHERIT_ONLY, _IS_GROUP = 0x08, 0x40
_NOBODY_ID = 65_534  # what an owner without a name here shows as

Who = Callable[[str, Literal["user", "group"]], Sid | None]


@dataclass(frozen=True)
class Nfs4Ace:
    """One entry as it stands; `who` is OWNER@, GROUP@, EVERYONE@, a name with its domain, or a number."""

    allow: bool
    flags: int
    mask: int
    who: str


@dataclass(frozen=True)
class Nfs4State:
    """What the server decides by: the owner and group as the mount shows them, and the attribute's bytes."""

    uid: int
    gid: int
    raw: bytes

    def key(self) -> bytes:
        """The state as bytes, for the list's key and for comparing two reads."""
        return struct.pack("<II", self.uid, self.gid) + self.raw


def parse_nfs4(raw: bytes) -> tuple[Nfs4Ace, ...]:
    """The entries of the attribute, in stored order (XDR, RFC 4506). Raises ValueError for anything else."""
    if not _WORD.size <= len(raw) <= _LARGEST:
        raise ValueError(f"{len(raw)} bytes are no whole ACL")
    (count,) = _WORD.unpack_from(raw)
    if count > len(raw) // _ACE.size:
        raise ValueError("it has fewer entries than it says")
    aces, at = [], _WORD.size
    for _ in range(count):
        ace, at = _ace(raw, at)
        aces.append(ace)
    if at != len(raw):
        raise ValueError("bytes follow its last entry")
    return tuple(aces)


def _ace(raw: bytes, at: int) -> tuple[Nfs4Ace, int]:
    if at + _ACE.size > len(raw):
        raise ValueError("an entry is cut off")
    kind, flags, mask, length = _ACE.unpack_from(raw, at)
    at += _ACE.size
    after = at + length + -length % 4
    if not 0 < length <= _LONGEST_WHO or after > len(raw):
        raise ValueError("an entry names nobody, or is cut off")
    if kind not in (_ALLOW, _DENY):
        raise ValueError(f"an entry has the type {kind}, which is not understood")
    who = raw[at : at + length].decode("utf-8")
    if "\0" in who:  # it is nobody's name, and no text of the database
        raise ValueError("an entry's name holds a NUL")
    return Nfs4Ace(kind == _ALLOW, flags, mask, who), after


def compile_nfs4(state: Nfs4State, right: int, meaning: Meaning, who: Who) -> AccessList:
    """The access list of one file for one right (READ_DATA or EXECUTE); quarantined if unparsable.

    `who` gives the SID of a name, None for one that does not mean exactly one principal: its allow is inert,
    and its deny matches everybody.
    """
    try:
        aces = parse_nfs4(state.raw)
    except ValueError as error:
        return quarantine(meaning, f"its NFSv4 ACL is not understood: {error}", raw=state.key())
    entries = [_entry(ace, state, right, meaning.server, who) for ace in aces]
    owner = _owner(state, meaning.server)
    return compile_entries(entries, meaning, right, owner=owner, raw=state.key() + _resolved(entries))


def _resolved(entries: list[Entry]) -> bytes:
    """What the names mean now, so that the list changes with it."""
    return "\n".join(map(str, entries)).encode("utf-8", "surrogateescape")


def _entry(ace: Nfs4Ace, state: Nfs4State, right: int, server: str, who: Who) -> Entry:
    words = f"{ace.who} {'allow' if ace.allow else 'deny'} {ace.mask:#x}"
    sid = _sid(ace, state, server, who)
    if ace.flags & _INHERIT_ONLY:
        return Entry("ignored", sid or Sid("-"), f"{words}: counts for children only")
    if not ace.mask & right:
        return Entry("ignored", sid or Sid("-"), f"{words}: does not speak of this right")
    if sid is None and ace.allow:
        return Entry("ignored", Sid("-"), f"{words}: nobody is known by this name")
    if sid is None:
        return Entry("deny", EVERYONE, f"{words}: nobody is known by this name, so it may be anybody")
    return Entry("allow" if ace.allow else "deny", sid, words)


def _sid(ace: Nfs4Ace, state: Nfs4State, server: str, who: Who) -> Sid | None:
    if ace.who == "EVERYONE@":
        return EVERYONE
    if ace.who == "OWNER@":
        return _owner(state, server)
    if ace.who == "GROUP@":
        return None if state.gid == _NOBODY_ID else unix_group(state.gid, server)
    is_group = bool(ace.flags & _IS_GROUP)
    if ace.who.isascii() and ace.who.isdecimal() and len(ace.who) <= 10:
        number = int(ace.who)
        return unix_group(number, server) if is_group else unix_user(number, server)
    if ace.who.endswith("@"):
        return None  # another special name
    return who(ace.who, "group" if is_group else "user")


def _owner(state: Nfs4State, server: str) -> Sid | None:
    return None if state.uid == _NOBODY_ID else unix_user(state.uid, server)
