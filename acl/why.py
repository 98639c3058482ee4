"""Why a list lets somebody pass or not: the entry that decides, whose it is, and through which groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acl.model import AccessList
from acl.sid import Sid, deny_names
from acl.token import Token, require_token


@dataclass(frozen=True)
class Reason:
    """The verdict of one list: ``ace`` is the deciding entry in words, ``sid`` whose it is (None: nobody's).

    ``through`` has the groups between the user and that SID, nearest to the user first.
    """

    readable: bool
    ace: str
    sid: Sid | None
    through: tuple[Sid, ...] = ()


def explain(
    access_list: AccessList, token: Token | None, unresolvable: frozenset[Sid] = frozenset()
) -> Reason:
    """Which entry of one list decides for the token. Raises AskerUnknown without a token."""
    asker = require_token(token)
    if access_list.status != "ok":
        return Reason(False, f"closed to everybody: {access_list.reason}", None)
    seen: set[str] = set()
    for text in access_list.entries:
        verb, name = text.split(" ", 2)[:2]
        if verb == "ignored" or name in seen:
            continue
        seen.add(name)
        sid = Sid(name)
        if verb == "allow" and sid in asker.allow:
            return Reason(True, text, sid, asker.through.get(sid, ()))
        if verb == "deny" and not deny_names(sid).isdisjoint(asker.deny | unresolvable):
            return Reason(False, text + _doubt(sid, asker), sid, asker.through.get(sid, ()))
    return Reason(False, "no entry speaks of this user or their groups", None)


def explain_all(
    lists: Sequence[AccessList], token: Token | None, unresolvable: frozenset[Sid] = frozenset()
) -> tuple[Reason, ...]:
    """The reason of each list, in the lists' order; the note is readable when all are and there is one."""
    return tuple(explain(access_list, token, unresolvable) for access_list in lists)


def _doubt(sid: Sid, asker: Token) -> str:
    return "" if sid in asker.allow else " (counted as a match: nobody can tell who is a member)"
