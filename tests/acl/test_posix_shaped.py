"""Lists that stand for modes: as Samba writes them, they must decide as the modes do."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.posix_acls import posix_states

from acl.compile import Meaning
from acl.evaluate import passes, readable
from acl.model import READ_DATA, Ace, AceKind, Descriptor
from acl.nt import compile_descriptor
from acl.posix import EXECUTE, READ, PosixAcl, PosixState, compile_posix, from_mode, parse_xattr
from acl.posix_shaped import TRAVERSE, Kind, compile_posix_shaped, is_posix_shaped
from acl.sid import AUTHENTICATED, EVERYONE, HOST, NETWORK, Sid, uncertain_names, unix_group, unix_user
from acl.token import Token

UIDS, GIDS = [1000, 1001, 1002], [2000, 2001, 2002]
MEANING = Meaning(HOST, "posix", "note")
RIGHTS = {4: 0x120089, 2: 0x120116, 1: 0x1200A0}


def mask_of(bits: int) -> int:
    mask = 0
    for bit, rights in RIGHTS.items():
        mask |= rights if bits & bit else 0
    return mask


def as_samba(state: PosixState, dice: random.Random) -> Descriptor:
    """The owner's entry first, others' last, the rest in any order; nothing granted is an empty allow."""
    acl: PosixAcl = from_mode(state.mode) if state.xattr is None else parse_xattr(state.xattr)
    limit = 7 if acl.mask is None else acl.mask
    middle = [(unix_user(uid, HOST), bits & limit) for uid, bits in acl.users]
    middle += [(unix_group(gid, HOST), bits & limit) for gid, bits in [(state.gid, acl.group), *acl.groups]]
    dice.shuffle(middle)
    entries = [(unix_user(state.uid, HOST), acl.owner), *middle, (EVERYONE, acl.other)]
    aces = tuple(Ace(AceKind.ALLOW, sid, mask_of(bits)) for sid, bits in entries)
    return Descriptor(unix_user(state.uid, HOST), aces, b"", unix_group(state.gid, HOST))


def nobody_knows(sid: Sid) -> Kind | None:
    return None


@given(
    posix_states(UIDS, GIDS),
    st.sampled_from(UIDS),
    st.frozensets(st.sampled_from(GIDS)),
    st.sampled_from([(READ_DATA, READ), (TRAVERSE, EXECUTE)]),
    st.integers(0, 99),
)
def test_it_decides_as_the_modes_do(
    state: PosixState, uid: int, gids: frozenset[int], right: tuple[int, int], seed: int
) -> None:
    user = unix_user(uid, HOST)
    allow = frozenset({user, EVERYONE, AUTHENTICATED, NETWORK, *(unix_group(gid, HOST) for gid in gids)})
    token = Token(user, "asker", allow, allow | uncertain_names(["S-1-22-1@host", "S-1-22-2@host"]))
    shaped = compile_posix_shaped(as_samba(state, random.Random(seed)), right[0], MEANING, nobody_knows)
    assert passes(shaped, token) == passes(compile_posix(state, right[1], MEANING), token)


USER, GROUP, PERSON = Sid("S-1-5-21-1-2-3-1001"), Sid("S-1-5-21-1-2-3-2001"), Sid("S-1-5-21-1-2-3-1002")
READS, NOTHING = 0x120089, 0


def shaped(*entries: tuple[Sid, int], owner: Sid = PERSON) -> Descriptor:
    aces = tuple(Ace(AceKind.ALLOW, sid, mask) for sid, mask in entries)
    return Descriptor(owner, aces, b"", Sid("S-1-22-2-0@host"))


def reads(descriptor: Descriptor, *sids: Sid, kinds: dict[Sid, Kind] | None = None) -> bool:
    allow = frozenset({*sids, EVERYONE, AUTHENTICATED, NETWORK})
    one = compile_posix_shaped(descriptor, READ_DATA, MEANING, lambda sid: (kinds or {}).get(sid))
    return readable([one], Token(sids[0], "asker", allow, allow))


def test_walked_as_an_nt_list_it_would_open_what_the_mode_closes() -> None:
    """The trap: an entry that allows nothing lets the walk go on to Everyone. Neither reading falls in."""
    trap = shaped((USER, NOTHING), (EVERYONE, READS))
    assert is_posix_shaped(trap)
    assert not reads(trap, USER, kinds={USER: "user"}) and reads(trap, GROUP)
    (literal,) = compile_descriptor(trap, Meaning(HOST, "nt", "note"))
    assert literal.status == "quarantined"


def test_whether_it_is_a_user_decides_the_order() -> None:
    """A user's own entry counts before any group's; where nobody knows which it is, the denial does."""
    both = shaped((GROUP, NOTHING), (USER, READS))
    assert reads(both, USER, GROUP, kinds={USER: "user", GROUP: "group"})
    assert not reads(both, USER, GROUP)
    other = shaped((USER, NOTHING), (GROUP, READS))
    assert not reads(other, USER, GROUP, kinds={USER: "user", GROUP: "group"})


def test_what_the_directory_knows_is_part_of_the_list() -> None:
    both = shaped((GROUP, NOTHING), (USER, READS))
    one, two = (
        compile_posix_shaped(both, READ_DATA, MEANING, lambda sid, kind=kind: kind) for kind in ("user", None)
    )
    assert one.key != two.key


def test_domain_users_without_a_unix_group_grants_nobody() -> None:
    domain_users = Sid("S-1-5-21-1-2-3-513")
    assert not reads(shaped((domain_users, READS), (EVERYONE, NOTHING)), USER, domain_users)
    assert not reads(shaped((domain_users, NOTHING), (EVERYONE, READS)), USER, domain_users)


def test_the_owner_named_again_is_the_owner() -> None:
    again = shaped((PERSON, READS), (PERSON, NOTHING), (EVERYONE, NOTHING))
    assert reads(again, PERSON)
    assert not reads(shaped((PERSON, NOTHING), (PERSON, READS), (EVERYONE, READS)), PERSON)
    assert not reads(shaped((USER, READS), (PERSON, READS), (PERSON, NOTHING)), PERSON)


@pytest.mark.parametrize("kind", [AceKind.CALLBACK_ALLOW, AceKind.CALLBACK_DENY, AceKind.UNKNOWN])
def test_an_entry_that_stands_for_no_mode_closes(kind: AceKind) -> None:
    odd = Descriptor(PERSON, (Ace(kind, USER, READS), Ace(AceKind.ALLOW, EVERYONE, READS)))
    assert compile_posix_shaped(odd, READ_DATA, MEANING, nobody_knows).status == "quarantined"


def test_a_denial_by_an_entry_counts_first() -> None:
    aces = (Ace(AceKind.ALLOW, EVERYONE, READS), Ace(AceKind.DENY, USER, READS))
    assert not reads(Descriptor(PERSON, aces), USER)
    assert reads(Descriptor(PERSON, aces), GROUP)
