"""NT security descriptors as ordered lists, one per right (MS-DTYP 2.5.3.2)."""

from __future__ import annotations

from collections.abc import Iterator

from acl.compile import Entry, Meaning, compile_entries, quarantine
from acl.model import GENERIC_READ, READ_CONTROL, AccessList, Ace, AceKind, Descriptor
from acl.sid import CREATORS, EVERYONE, OWNER_RIGHTS

# An option of Meaning: a NULL DACL is read as Windows reads it.
NULL_DACL_EVERYONE = "null_dacl=everyone"
# A DACL has at most 64 KiB and an ACE at least 8 bytes of it (MS-DTYP 2.4.4, 2.4.5).
MOST_ACES = 8_192


def each_bit(bits: int) -> Iterator[int]:
    """The single bits of a mask, lowest first. Raises ValueError for none: nothing asked is not a yes."""
    if bits <= 0:
        raise ValueError("at least one right must be asked for")
    while bits:
        yield bits & -bits
        bits &= bits - 1


def why_quarantined(descriptor: Descriptor) -> str:
    """Why nobody may pass this descriptor, in words; "" if it can be decided.

    An allow entry without any right is how Samba writes a unix "no permission": walked literally it would let
    the next entry grant what the mode refuses, so such a list is not read as an NT list.
    """
    if descriptor.aces is None:
        return "it has no access list, which servers read differently"
    if len(descriptor.aces) > MOST_ACES:
        return f"it has more than {MOST_ACES} entries"
    active = [ace for ace in descriptor.aces if not ace.inherit_only]
    if any(ace.kind is AceKind.UNKNOWN for ace in descriptor.aces):
        return "it has an entry of a type that is not understood"
    if any(ace.kind is AceKind.ALLOW and ace.rights == 0 for ace in active):
        return "it is a unix mode written as an NT list, with entries that allow nothing"
    if descriptor.owner is None and any(ace.sid == OWNER_RIGHTS for ace in active):
        return "it speaks of its owner's rights but has no owner"
    return ""


def owner_reads_descriptor(descriptor: Descriptor) -> bool:
    """Whether the owner has READ_CONTROL without an entry: always, unless OWNER RIGHTS speaks instead."""
    aces = descriptor.aces or ()
    limited = any(ace.sid == OWNER_RIGHTS and not ace.inherit_only for ace in aces)
    return descriptor.owner is not None and not limited


def ordered_entries(descriptor: Descriptor, bit: int) -> tuple[Entry, ...]:
    """The descriptor's entries in stored order, as they count for one right."""
    entries = [_entry(ace, descriptor, bit) for ace in descriptor.aces or ()]
    if bit == READ_CONTROL and descriptor.owner is not None and owner_reads_descriptor(descriptor):
        entries.insert(0, Entry("allow", descriptor.owner, "the owner may always read the permissions"))
    return tuple(entries)


def compile_descriptor(
    descriptor: Descriptor, meaning: Meaning, bits: int = GENERIC_READ
) -> tuple[AccessList, ...]:
    """The lists that must all pass for ``bits``, never empty; rights encoded alike share one list."""
    descriptor = descriptor.qualified(meaning.server)
    if descriptor.aces is None and NULL_DACL_EVERYONE in meaning.options:
        everyone = Ace(AceKind.ALLOW, EVERYONE, GENERIC_READ)
        descriptor = Descriptor(descriptor.owner, (everyone,), descriptor.raw)
    reason = why_quarantined(descriptor)
    if reason:
        return (quarantine(meaning, reason, owner=descriptor.owner, raw=descriptor.raw),)
    return _compile_bits(descriptor, meaning, bits)


def _compile_bits(descriptor: Descriptor, meaning: Meaning, bits: int) -> tuple[AccessList, ...]:
    merged: dict[object, tuple[int, tuple[Entry, ...]]] = {}
    for bit in each_bit(bits):
        entries = ordered_entries(descriptor, bit)
        alike = compile_entries(entries, meaning, bit, owner=descriptor.owner, raw=b"").clauses
        together, first = merged.get(alike, (0, entries))
        merged[alike] = (together | bit, first)
    return tuple(
        compile_entries(entries, meaning, together, owner=descriptor.owner, raw=descriptor.raw)
        for together, entries in merged.values()
    )


def _entry(ace: Ace, descriptor: Descriptor, bit: int) -> Entry:
    sid = ace.sid
    words = f"{ace.kind.value} {ace.rights:#x}"
    if sid == OWNER_RIGHTS and descriptor.owner is not None:
        sid, words = descriptor.owner, f"{words}, as the owner"
    if ace.inherit_only:
        return Entry("ignored", sid, f"{words}: counts for children only")
    if not ace.rights & bit:
        return Entry("ignored", sid, f"{words}: does not speak of this right")
    if sid in CREATORS:
        return Entry("ignored", sid, f"{words}: stands for nobody here")
    if ace.kind is AceKind.CALLBACK_ALLOW:
        return Entry("ignored", sid, f"{words}: its condition cannot be checked")
    return Entry("allow" if ace.grants else "deny", sid, words)
