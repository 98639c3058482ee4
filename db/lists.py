"""Access lists in the database: stored once per meaning, never edited."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from acl.directory import Directory, listed_by
from acl.model import AccessList, Clause, Role
from acl.sid import Sid
from db.queries import load

_SQL = load("lists")

_CLOSED = AccessList(
    key=hashlib.sha256(b"notewarden: closed").digest(),
    server="",
    model="closed",
    role="note",
    status="quarantined",
    reason="the note or its permissions could not be read",
    owner=None,
    clauses=(),
    raw=b"",
    entries=(),
)


@dataclass(frozen=True)
class Principal:
    """A SID that stands in some clause; `unresolvable`: its denies match everybody.

    `listed`: its members are known only while the directory lists it.
    """

    sid: Sid
    name: str | None
    unresolvable: bool
    listed: bool


class ListStore:
    """Gives each access list its id, storing it when it is new.

    The SIDs of a new list are described at once: a deny whose members nobody can enumerate must match
    everybody from the moment the list counts.
    """

    def __init__(self, conn: Connection[Any], directory: Directory) -> None:
        self._conn = conn
        self._directory = directory
        self._ids: dict[bytes, int] = {}

    def ids(self, lists: Iterable[AccessList]) -> tuple[int, ...]:
        """Return the ids of `lists`, sorted and without repeats."""
        wanted = list(lists)
        unknown = [one for one in wanted if one.key not in self._ids]
        if unknown:
            self._recall(unknown)
            for one in unknown:
                if one.key not in self._ids:
                    self._ids[one.key] = self._add(one)
        return tuple(sorted({self._ids[one.key] for one in wanted}))

    def closed(self) -> int:
        """Return the id of the list that nobody passes."""
        return self.ids([_CLOSED])[0]

    def roles(self, acl_ids: Iterable[int]) -> dict[int, Role]:
        """Return the role of each stored list."""
        rows = self._conn.execute(_SQL["roles"], {"acl_ids": list(acl_ids)})
        return dict(rows.fetchall())

    def drop_unused(self) -> None:
        """Delete the lists that nothing names any more."""
        self._conn.execute(_SQL["drop_unused"], {"closed": self.closed()})
        self._ids = {_CLOSED.key: self.closed()}

    def _recall(self, lists: Sequence[AccessList]) -> None:
        rows = self._conn.execute(_SQL["known"], {"keys": [one.key for one in lists]})
        self._ids.update({bytes(key): acl_id for key, acl_id in rows})

    def _add(self, one: AccessList) -> int:
        with self._conn.transaction():
            row = self._conn.execute(_SQL["add"], _columns(one)).fetchone()
            if row is None:  # another connection was quicker; lists are equal by key
                self._recall([one])
                return self._ids[one.key]
            acl_id: int = row[0]
            for number, clause in enumerate(one.clauses):
                self._add_clause(acl_id, number, clause)
            self._describe_all({sid for clause in one.clauses for sid in clause.allow | clause.deny})
        return acl_id

    def _add_clause(self, acl_id: int, number: int, clause: Clause) -> None:
        allow, deny = sorted(clause.allow), sorted(clause.deny)
        self._conn.execute(_SQL["add_clause"], {"acl_id": acl_id, "n": number, "allow": allow, "deny": deny})

    def _describe_all(self, sids: Iterable[Sid]) -> None:
        listed = listed_by(self._directory)
        self._describe([self._principal(sid, listed) for sid in sorted(sids) if not sid.startswith("?")])

    def refresh_principals(self) -> None:
        """Ask the directory again about every SID in use: groups come, go and become unreadable."""
        known = principals(self._conn)
        listed = listed_by(self._directory)
        told = [self._principal(one.sid, listed) for one in known]
        self._describe([one for one, old in zip(told, known, strict=True) if one != old])

    def _principal(self, sid: Sid, listed: frozenset[Sid] | None) -> Principal:
        directory = self._directory
        known = listed is not None and sid in listed
        return Principal(sid, directory.name_of(sid), not directory.enumerable(sid), known)

    def _describe(self, ones: Sequence[Principal]) -> None:
        if ones:
            self._conn.execute(
                _SQL["add_principals"],
                {
                    "sids": [one.sid for one in ones],
                    "names": [one.name for one in ones],
                    "unresolvable": [one.unresolvable for one in ones],
                    "listed": [one.listed for one in ones],
                },
            )


def _columns(one: AccessList) -> dict[str, Any]:
    return {
        "key": one.key,
        "server": one.server,
        "model": one.model,
        "role": one.role,
        "status": one.status,
        "reason": one.reason,
        "owner": one.owner,
        "raw": one.raw,
        "entries": list(one.entries),
    }


def stored(conn: Connection[Any], acl_ids: Sequence[int]) -> dict[int, AccessList]:
    """Return the stored lists by id."""
    found = {}
    for row in conn.execute(_SQL["lists"], {"acl_ids": list(acl_ids)}):
        acl_id, key, server, model, role, status, reason, owner, raw, entries, clauses = row
        found[acl_id] = AccessList(
            key=bytes(key),
            server=server,
            model=model,
            role=role,
            status=status,
            reason=reason,
            owner=Sid(owner) if owner is not None else None,
            clauses=tuple(Clause(frozenset(map(Sid, a)), frozenset(map(Sid, d))) for a, d in clauses),
            raw=bytes(raw),
            entries=tuple(entries),
        )
    return found


def principals(conn: Connection[Any]) -> list[Principal]:
    """Return every SID that stands in some clause."""
    return [Principal(Sid(sid), *rest) for sid, *rest in conn.execute(_SQL["principals"])]
