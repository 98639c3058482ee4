"""POSIX modes and ACLs: the ordered list decides as the standard's own algorithm."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.posix_acls import NO_ID, acl_bytes, posix_states

from acl.compile import Meaning
from acl.evaluate import passes
from acl.posix import EXECUTE, READ, PosixAcl, PosixState, compile_posix, parse_xattr
from acl.sid import AUTHENTICATED, EVERYONE, NETWORK, Sid, uncertain_names, unix_group, unix_user
from acl.token import Token
from acl.why import explain

NOTE = Meaning("host", "posix", "note")
CERTAIN = ("S-1-22-1@host", "S-1-22-2@host")
UIDS, GIDS = (5001, 5002, 5003), (6001, 6002, 6003)


def unix_token(uid: int, gids: Iterable[int], server: str = "host") -> Token:
    allow = {
        unix_user(uid, server),
        EVERYONE,
        AUTHENTICATED,
        NETWORK,
        *(unix_group(gid, server) for gid in gids),
    }
    return Token(
        unix_user(uid, server), "asker", frozenset(allow), frozenset(allow) | uncertain_names(CERTAIN)
    )


def standard_check(state: PosixState, uid: int, gids: frozenset[int], want: int) -> bool:
    """POSIX 1003.1e draft 17, 23.1.5, step by step, reading the attribute's bytes in its own way."""
    entries = []
    if state.xattr is None:
        entries = [(0x01, state.mode >> 6, NO_ID), (0x04, state.mode >> 3, NO_ID), (0x20, state.mode, NO_ID)]
    else:
        for start in range(4, len(state.xattr), 8):
            entries.append(struct.unpack("<HHI", state.xattr[start : start + 8]))
    mask = next((bits for tag, bits, _ in entries if tag == 0x10), 7)
    by_tag = {tag: bits for tag, bits, _ in entries}
    if uid == state.uid:
        return bool(by_tag[0x01] & want)
    for tag, bits, number in entries:
        if tag == 0x02 and number == uid:
            return bool(bits & mask & want)
    member_of = [bits for tag, bits, number in entries if tag == 0x08 and number in gids]
    if state.gid in gids:
        member_of.append(by_tag[0x04])
    if member_of:
        return any(bits & mask & want for bits in member_of)
    return bool(by_tag[0x20] & want)


@given(
    posix_states(UIDS, GIDS),
    st.sampled_from(UIDS),
    st.frozensets(st.sampled_from(GIDS), min_size=1),
    st.sampled_from([READ, EXECUTE]),
)
def test_compiled_modes_decide_as_the_standard(
    state: PosixState, uid: int, gids: frozenset[int], right: int
) -> None:
    compiled = compile_posix(state, right, NOTE)
    assert compiled.status == "ok"
    token = unix_token(uid, gids)
    assert passes(compiled, token) == standard_check(state, uid, gids, right)
    assert explain(compiled, token).readable == passes(compiled, token)


BOB, CAROL = 5001, 5002
STAFF, AUDIT = 6001, 6002


def state(
    mode: int, *named: tuple[int, int, int], mask: int = 7, uid: int = 1, gid: int = STAFF
) -> PosixState:
    if not named:
        return PosixState(uid, gid, mode, None)
    fixed = (
        (1, mode >> 6 & 7, NO_ID),
        (4, mode >> 3 & 7, NO_ID),
        (0x10, mask, NO_ID),
        (0x20, mode & 7, NO_ID),
    )
    return PosixState(uid, gid, mode, acl_bytes(sorted((*fixed, *named))))


@pytest.mark.parametrize(
    ("situation", "state", "uid", "gids", "reads"),
    [
        ("named user ---, other r", state(0o644, (2, 0, BOB)), BOB, [9], False),
        ("named user ---, other r: another user", state(0o644, (2, 0, BOB)), CAROL, [9], True),
        ("owner 0, other r: owner", state(0o044, uid=BOB), BOB, [9], False),
        ("owner 0, other r: another user", state(0o044, uid=BOB), CAROL, [9], True),
        ("owner 0, owner in the group that reads", state(0o040, uid=BOB), BOB, [STAFF], False),
        ("owning group 0, other r: member", state(0o604), BOB, [STAFF], False),
        ("owning group 0, other r: no member", state(0o604), BOB, [9], True),
        ("mask ---, named user r", state(0o600, (2, 4, BOB), mask=0), BOB, [9], False),
        ("mask ---, named user r, other r", state(0o604, (2, 4, BOB), mask=0), BOB, [9], False),
        ("mask r, named user r", state(0o600, (2, 4, BOB), mask=4), BOB, [9], True),
        ("mask limits the owning group", state(0o640, (2, 4, BOB), mask=0), CAROL, [STAFF], False),
        ("mask does not limit the owner", state(0o600, (2, 4, BOB), mask=0, uid=CAROL), CAROL, [9], True),
        ("one granting, one other group", state(0o640, (8, 0, AUDIT)), BOB, [STAFF, AUDIT], True),
        ("only the group that grants nothing", state(0o644, (8, 0, AUDIT)), BOB, [AUDIT], False),
        ("owning group denies, named group grants", state(0o600, (8, 4, AUDIT)), BOB, [STAFF, AUDIT], True),
        ("named user beats a granting group", state(0o640, (2, 0, BOB)), BOB, [STAFF], False),
        ("root by the list, without bypass", state(0o600, uid=BOB), 0, [0], False),
        ("root as other", state(0o604, uid=BOB), 0, [0], True),
        ("write only does not read", state(0o222, uid=BOB), BOB, [STAFF], False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_who_reads_a_note(situation: str, state: PosixState, uid: int, gids: list[int], reads: bool) -> None:
    compiled = compile_posix(state, READ, NOTE)
    assert passes(compiled, unix_token(uid, gids)) is reads, situation


def test_the_same_group_id_on_three_servers_is_three_groups() -> None:
    lists = {
        server: compile_posix(state(0o640, gid=998), READ, Meaning(server, "posix", "note"))
        for server in ("nas1", "nas2", "host")
    }
    for home in lists:
        token = unix_token(BOB, [998], home)
        assert {server for server, item in lists.items() if passes(item, token)} == {home}


def test_a_deny_of_a_foreign_group_counts_for_who_may_be_in_it() -> None:
    foreign = compile_posix(state(0o604, gid=998), READ, Meaning("nas1", "posix", "note"))
    assert not passes(foreign, unix_token(BOB, [9]))
    here = compile_posix(state(0o604, gid=998), READ, NOTE)
    assert passes(here, unix_token(BOB, [9]))
    allow = frozenset({Sid("S-1-5-21-1-2-3-4"), EVERYONE})
    without_ids = Token(Sid("S-1-5-21-1-2-3-4"), "dora", allow, allow | uncertain_names(()))
    assert not passes(here, without_ids)
    assert passes(compile_posix(state(0o644, gid=998), READ, NOTE), without_ids)
    assert not passes(compile_posix(state(0o244, gid=998), READ, NOTE), without_ids)  # dora may be the owner


def test_the_same_bytes_guard_differently_as_note_and_as_parent() -> None:
    both = state(0o750, uid=BOB)
    note = compile_posix(both, READ, NOTE)
    parent = compile_posix(both, EXECUTE, Meaning("host", "posix", "parent"))
    assert note.raw == parent.raw
    assert note.key != parent.key
    assert compile_posix(both, EXECUTE, NOTE).key != note.key


def test_the_key_follows_owner_group_mode_and_acl_but_not_the_type() -> None:
    base = PosixState(1, 2, 0o100640, None)
    same = PosixState(1, 2, 0o640, None)
    others = [
        PosixState(3, 2, 0o640, None),
        PosixState(1, 3, 0o640, None),
        PosixState(1, 2, 0o644, None),
        PosixState(1, 2, 0o640, acl_bytes([(1, 6, NO_ID), (4, 4, NO_ID), (0x20, 0, NO_ID)])),
    ]
    keys = {compile_posix(item, READ, NOTE).key for item in (base, same, *others)}
    assert len(keys) == 5


MINIMAL = [(1, 6, NO_ID), (4, 4, NO_ID), (0x20, 0, NO_ID)]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x02\0\0",
        b"\x02\0\0\0",
        acl_bytes(MINIMAL, version=1),
        acl_bytes(MINIMAL)[:-1],
        acl_bytes(MINIMAL) + b"\0",
        acl_bytes(MINIMAL[:2]),
        acl_bytes(MINIMAL[1:]),
        acl_bytes([*MINIMAL, (0x20, 0, NO_ID)]),
        acl_bytes([MINIMAL[1], MINIMAL[0], MINIMAL[2]]),
        acl_bytes([(1, 8, NO_ID), *MINIMAL[1:]]),
        acl_bytes([MINIMAL[0], (3, 4, 5), *MINIMAL[1:]]),
        acl_bytes([MINIMAL[0], (2, 4, 5), *MINIMAL[1:]]),
        acl_bytes([MINIMAL[0], (2, 4, NO_ID), MINIMAL[1], (0x10, 4, NO_ID), MINIMAL[2]]),
        acl_bytes([MINIMAL[0], (2, 4, 5), (2, 0, 5), MINIMAL[1], (0x10, 4, NO_ID), MINIMAL[2]]),
        acl_bytes(
            [MINIMAL[0], *((2, 4, uid) for uid in range(9_000)), MINIMAL[1], (0x10, 4, NO_ID), MINIMAL[2]]
        ),
    ],
)
def test_an_acl_the_kernel_would_not_store_closes_the_note(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_xattr(raw)
    compiled = compile_posix(PosixState(BOB, STAFF, 0o644, raw), READ, NOTE)
    assert (compiled.status, compiled.clauses) == ("quarantined", ())
    assert not passes(compiled, unix_token(BOB, [STAFF]))


@given(st.binary(max_size=64))
def test_no_bytes_crash_the_parser(raw: bytes) -> None:
    for candidate in (raw, b"\x02\0\0\0" + raw):
        with contextlib.suppress(ValueError):
            assert isinstance(parse_xattr(candidate), PosixAcl)
