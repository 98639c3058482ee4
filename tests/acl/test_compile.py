"""The clauses, the reference walk and the textbook agree on every list; what is uncertain never opens."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.random_acls import (
    certain_tokens,
    descriptors,
    possible_sids,
    rights,
    tokens,
    unresolvables,
)

from acl.compile import Entry, Meaning, encode
from acl.evaluate import passes, readable, walk
from acl.model import GENERIC_READ, READ_CONTROL, READ_DATA, Ace, AceKind, Clause, Descriptor
from acl.nt import NULL_DACL_EVERYONE, compile_descriptor
from acl.sid import CREATORS, EVERYONE, OWNER_RIGHTS, Sid, deny_names
from acl.token import Token
from acl.why import explain
from notewarden.errors import AskerUnknown

NOTE = Meaning("host", "nt", "note")


def textbook(descriptor: Descriptor, sids: frozenset[Sid], wanted: int) -> bool:
    """MS-DTYP 2.5.3.2 as printed: all rights at once, for somebody of whom every SID is known."""
    left = wanted
    aces = [ace for ace in descriptor.aces or () if not ace.inherit_only]
    if descriptor.owner in sids and all(ace.sid != OWNER_RIGHTS for ace in aces):
        left &= ~READ_CONTROL
    for ace in aces:
        if left == 0:
            return True
        sid = descriptor.owner if ace.sid == OWNER_RIGHTS else ace.sid
        if sid not in sids or sid in CREATORS:
            continue
        if ace.kind is AceKind.ALLOW:
            left &= ~ace.rights
        elif ace.kind in (AceKind.DENY, AceKind.CALLBACK_DENY) and ace.rights & left:
            return False
    return left == 0


@given(descriptors, tokens(), rights, unresolvables)
def test_compiled_lists_decide_as_the_walk(
    descriptor: Descriptor, token: Token, bits: int, unresolvable: frozenset[Sid]
) -> None:
    lists = compile_descriptor(descriptor, NOTE, bits)
    assert readable(lists, token, unresolvable) == walk(descriptor, token, bits, unresolvable)


@given(descriptors, certain_tokens(), rights)
def test_walk_is_the_textbook_for_a_certain_asker(descriptor: Descriptor, token: Token, bits: int) -> None:
    assert walk(descriptor, token, bits) == textbook(descriptor, token.allow, bits)


@given(descriptors, tokens(), rights, st.data())
def test_an_uncertain_asker_never_gets_more_than_any_truth_allows(
    descriptor: Descriptor, token: Token, bits: int, data: st.DataObject
) -> None:
    truth = token.allow | data.draw(st.frozensets(st.sampled_from(possible_sids(token))))
    if readable(compile_descriptor(descriptor, NOTE, bits), token):
        assert textbook(descriptor, truth, bits)


@given(descriptors, tokens(), rights, unresolvables, st.data())
def test_unresolvable_groups_only_ever_close(
    descriptor: Descriptor, token: Token, bits: int, unresolvable: frozenset[Sid], data: st.DataObject
) -> None:
    lists = compile_descriptor(descriptor, NOTE, bits)
    hidden_members = data.draw(st.frozensets(st.sampled_from([*unresolvable, token.user])))
    if readable(lists, token, unresolvable):
        assert readable(lists, token)
        assert textbook(descriptor, token.allow | hidden_members, bits)


@given(descriptors, tokens(), rights, unresolvables)
def test_the_explanation_has_the_verdict_of_the_list(
    descriptor: Descriptor, token: Token, bits: int, unresolvable: frozenset[Sid]
) -> None:
    for access_list in compile_descriptor(descriptor, NOTE, bits):
        reason = explain(access_list, token, unresolvable)
        assert reason.readable == passes(access_list, token, unresolvable)
        assert not reason.readable or reason.sid in token.allow


@given(descriptors, rights)
def test_every_right_is_in_exactly_one_list(descriptor: Descriptor, bits: int) -> None:
    lists = compile_descriptor(descriptor, NOTE, bits)
    assert 1 <= len(lists) <= bits.bit_count()
    assert len({item.key for item in lists}) == len({item.clauses for item in lists}) == len(lists)


def test_runs_become_one_clause_each_with_all_denies_before_it() -> None:
    a, b, c, d = (Sid(f"S-1-5-21-1-2-3-{number}") for number in range(4))
    entries = [Entry("deny", a, ""), Entry("allow", b, ""), Entry("deny", c, ""), Entry("deny", b, "")]
    entries += [
        Entry("ignored", d, ""),
        Entry("allow", a, ""),
        Entry("allow", EVERYONE, ""),
        Entry("deny", d, ""),
    ]
    first, second = encode(entries)
    assert first == Clause(frozenset({b}), frozenset({a}))
    assert second == Clause(frozenset({EVERYONE}), frozenset({a, c}))


def test_a_deny_of_a_relative_sid_carries_its_markers() -> None:
    here = encode([Entry("deny", Sid("S-1-22-2-5@host"), ""), Entry("allow", EVERYONE, "")])
    there = encode([Entry("deny", Sid("S-1-22-2-5@nas"), ""), Entry("allow", EVERYONE, "")])
    assert here[0].deny == {"S-1-22-2-5@host", "?S-1-22-2@host"}
    assert there[0].deny == {"S-1-22-2-5@nas", "?S-1-22-2@nas", "?S-1-22-2"}
    assert deny_names(EVERYONE) == {EVERYONE}


ALICE = Sid("S-1-5-21-1-2-3-1001")
BASE = Descriptor(ALICE, (Ace(AceKind.ALLOW, ALICE, GENERIC_READ), Ace(AceKind.DENY, EVERYONE, 2)), b"raw")


@pytest.mark.parametrize(
    ("descriptor", "meaning", "bits"),
    [
        (replace(BASE, raw=b"war"), NOTE, READ_DATA),
        (replace(BASE, owner=EVERYONE), NOTE, READ_DATA),
        (BASE, replace(NOTE, role="parent"), READ_DATA),
        (BASE, replace(NOTE, role="share"), READ_DATA),
        (BASE, replace(NOTE, server="nas"), READ_DATA),
        (BASE, replace(NOTE, model="nfs4"), READ_DATA),
        (BASE, replace(NOTE, options=("read_mask=read_data",)), READ_DATA),
        (BASE, replace(NOTE, options=("a", "b")), READ_DATA),
        (BASE, replace(NOTE, options=("ab",)), READ_DATA),
        (BASE, NOTE, 0x8),
        (replace(BASE, aces=None), NOTE, READ_DATA),
    ],
)
def test_whatever_changes_the_meaning_changes_the_key(
    descriptor: Descriptor, meaning: Meaning, bits: int
) -> None:
    (base,) = compile_descriptor(BASE, NOTE, READ_DATA)
    (other,) = compile_descriptor(descriptor, meaning, bits)
    assert len(base.key) == len(other.key) == 32
    assert base.key != other.key
    assert base.key == compile_descriptor(BASE, NOTE, READ_DATA)[0].key


def test_what_is_not_understood_is_quarantined_with_its_reason() -> None:
    strange = Descriptor(ALICE, (*(BASE.aces or ()), Ace(AceKind.UNKNOWN, ALICE, 1)))
    unix_shaped = Descriptor(
        ALICE, (Ace(AceKind.ALLOW, ALICE, 0), Ace(AceKind.ALLOW, EVERYONE, GENERIC_READ))
    )
    ownerless = Descriptor(None, (Ace(AceKind.ALLOW, OWNER_RIGHTS, GENERIC_READ),))
    endless = Descriptor(ALICE, (Ace(AceKind.ALLOW, EVERYONE, GENERIC_READ),) * 10_000)
    token = Token(ALICE, "alice", frozenset({ALICE, EVERYONE}), frozenset({ALICE, EVERYONE}))
    for descriptor in (strange, unix_shaped, ownerless, endless, Descriptor(ALICE, None)):
        (access_list,) = compile_descriptor(descriptor, NOTE)
        assert (access_list.status, access_list.clauses) == ("quarantined", ())
        assert access_list.reason
        assert not passes(access_list, token)
        assert not walk(descriptor, token, GENERIC_READ)


def test_a_null_list_opens_only_by_option() -> None:
    token = Token(ALICE, "alice", frozenset({ALICE, EVERYONE}), frozenset({ALICE, EVERYONE}))
    opened = compile_descriptor(Descriptor(None, None), replace(NOTE, options=(NULL_DACL_EVERYONE,)))
    assert readable(opened, token)


def test_no_token_no_layer_and_no_right_never_mean_yes() -> None:
    lists = compile_descriptor(BASE, NOTE)
    token = Token(ALICE, "alice", frozenset({ALICE}), frozenset({ALICE}))
    assert readable(lists, token)
    assert not readable((), token)
    with pytest.raises(AskerUnknown):
        readable(lists, None)
    with pytest.raises(AskerUnknown):
        walk(BASE, None, READ_DATA)
    with pytest.raises(AskerUnknown):
        explain(lists[0], None)
    with pytest.raises(ValueError, match="at least one right"):
        walk(BASE, token, 0)
