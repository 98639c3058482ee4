"""Compile an ordered list of allow and deny entries into clauses, exactly.

Drop what cannot decide, keep each SID's first occurrence. What remains is runs D1 A1 D2 A2 ... Dk Ak, and

    readable  <=>  for some i:  Ai meets the allow set, and (D1 u ... u Di) does not meet the deny set.

One pair of sets with "deny wins" would be exact only for k = 1; a flat set of readers would over-grant on
every deny.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from acl.model import AccessList, Clause, Role, Status
from acl.sid import Sid, deny_names

# Part of every key: raise it whenever the same bytes would compile to something else.
COMPILER = 1

Verb = Literal["allow", "deny", "ignored"]


@dataclass(frozen=True)
class Entry:
    """One entry of a list, for one right: what it does to whom, and in plain words why it stands there."""

    verb: Verb
    sid: Sid
    words: str

    def __str__(self) -> str:
        return f"{self.verb} {self.sid} {self.words}"


@dataclass(frozen=True)
class Meaning:
    """Everything besides the bytes that gives an ACL its meaning: its server, model, role and options."""

    server: str
    model: str
    role: Role
    options: tuple[str, ...] = ()


def encode(entries: Iterable[Entry]) -> tuple[Clause, ...]:
    """The clauses of an ordered list; ignored entries and those after a SID's first one do not count."""
    clauses: list[Clause] = []
    denied: set[Sid] = set()
    allowed: set[Sid] = set()
    for entry in _first_of_each(entries):
        if entry.verb == "allow":
            allowed.add(entry.sid)
            continue
        if allowed:
            clauses.append(Clause(frozenset(allowed), frozenset(denied)))
            allowed = set()
        denied |= deny_names(entry.sid)
    if allowed:
        clauses.append(Clause(frozenset(allowed), frozenset(denied)))
    return tuple(clauses)


def compile_entries(
    entries: Sequence[Entry], meaning: Meaning, bits: int, *, owner: Sid | None = None, raw: bytes
) -> AccessList:
    """The access list of an ordered list of entries, all of which speak of the right ``bits``."""
    return _access_list(meaning, bits, owner=owner, raw=raw, entries=entries)


def quarantine(meaning: Meaning, reason: str, *, owner: Sid | None = None, raw: bytes = b"") -> AccessList:
    """The list of something that cannot be read or understood: nobody passes, and the reason says why."""
    return _access_list(meaning, 0, owner=owner, raw=raw, reason=reason)


def list_key(meaning: Meaning, bits: int, owner: Sid | None, raw: bytes, reason: str = "") -> bytes:
    """The 32-byte name of one meaning: the same bytes in another role or for another right are another."""
    parts = [str(COMPILER), meaning.server, meaning.model, meaning.role, f"{bits:#x}", owner or "", reason]
    parts += [f"{len(meaning.options)}", *meaning.options]
    digest = hashlib.sha256()
    for part in (*(text.encode("utf-8", "surrogateescape") for text in parts), raw):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def _access_list(
    meaning: Meaning,
    bits: int,
    *,
    owner: Sid | None,
    raw: bytes,
    entries: Sequence[Entry] = (),
    reason: str = "",
) -> AccessList:
    status: Status = "quarantined" if reason else "ok"
    return AccessList(
        key=list_key(meaning, bits, owner, raw, reason),
        server=meaning.server,
        model=meaning.model,
        role=meaning.role,
        status=status,
        reason=reason,
        owner=owner,
        clauses=encode(entries),
        raw=raw,
        entries=tuple(str(entry) for entry in entries),
    )


def _first_of_each(entries: Iterable[Entry]) -> Iterator[Entry]:
    """A second entry for one SID never decides: whoever it matches, the first has decided already."""
    seen: set[Sid] = set()
    for entry in entries:
        if entry.verb != "ignored" and entry.sid not in seen:
            seen.add(entry.sid)
            yield entry
