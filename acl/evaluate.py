"""Two ways to decide: the reference walk over a descriptor, and the clauses that the index uses.

Both must agree on every list and token; the tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from acl.model import READ_CONTROL, AccessList, AceKind, Descriptor
from acl.nt import each_bit, owner_reads_descriptor, why_quarantined
from acl.sid import CREATORS, OWNER_RIGHTS, Sid, deny_names
from acl.token import Token, require_token

NONE: frozenset[Sid] = frozenset()


def walk(descriptor: Descriptor, token: Token | None, bits: int, unresolvable: frozenset[Sid] = NONE) -> bool:
    """The reference access check, per bit and in stored order (MS-DTYP 2.5.3.2).

    The first entry that matches decides; the end of the list denies; an empty list denies all. Allow entries
    match the token's allow set, deny entries its deny set or the ``unresolvable`` SIDs (whose members nobody
    can name, so they match everybody). A list that is not understood denies. SIDs must be qualified.
    Raises AskerUnknown without a token, ValueError if no right is asked for.
    """
    asker = require_token(token)
    wanted = list(each_bit(bits))
    if why_quarantined(descriptor):
        return False
    denied = asker.deny | unresolvable
    return all(_walk_bit(descriptor, asker.allow, denied, bit) for bit in wanted)


def passes(access_list: AccessList, token: Token | None, unresolvable: frozenset[Sid] = NONE) -> bool:
    """Whether one compiled list lets the token pass. Raises AskerUnknown without a token."""
    asker = require_token(token)
    if access_list.status != "ok":
        return False
    denied = asker.deny | unresolvable
    return any(
        not clause.allow.isdisjoint(asker.allow) and clause.deny.isdisjoint(denied)
        for clause in access_list.clauses
    )


def readable(lists: Sequence[AccessList], token: Token | None, unresolvable: frozenset[Sid] = NONE) -> bool:
    """Whether all layers pass. No layer at all is a missing policy, and that denies."""
    asker = require_token(token)
    return bool(lists) and all(passes(layer, asker, unresolvable) for layer in lists)


def _walk_bit(descriptor: Descriptor, allowed: frozenset[Sid], denied: frozenset[Sid], bit: int) -> bool:
    spoken_for: set[Sid] = set()
    owner = descriptor.owner
    if bit == READ_CONTROL and owner is not None and owner_reads_descriptor(descriptor):
        if owner in allowed:
            return True
        spoken_for.add(owner)
    for ace in descriptor.aces or ():
        sid = owner if ace.sid == OWNER_RIGHTS and owner is not None else ace.sid
        inert = ace.inherit_only or sid in CREATORS or ace.kind is AceKind.CALLBACK_ALLOW
        if inert or not ace.rights & bit or sid in spoken_for:
            continue
        spoken_for.add(sid)
        if ace.grants and sid in allowed:
            return True
        if not ace.grants and not deny_names(sid).isdisjoint(denied):
            return False
    return False
