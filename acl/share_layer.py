"""The layer of the share itself: everybody, unless its readers are declared in the configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acl.compile import Entry, Meaning, compile_entries, quarantine
from acl.model import READ_DATA, AccessList, Role
from acl.sid import EVERYONE, HOST, Sid

MODEL = "declared"

Resolve = Callable[[str], Sid | None]


@dataclass(frozen=True)
class DeclaredAccess:
    """Readers and denied of one place by configured name; deny wins. ``place`` says where, for people."""

    readers: tuple[str, ...]
    denied: tuple[str, ...]
    place: str


def everyone_list() -> AccessList:
    """The list of a share that closes nobody out: the notes and folders decide."""
    entries = (Entry("allow", EVERYONE, "everyone: the share declares no readers"),)
    return compile_entries(entries, Meaning(HOST, MODEL, "share"), READ_DATA, raw=b"everyone")


def compile_declared(access: DeclaredAccess, role: Role, resolve: Resolve) -> AccessList:
    """The list of declared names. ``resolve`` gives None for a name that does not mean exactly one principal.

    Such a name is inert and shown among the readers; among the denied it closes the place, since nobody can
    tell whom it would have kept out.
    """
    meaning = Meaning(HOST, MODEL, role)
    lost = [name for name in access.denied if resolve(name) is None]
    if lost:
        names = ", ".join(repr(name) for name in lost)
        reason = f"{access.place} denies {names}, which the directory does not know as one user or group"
        return quarantine(meaning, reason, raw=_raw(access, ()))
    entries = [*_entries("deny", access.denied, resolve), *_entries("allow", access.readers, resolve)]
    return compile_entries(entries, meaning, READ_DATA, raw=_raw(access, entries))


def share_lists(
    readers: Sequence[str] | None, denied: Sequence[str] | None, resolve: Resolve
) -> tuple[AccessList, ...]:
    """The share's lists from ``share_readers`` and ``share_denied``; only the latter: everyone but those."""
    if readers is None and denied is None:
        return (everyone_list(),)
    named = ("everyone",) if readers is None else tuple(readers)
    return (compile_declared(DeclaredAccess(named, tuple(denied or ()), "the share"), "share", resolve),)


def _entries(verb: str, names: Sequence[str], resolve: Resolve) -> list[Entry]:
    return [_entry(verb, name, resolve(name)) for name in names]


def _entry(verb: str, name: str, sid: Sid | None) -> Entry:
    if sid is None:
        return Entry("ignored", Sid("-"), f"{name}: the directory does not know it as one user or group")
    return Entry("allow" if verb == "allow" else "deny", sid, name)


def _raw(access: DeclaredAccess, entries: Sequence[Entry]) -> bytes:
    """What was declared and what it means now, so that a list changes with either."""
    parts = [repr(access.readers), repr(access.denied), *(str(entry) for entry in entries)]
    return "\n".join(parts).encode("utf-8", "surrogateescape")
