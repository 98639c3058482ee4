"""NT lists that stand for POSIX modes: what Samba shows of a file that has no NT list stored.

Such a list allows only: "no permission" is an entry that allows nothing. Walked as an NT list it would let
the next entry grant what the mode refuses. Here an entry without the right denies its SID, and the order is
the POSIX one (1003.1e draft 17, 23.1.5): owner, named users, groups that grant, groups that do not, others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from acl.compile import Entry, Meaning, compile_entries, quarantine
from acl.model import AccessList, AceKind, Descriptor
from acl.nt import MOST_ACES
from acl.sid import BUILTIN, CREATORS, EVERYONE, UNIX_GROUPS, UNIX_USERS, Sid, is_well_known

TRAVERSE = 0x20

Kind = Literal["user", "group"]
KindOf = Callable[[Sid], Kind | None]

# Domain Admins, Users, Guests, Computers: groups by their number in every domain.
_GROUP_RIDS = re.compile(r"S-1-5-21-\d+-\d+-\d+-51[2-5]")
_DOMAIN_USERS = re.compile(r"S-1-5-21-\d+-\d+-\d+-513")


def is_posix_shaped(descriptor: Descriptor) -> bool:
    """Whether the list has an entry that allows nothing, as only a unix mode written as a list has."""
    return any(
        ace.kind is AceKind.ALLOW and ace.rights == 0 and not ace.inherit_only
        for ace in descriptor.aces or ()
    )


def may_stand_for_mode(descriptor: Descriptor) -> bool:
    """Whether a server may show a mode so: it only allows, and speaks of the owner and of everybody."""
    active = [ace for ace in descriptor.aces or () if not ace.inherit_only]
    named = {ace.sid for ace in active}
    allows = all(ace.kind is AceKind.ALLOW for ace in active)
    return allows and EVERYONE in named and descriptor.owner in named


def compile_posix_shaped(descriptor: Descriptor, right: int, meaning: Meaning, kind_of: KindOf) -> AccessList:
    """The access list of a qualified descriptor for one right, READ_DATA or TRAVERSE.

    Whether a domain's SID is a user or a group decides the order and stands in no descriptor: `kind_of` may
    know. Where nobody does, its denial counts first: that may hide, never show. A denial by an entry that is
    no POSIX one counts first too.
    """
    reason = _why_not(descriptor)
    if reason:
        return quarantine(meaning, reason, owner=descriptor.owner, raw=descriptor.raw)
    active = [ace for ace in descriptor.aces or () if not ace.inherit_only and ace.sid not in CREATORS]
    denied = [ace.sid for ace in active if not ace.grants and ace.rights & right]
    told = [(ace.sid, bool(ace.rights & right)) for ace in active if ace.grants]
    kinds = {sid: _kind(sid, descriptor, kind_of) for sid, _ in told}
    grants = {sid: _merged([yes for one, yes in told if one == sid], kinds[sid], sid) for sid, _ in told}
    if told and told[0][0] == descriptor.owner:  # Samba puts the owner's entry first; a named one is void
        grants[told[0][0]] = told[0][1]
    ranked = sorted(grants.items(), key=lambda item: _rank(item[0], kinds[item[0]], item[1], descriptor))
    entries = [Entry("deny", sid, "deny entry") for sid in dict.fromkeys(denied)]
    entries += [_entry(sid, kinds[sid], granted) for sid, granted in ranked]
    known = tuple(f"{sid} is {kind or 'unknown'}" for sid, kind in sorted(kinds.items()))
    meaning = replace(meaning, options=(*meaning.options, *known))
    return compile_entries(entries, meaning, right, owner=descriptor.owner, raw=descriptor.raw)


def _why_not(descriptor: Descriptor) -> str:
    if descriptor.aces is None:
        return "it has no access list, which servers read differently"
    if len(descriptor.aces) > MOST_ACES:
        return f"it has more than {MOST_ACES} entries"
    if any(ace.kind not in (AceKind.ALLOW, AceKind.DENY) for ace in descriptor.aces):
        return "it has an entry that stands for no POSIX permission"
    return ""


def _kind(sid: Sid, descriptor: Descriptor, kind_of: KindOf) -> Kind | None:
    if sid.startswith(UNIX_USERS + "-") or sid == descriptor.owner:
        return "user"
    group = sid.startswith((UNIX_GROUPS + "-", BUILTIN + "-")) or sid == descriptor.group
    if group or _GROUP_RIDS.fullmatch(sid) or is_well_known(sid):
        return "group"
    return kind_of(sid)


def _merged(said: list[bool], kind: Kind | None, sid: Sid) -> bool:
    """What the entries of one SID come to: a group may be named twice, and one entry that grants will do."""
    return any(said) if kind == "group" and sid != EVERYONE else all(said)


def _rank(sid: Sid, kind: Kind | None, granted: bool, descriptor: Descriptor) -> int:
    if sid == EVERYONE:
        return 5
    if sid == descriptor.owner:
        return 0
    if kind is None and not granted:
        return 0
    if kind == "user":
        return 1
    return 2 if granted else 3


def _entry(sid: Sid, kind: Kind | None, granted: bool) -> Entry:
    right = "with" if granted else "without"
    if sid == EVERYONE:
        return Entry("allow" if granted else "deny", sid, f"others, {right} the right")
    if granted and _DOMAIN_USERS.fullmatch(sid) and kind != "user":
        return Entry("ignored", sid, "Domain Users without a unix group grants nobody")
    who = f"{kind or 'user or group'} {right} the right"
    return Entry("allow" if granted else "deny", sid, who)
