"""Descriptors from raw bytes: what is well-formed is read exactly, everything else is closed."""

from __future__ import annotations

import os
import random
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.random_acls import PEOPLE, descriptors, tokens
from support.raw_descriptors import mutated, reference_allows
from support.samba import ace_bytes, descriptor_bytes, sid_bytes

from acl.compile import Meaning
from acl.descriptor import LONGEST, DescriptorError, parse_descriptor
from acl.evaluate import readable, walk
from acl.model import GENERIC_READ, READ_DATA, Ace, AceKind, Descriptor
from acl.nt import compile_descriptor, why_quarantined
from acl.sid import EVERYONE, HOST, Sid, bare, server_of, uncertain_names
from acl.token import Token

OWNER = "S-1-5-21-1-2-3-1001"
# The reference knows one server only.
HERE = [sid for sid in PEOPLE if server_of(sid) in (None, HOST)]
CODES = {AceKind.ALLOW: 0, AceKind.DENY: 1, AceKind.CALLBACK_ALLOW: 9, AceKind.CALLBACK_DENY: 10}


def packed(ace: Ace) -> bytes:
    return ace_bytes(CODES[ace.kind], ace.sid, ace.mask, 8 if ace.inherit_only else 0)


def to_bytes(descriptor: Descriptor) -> bytes:
    assert descriptor.owner is not None
    told = None if descriptor.aces is None else [packed(ace) for ace in descriptor.aces]
    return descriptor_bytes(descriptor.owner, told)


def unqualified(descriptor: Descriptor) -> Descriptor:
    """As a server sends it: no SID says whose it is."""
    assert descriptor.owner is not None
    stripped = tuple(Ace(a.kind, Sid(bare(a.sid)), a.mask, a.inherit_only) for a in descriptor.aces or ())
    return Descriptor(Sid(bare(descriptor.owner)), stripped)


@given(descriptors)
def test_what_was_written_is_read(written: Descriptor) -> None:
    plain = unqualified(written)
    read = parse_descriptor(to_bytes(plain))
    assert (read.owner, read.aces) == (plain.owner, plain.aces)
    assert read.group == "S-1-5-21-3001-3002-3003-513"


@given(descriptors, tokens(), st.sampled_from([READ_DATA, GENERIC_READ]))
def test_from_bytes_to_verdict_as_the_walk(written: Descriptor, token: Token, bits: int) -> None:
    read = parse_descriptor(to_bytes(unqualified(written))).qualified("host")
    lists = compile_descriptor(read, Meaning("host", "nt", "note"), bits)
    assert readable(lists, token) == walk(read, token, bits)


def test_absent_null_and_empty_lists_are_three_things() -> None:
    absent = parse_descriptor(descriptor_bytes(OWNER, None))
    null = parse_descriptor(descriptor_bytes(OWNER, None).replace(b"\x00\x80", b"\x04\x80", 1))
    assert absent.aces is None and null.aces is None
    assert parse_descriptor(descriptor_bytes(OWNER, [])).aces == ()
    assert why_quarantined(absent)


@pytest.mark.parametrize("kind", [k for k in range(256) if k not in CODES.values()])
def test_an_entry_of_another_type_closes_the_note(kind: int) -> None:
    raw = descriptor_bytes(
        OWNER, [ace_bytes(0, EVERYONE, GENERIC_READ), ace_bytes(kind, OWNER, GENERIC_READ)]
    )
    (closed,) = compile_descriptor(parse_descriptor(raw), Meaning("nas", "nt", "note"))
    assert closed.status == "quarantined" and "type" in closed.reason


def test_an_object_entry_is_not_read_as_a_plain_one() -> None:
    """Type 5 has flags and GUIDs before its SID: taken for type 0 it would name somebody else."""
    body = struct.pack("<II16s", GENERIC_READ, 1, b"\x01" * 16) + sid_bytes(OWNER)
    entry = struct.pack("<BBH", 5, 0, 4 + len(body)) + body
    read = parse_descriptor(descriptor_bytes(OWNER, [entry]))
    assert read.aces is not None and read.aces[0].kind is AceKind.UNKNOWN


GOOD = descriptor_bytes(OWNER, [ace_bytes(0, EVERYONE, GENERIC_READ)])
ACL_AT = struct.unpack_from("<I", GOOD, 16)[0]


def patched(at: int, form: str, *values: int) -> bytes:
    found = bytearray(GOOD)
    struct.pack_into(form, found, at, *values)
    return bytes(found)


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"", "nothing"),
        (GOOD[:19], "a head cut off"),
        (b"\x02" + GOOD[1:], "another revision"),
        (patched(2, "<H", 0x0004), "not self-relative"),
        (patched(4, "<I", 8), "an owner inside the head"),
        (patched(4, "<I", len(GOOD) - 4), "an owner cut off"),
        (patched(20, "B", 2), "a SID of another revision"),
        (patched(21, "B", 16), "a SID of sixteen parts"),
        (patched(21, "B", 0), "a SID without parts"),
        (patched(16, "<I", 12), "a list inside the head"),
        (patched(16, "<I", 0xFFFFFFF0), "a list far outside"),
        (patched(ACL_AT, "B", 3), "a list of another revision"),
        (patched(ACL_AT + 2, "<H", 7), "a list shorter than its head"),
        (patched(ACL_AT + 2, "<H", 0xFFFF), "a list longer than the bytes"),
        (patched(ACL_AT + 4, "<H", 2), "fewer entries than it says"),
        (patched(ACL_AT + 10, "<H", 0), "an entry without a size"),
        (patched(ACL_AT + 10, "<H", 6), "an entry of an odd size"),
        (patched(ACL_AT + 10, "<H", 400), "an entry longer than the list"),
        (patched(ACL_AT + 10, "<H", 8), "an entry without a SID"),
        (GOOD + b"\0" * LONGEST, "an over-long one"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_bytes_are_refused(raw: bytes, what: str) -> None:
    with pytest.raises(DescriptorError):
        parse_descriptor(raw)


def test_an_entry_that_says_more_than_its_type_may_is_refused() -> None:
    longer = struct.pack("<BBHI", 0, 0, 8 + 12 + 4, GENERIC_READ) + sid_bytes(EVERYONE) + b"\0" * 4
    with pytest.raises(DescriptorError, match="more than its type"):
        parse_descriptor(descriptor_bytes(OWNER, [longer]))


def test_a_callback_entry_longer_than_the_list_is_refused() -> None:
    entry = struct.pack("<BBHI", 9, 0, 400, GENERIC_READ) + sid_bytes(EVERYONE)
    with pytest.raises(DescriptorError, match="cut off"):
        parse_descriptor(descriptor_bytes(OWNER, [entry]))


def test_a_list_that_is_said_to_be_absent_is_not_read() -> None:
    absent = parse_descriptor(patched(2, "<H", 0x8000))
    assert absent.aces is None and why_quarantined(absent)


def over_granted(raw: bytes, people: list[Sid]) -> list[str]:
    """Whom our reading lets read, though the literal check over the same bytes does not."""
    try:
        read = parse_descriptor(raw)
    except DescriptorError:
        return []
    lists = compile_descriptor(read, Meaning("host", "nt", "note"), READ_DATA)
    wrong = []
    for person in people:
        allow = frozenset({person, EVERYONE})
        token = Token(person, "asker", allow, allow | uncertain_names(["S-1-22-1@host", "S-1-22-2@host"]))
        ours = readable(lists, token)
        assert ours == walk(read.qualified("host"), token, READ_DATA), raw.hex()
        if ours and not reference_allows(raw, {bare(sid) for sid in allow}, READ_DATA):
            wrong.append(str(person))
    return wrong


def fuzz(seed: int, rounds: int) -> int:
    """Mutate random descriptors; return how many were still read as descriptors."""
    dice = random.Random(seed)
    seeds = [to_bytes(unqualified(_random_descriptor(dice))) for _ in range(20)]
    read = 0
    for _ in range(rounds):
        raw = mutated(dice.choice(seeds), dice)
        started = time.monotonic()
        assert over_granted(raw, HERE) == [], raw.hex()
        assert time.monotonic() - started < 5, f"hangs: {raw.hex()}"
        try:
            parse_descriptor(raw)
            read += 1
        except DescriptorError:
            pass
    return read


def _random_descriptor(dice: random.Random) -> Descriptor:
    kinds = [*CODES, AceKind.ALLOW, AceKind.ALLOW, AceKind.DENY]
    masks = [0x1, 0x2, 0x120089, 0x1F01FF, 0x80000000, 0x10000000]
    made = tuple(
        Ace(dice.choice(kinds), dice.choice([*PEOPLE, EVERYONE]), dice.choice(masks), dice.random() < 0.2)
        for _ in range(dice.randint(0, 6))
    )
    return Descriptor(dice.choice(PEOPLE), made)


def test_mutated_bytes_never_crash_and_never_open_more() -> None:
    read = fuzz(20261129, 4_000)
    assert 200 < read < 3_900, "too few or too many accidents are survived to prove anything"


@given(st.binary(max_size=300))
def test_any_bytes_at_all(raw: bytes) -> None:
    assert over_granted(raw, HERE) == []


@pytest.mark.prove
@pytest.mark.timeout(1_200)
def test_ten_minutes_of_accidents() -> None:
    first = random.SystemRandom().randrange(10**6)
    minutes = float(os.environ.get("FUZZ_MINUTES", "10"))
    until, seed, read = time.monotonic() + minutes * 60, first, 0
    while time.monotonic() < until:
        read += fuzz(seed, 2_000)
        seed += 1
    rounds = (seed - first) * 2_000
    print(f"fuzz seeds {first} to {seed - 1}: {rounds} descriptors, {read} of them read")  # noqa: T201
