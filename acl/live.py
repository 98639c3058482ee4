"""A note as the share itself shows it at this moment: what the late check compares the index with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from acl.model import AccessList, Clause, Role, Status
from acl.sid import Sid

State = Literal["current", "changed", "gone", "error", "unreachable"]


@dataclass(frozen=True)
class NoteNow:
    """One note now: every layer's compiled list, and what became of its text.

    "current" and "changed" tell whether the text is the indexed one. "gone" and "error" (something of this
    note cannot be read) keep it from everybody. "unreachable": its share cannot be asked at all, or is not
    the share it was. `unresolvable` are denied SIDs that match everybody, as nobody can list their members.
    """

    state: State
    lists: tuple[AccessList, ...] = ()
    unresolvable: frozenset[Sid] = frozenset()


def to_wire(now: NoteNow) -> dict[str, Any]:
    """The note as JSON for another process: compiled lists and states, no path, no bytes, no reasons."""
    return {
        "state": now.state,
        "lists": [_list_to_wire(one) for one in now.lists],
        "unresolvable": sorted(now.unresolvable),
    }


def from_wire(told: Mapping[str, Any]) -> NoteNow:
    """The note that `to_wire` made. Raises ValueError, KeyError or TypeError for anything else."""
    if told["state"] not in get_args(State):
        raise ValueError("no such state")
    lists = tuple(_list_from_wire(one) for one in told["lists"])
    return NoteNow(told["state"], lists, frozenset(map(Sid, _texts(told["unresolvable"]))))


def _list_to_wire(one: AccessList) -> dict[str, Any]:
    return {
        "key": one.key.hex(),
        "server": one.server,
        "model": one.model,
        "role": one.role,
        "status": one.status,
        "clauses": [[sorted(clause.allow), sorted(clause.deny)] for clause in one.clauses],
    }


def _list_from_wire(told: Mapping[str, Any]) -> AccessList:
    if told["role"] not in get_args(Role) or told["status"] not in get_args(Status):
        raise ValueError("no such role or status")
    return AccessList(
        key=bytes.fromhex(told["key"]),
        server=str(told["server"]),
        model=str(told["model"]),
        role=told["role"],
        status=told["status"],
        reason="",
        owner=None,
        clauses=tuple(Clause(_sids(allow), _sids(deny)) for allow, deny in told["clauses"]),
        raw=b"",
        entries=(),
    )


def _sids(told: Any) -> frozenset[Sid]:
    return frozenset(map(Sid, _texts(told)))


def _texts(told: Any) -> list[str]:
    if not isinstance(told, list) or not all(isinstance(one, str) for one in told):
        raise ValueError("not a list of texts")
    return told
