"""people.toml parsed and checked whole: users, groups, who is in what, and every SID of each.

    [users.alice]
    groups = ["it"]

    [groups.it]
    groups = ["helpdesk"]     # members of it are members of helpdesk too
    sid = "S-1-5-21-1-2-3-1104"
    sids = ["S-1-22-2-998"]   # further SIDs of the same group; unix ids are those of this host

A group that others name needs no table of its own. An entry without ``sid`` gets one of our own, derived from
its kind and name: S-1-1852798053-K-a-b-c-d, where 1852798053 is the identifier authority 0x6E6F7465 (ASCII
"note", which no system issues), K is 1 for users and 2 for groups, and a..d are the first four big-endian
32-bit words of sha256(kind NUL name). It stays the same for as long as the name does.
"""

from __future__ import annotations

import hashlib
import struct
import tomllib
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from acl.sid import HOST, Sid, is_sid, is_well_known, qualify

Kind = Literal["user", "group"]

_AUTHORITY = 0x6E6F7465
_KINDS: dict[Kind, int] = {"user": 1, "group": 2}
_SECTIONS: dict[str, Kind] = {"users": "user", "groups": "group"}
_KEYS = {"groups", "sid", "sids"}


@dataclass(frozen=True)
class Entry:
    """One user or group: its name, its SIDs (the first one is its own), and the groups it is directly in."""

    kind: Kind
    name: str
    sids: tuple[Sid, ...]
    groups: tuple[str, ...]

    @property
    def sid(self) -> Sid:
        """The SID the entry is known by."""
        return self.sids[0]


@dataclass(frozen=True)
class People:
    """All entries, by name and by SID. Immutable: a changed file makes a new one."""

    users: Mapping[str, Entry]
    groups: Mapping[str, Entry]
    by_sid: Mapping[Sid, Entry] = field(repr=False)

    def through(self, user: Entry) -> dict[Sid, tuple[Sid, ...]]:
        """Every SID of a user and, transitively, of all groups, each with the groups passed on the way."""
        found: dict[Sid, tuple[Sid, ...]] = dict.fromkeys(user.sids, ())
        seen: set[str] = set()
        waiting: deque[tuple[str, tuple[Sid, ...]]] = deque((name, ()) for name in user.groups)
        while waiting:
            name, way = waiting.popleft()
            if name in seen:
                continue
            seen.add(name)
            group = self.groups[name]
            found.update(dict.fromkeys(group.sids, way))
            waiting.extend((outer, (*way, group.sid)) for outer in group.groups)
        return found


def derived_sid(kind: Kind, name: str) -> Sid:
    """The stable SID of an entry that has none of its own (form: see the module)."""
    words = struct.unpack(">4I", hashlib.sha256(f"{kind}\0{name}".encode()).digest()[:16])
    return Sid(f"S-1-{_AUTHORITY}-{_KINDS[kind]}-" + "-".join(str(word) for word in words))


def parse_people(text: str) -> People:
    """Parse the whole file. Raises ValueError naming table and key for anything that is not understood."""
    tables = tomllib.loads(text)
    for section in tables:
        if section not in _SECTIONS:
            raise ValueError(f"the table [{section}] is unknown; only [users.NAME] and [groups.NAME] are")
    entries = list(_entries(tables))
    users = {entry.name: entry for entry in entries if entry.kind == "user"}
    groups = {entry.name: entry for entry in entries if entry.kind == "group"}
    named = {name for entry in entries for name in entry.groups}
    groups |= {name: _entry("group", name, {}) for name in sorted(named - set(groups))}
    return People(users, groups, _by_sid([*users.values(), *groups.values()]))


def _entries(tables: Mapping[str, object]) -> Iterator[Entry]:
    for section, kind in _SECTIONS.items():
        table = tables.get(section, {})
        if not isinstance(table, dict):
            raise ValueError(f"[{section}] is not a table of names")
        for name, values in table.items():
            yield _entry(kind, name, values)


def _entry(kind: Kind, name: str, values: object) -> Entry:
    place = f"[{kind}s.{name}]"
    if not isinstance(values, dict):
        raise ValueError(f"{place} is not a table")
    unknown = sorted(set(values) - _KEYS)
    if unknown:
        raise ValueError(f"{place} has the unknown key {unknown[0]!r}")
    if not name or name == "everyone" or is_sid(name):
        raise ValueError(f"{place}: no user or group can have the name {name!r}")
    own = values.get("sid")
    if own is not None and not isinstance(own, str):
        raise ValueError(f"{place} sid is not a text")
    first = derived_sid(kind, name) if own is None else _sid(own, place)
    further = (_sid(text, place) for text in _texts(values, "sids", place))
    return Entry(kind, name, tuple(dict.fromkeys((first, *further))), tuple(_texts(values, "groups", place)))


def _texts(values: Mapping[str, object], key: str, place: str) -> list[str]:
    found = values.get(key, [])
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise ValueError(f"{place} {key} is not a list of texts")
    return list(found)


def _sid(text: str, place: str) -> Sid:
    """A SID that may name one entry: not one that stands for everybody, a kind of log-in, or nobody."""
    if not is_sid(text):
        raise ValueError(f"{place} has {text!r}, which is no SID")
    sid = qualify(text, HOST)
    if is_well_known(sid):
        raise ValueError(f"{place} has {text!r}, which cannot be given to one user or group")
    return sid


def _by_sid(entries: list[Entry]) -> dict[Sid, Entry]:
    owners: dict[Sid, Entry] = {}
    for entry in entries:
        for sid in entry.sids:
            other = owners.setdefault(sid, entry)
            if other is not entry:
                raise ValueError(
                    f"{sid} is given to both [{other.kind}s.{other.name}] and [{entry.kind}s.{entry.name}]"
                )
    return owners
