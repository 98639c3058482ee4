"""Random access lists and tokens that collide often: few SIDs, every kind of entry and of asker."""

from __future__ import annotations

from hypothesis import strategies as st

from acl.model import GENERIC_READ, READ_CONTROL, READ_DATA, Ace, AceKind, Descriptor
from acl.sid import AUTHENTICATED, EVERYONE, NETWORK, OWNER_RIGHTS, Sid, deny_names, uncertain_names
from acl.token import Token

USERS = [
    Sid("S-1-5-21-1-2-3-1001"),
    Sid("S-1-22-1-1000@host"),
    Sid("S-1-22-1-1000@nfs:nas:/notes"),
    Sid("S-1-22-1-1001@host"),
]
GROUPS = [
    Sid("S-1-5-21-1-2-3-2001"),
    Sid("S-1-5-21-9-9-9-2001"),
    Sid("S-1-22-2-998@host"),
    Sid("S-1-22-2-998@nfs:nas:/notes"),
    Sid("S-1-22-2-999@host"),
    Sid("S-1-5-32-545@host"),
    Sid("S-1-5-32-545@nfs:nas:/notes"),
]
PER_LOGIN = [Sid("S-1-5-4"), Sid("S-1-5-64-10"), Sid("S-1-18-1")]
PEOPLE = USERS + GROUPS
ALL = [*PEOPLE, *PER_LOGIN, EVERYONE, AUTHENTICATED, NETWORK]
CLASSES = ["S-1-22-1@host", "S-1-22-2@host", "S-1-5-32@host"]

MASKS = [0x1, 0x2, 0x8, 0x20000, 0x120089, 0x120116, 0x1F01FF, 0x80000000, 0x10000000, 0x40000000]
KINDS = [AceKind.ALLOW] * 4 + [AceKind.DENY] * 3 + [AceKind.CALLBACK_ALLOW, AceKind.CALLBACK_DENY]

aces = st.builds(
    Ace,
    st.sampled_from(KINDS),
    st.sampled_from([*ALL, OWNER_RIGHTS, Sid("S-1-3-0")]),
    st.sampled_from(MASKS),
    st.sampled_from([False, False, False, True]),
)
descriptors = st.builds(Descriptor, st.sampled_from(PEOPLE), st.lists(aces, max_size=9).map(tuple))
rights = st.sampled_from([READ_DATA, READ_CONTROL, 0x8, GENERIC_READ])
unresolvables = st.frozensets(st.sampled_from(GROUPS), max_size=2)


@st.composite
def certain_tokens(draw: st.DrawFn) -> Token:
    """An asker of whom everything is known: both sets are the truth."""
    user = draw(st.sampled_from(USERS))
    groups = draw(st.frozensets(st.sampled_from(GROUPS), max_size=5))
    allow = frozenset({user, EVERYONE, AUTHENTICATED, NETWORK, *groups})
    return Token(user, "certain", allow, allow)


@st.composite
def tokens(draw: st.DrawFn) -> Token:
    """An asker as the directories build them: some memberships known, some possible, some by marker only."""
    known = draw(certain_tokens())
    certain = draw(st.frozensets(st.sampled_from(CLASSES)))
    possible = draw(st.frozensets(st.sampled_from(GROUPS), max_size=2))
    return Token(known.user, "asker", known.allow, known.allow | possible | uncertain_names(certain))


def possible_sids(token: Token) -> list[Sid]:
    """Every SID of this world that the asker may really have."""
    return [sid for sid in ALL if not deny_names(sid).isdisjoint(token.deny)]
