"""One situation per row: an NT list, who must read under it and who must not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from acl.compile import Entry, Meaning, compile_entries
from acl.evaluate import readable, walk
from acl.model import GENERIC_READ, READ_DATA, AccessList, Ace, AceKind, Descriptor
from acl.nt import compile_descriptor
from acl.sid import AUTHENTICATED, EVERYONE, NETWORK, OWNER_RIGHTS, Sid, uncertain_names
from acl.token import Token

DOMAIN = "S-1-5-21-1-2-3"
ALICE, BOB = Sid(f"{DOMAIN}-1001"), Sid(f"{DOMAIN}-1002")
STAFF, SALES = Sid(f"{DOMAIN}-2001"), Sid(f"{DOMAIN}-2002")
STRANGER = Sid("S-1-5-21-9-9-9-1001")
LOST = Sid("S-1-5-21-4-4-4-3000")
USERS_HERE, USERS_THERE = Sid("S-1-5-32-545@nas1"), Sid("S-1-5-32-545@nas2")
CREATOR_OWNER, INTERACTIVE = Sid("S-1-3-0"), Sid("S-1-5-4")
READ, WRITE, READ_EA, READ_CONTROL = 0x120089, 0x2, 0x8, 0x20000
CERTAIN = ["S-1-22-1@host", "S-1-22-2@host", "S-1-5-32@host"]


def asker(name: str, user: Sid, groups: Iterable[Sid] = (), named: bool = True) -> Token:
    allow = frozenset({user, EVERYONE, *groups} | ({AUTHENTICATED, NETWORK} if named else set()))
    return Token(user, name, allow, allow | uncertain_names(CERTAIN))


# alice and bob are in staff, carol in staff and sales; here/there are users of one NAS each.
ASKERS = {
    token.name: token
    for token in (
        asker("alice", ALICE, [STAFF]),
        asker("bob", BOB, [STAFF]),
        asker("carol", Sid(f"{DOMAIN}-1003"), [STAFF, SALES]),
        asker("stranger", STRANGER),
        asker("guest", Sid(f"{DOMAIN}-501"), named=False),
        asker("here", Sid("S-1-5-21-7-7-7-1"), [USERS_HERE]),
        asker("there", Sid("S-1-5-21-8-8-8-1"), [USERS_THERE]),
    )
}
EVERYBODY = frozenset(ASKERS)
NAMED = EVERYBODY - {"guest"}


def allow(sid: Sid, mask: int = READ, inherit_only: bool = False) -> Ace:
    return Ace(AceKind.ALLOW, sid, mask, inherit_only)


def deny(sid: Sid, mask: int = READ) -> Ace:
    return Ace(AceKind.DENY, sid, mask)


@dataclass(frozen=True)
class Case:
    """Everybody not among the readers must not read."""

    name: str
    aces: tuple[Ace, ...]
    readers: frozenset[str]
    owner: Sid = LOST
    bits: int = GENERIC_READ
    unresolvable: frozenset[Sid] = frozenset()


def row(name: str, aces: Iterable[Ace], readers: Iterable[str], **more: object) -> Case:
    return Case(name, tuple(aces), frozenset(readers), **more)  # type: ignore[arg-type]


CALLBACK = Ace(AceKind.CALLBACK_ALLOW, ALICE, READ), Ace(AceKind.CALLBACK_DENY, BOB, READ)
CASES = [
    row("allow group, but user denied first", [deny(BOB), allow(STAFF)], ["alice", "carol"]),
    row("allow of write only", [allow(STAFF, WRITE)], []),
    row("deny of write only and nothing else", [deny(STAFF, WRITE)], []),
    row("deny of write, then allow of read", [deny(STAFF, WRITE), allow(STAFF)], ["alice", "bob", "carol"]),
    row("explicit allow of the user before the inherited deny", [allow(ALICE), deny(STAFF)], ["alice"]),
    row("allow group, later deny user", [allow(STAFF), deny(BOB)], ["alice", "bob", "carol"]),
    row("deny group, then allow user", [deny(STAFF), allow(ALICE)], []),
    row("inherit-only Everyone", [allow(EVERYONE, READ, True), allow(ALICE)], ["alice"]),
    row("generic read", [allow(STAFF, 0x80000000)], ["alice", "bob", "carol"]),
    row("generic all", [allow(SALES, 0x10000000)], ["carol"]),
    row("generic write and execute do not read", [allow(STAFF, 0x60000000)], []),
    row("deny of READ_EA under generic_read", [deny(STAFF, READ_EA), allow(STAFF)], []),
    row(
        "deny of READ_EA under read_data",
        [deny(STAFF, READ_EA), allow(STAFF)],
        ["alice", "bob", "carol"],
        bits=READ_DATA,
    ),
    row("empty list, not even the owner", [], [], owner=ALICE),
    row("Authenticated Users are named users", [allow(AUTHENTICATED)], NAMED),
    row("NETWORK is certain", [allow(NETWORK)], NAMED),
    row("INTERACTIVE is not", [allow(INTERACTIVE)], []),
    row("a deny of INTERACTIVE may hit anybody", [deny(INTERACTIVE), allow(EVERYONE)], []),
    row("a deny of an unknown authentication package too", [deny(Sid("S-1-5-64-99")), allow(EVERYONE)], []),
    row("built-in users of the server itself", [allow(USERS_HERE)], ["here"]),
    row("a deny of built-in users nobody can rule out", [deny(USERS_HERE), allow(EVERYONE)], []),
    row("OWNER RIGHTS grants the owner", [allow(OWNER_RIGHTS)], ["alice"], owner=ALICE),
    row("OWNER RIGHTS denies the owner", [deny(OWNER_RIGHTS), allow(STAFF)], ["bob", "carol"], owner=ALICE),
    row("OWNER RIGHTS follows the owner", [allow(OWNER_RIGHTS)], ["bob"], owner=BOB),
    row("CREATOR OWNER, not inherit-only", [allow(CREATOR_OWNER)], [], owner=ALICE),
    row("CREATOR OWNER denied", [deny(CREATOR_OWNER), allow(ALICE)], ["alice"], owner=ALICE),
    row("owner without an entry", [allow(SALES)], ["carol"], owner=ALICE),
    row("owner without an entry may read the permissions", [], ["alice"], owner=ALICE, bits=READ_CONTROL),
    row(
        "READ_CONTROL comes with ownership",
        [allow(ALICE, READ & ~READ_CONTROL), allow(BOB, READ & ~READ_CONTROL)],
        ["alice"],
        owner=ALICE,
    ),
    row(
        "unless OWNER RIGHTS says less",
        [allow(ALICE, READ & ~READ_CONTROL), allow(OWNER_RIGHTS, WRITE)],
        [],
        owner=ALICE,
    ),
    row("deny of READ_DATA alone", [deny(BOB, READ_DATA), allow(STAFF)], ["alice", "carol"]),
    row("orphan SID: allow inert", [allow(LOST), allow(ALICE)], ["alice"]),
    row("deny of a group nobody can list", [deny(LOST), allow(STAFF)], [], unresolvable=frozenset({LOST})),
    row("the same deny, members known", [deny(LOST), allow(STAFF)], ["alice", "bob", "carol"]),
    row(
        "what was granted before that deny stays",
        [allow(ALICE), deny(LOST), allow(STAFF)],
        ["alice"],
        unresolvable=frozenset({LOST}),
    ),
    row("same RID in two domains", [allow(ALICE)], ["alice"]),
    row("same RID in the other domain", [allow(STRANGER)], ["stranger"]),
    row("callback allow ignored, callback deny counts", [*CALLBACK, allow(SALES), allow(BOB)], ["carol"]),
    row("rights from several entries", [allow(STAFF, READ_DATA), allow(SALES, READ & ~READ_DATA)], ["carol"]),
    row(
        "a thousand entries",
        [*(deny(Sid(f"{DOMAIN}-{number}")) for number in range(5_000, 6_000)), allow(STAFF)],
        ["alice", "bob", "carol"],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_who_reads_and_who_does_not(case: Case) -> None:
    descriptor = Descriptor(case.owner, case.aces).qualified("nas1")
    lists = compile_descriptor(descriptor, Meaning("nas1", "nt", "note"), case.bits)
    walked = {name for name, token in ASKERS.items() if walk(descriptor, token, case.bits, case.unresolvable)}
    decided = {name for name, token in ASKERS.items() if readable(lists, token, case.unresolvable)}
    assert walked == decided == case.readers


def test_a_token_of_two_thousand_groups_meets_its_one_entry() -> None:
    groups = [Sid(f"{DOMAIN}-{number}") for number in range(10_000, 12_000)]
    token = asker("member", Sid(f"{DOMAIN}-7"), groups)
    meaning = Meaning("nas1", "nt", "note")
    assert readable(compile_descriptor(Descriptor(LOST, (allow(groups[-1]),)), meaning), token)
    last_denied = Descriptor(LOST, (deny(groups[-1]), allow(groups[0])))
    assert not readable(compile_descriptor(last_denied, meaning), token)


def test_built_in_groups_are_those_of_the_server_the_list_came_from() -> None:
    descriptor = Descriptor(LOST, (allow(Sid("S-1-5-32-545")),))
    for server, reader in (("nas1", "here"), ("nas2", "there")):
        lists = compile_descriptor(descriptor, Meaning(server, "nt", "note"))
        assert {name for name, token in ASKERS.items() if readable(lists, token)} == {reader}


def test_a_possible_member_is_not_denied_by_a_group_that_already_granted() -> None:
    """Whoever is in staff got in by the first entry, whoever is not is not denied by the second."""
    possibly_staff = ASKERS["stranger"]
    possibly_staff = Token(possibly_staff.user, "x", possibly_staff.allow, possibly_staff.deny | {STAFF})
    granted_first = Descriptor(LOST, (allow(STAFF), deny(STAFF), allow(EVERYONE)))
    denied_first = Descriptor(LOST, (deny(STAFF), allow(STAFF), allow(EVERYONE)))
    for descriptor, reads in ((granted_first, True), (denied_first, False)):
        lists = compile_descriptor(descriptor, Meaning("nas1", "nt", "note"))
        assert readable(lists, possibly_staff) is walk(descriptor, possibly_staff, GENERIC_READ) is reads


def layer(*entries: Entry) -> AccessList:
    return compile_entries(entries, Meaning("host", "nfs4", "note"), 1, raw=repr(entries).encode())


def test_share_and_note_must_both_let_pass() -> None:
    share = layer(Entry("allow", SALES, ""))
    note = layer(Entry("allow", STAFF, ""))
    assert {name for name, token in ASKERS.items() if readable((share, note), token)} == {"carol"}
    by_two_ways = (
        layer(Entry("allow", STAFF, "")),
        layer(Entry("allow", ALICE, ""), Entry("allow", SALES, "")),
    )
    assert {name for name, token in ASKERS.items() if readable(by_two_ways, token)} == {"alice", "carol"}


def test_nfs4_order_first_decision_counts() -> None:
    listed = layer(Entry("allow", ALICE, ""), Entry("deny", EVERYONE, "EVERYONE@"), Entry("allow", STAFF, ""))
    assert {name for name, token in ASKERS.items() if readable((listed,), token)} == {"alice"}


def test_order_and_owner_are_part_of_the_meaning() -> None:
    meaning = Meaning("nas1", "nt", "note")
    entries = (allow(STAFF), deny(BOB))
    forth = compile_descriptor(Descriptor(LOST, entries, b"forth"), meaning)
    back = compile_descriptor(Descriptor(LOST, entries[::-1], b"back"), meaning)
    assert readable(forth, ASKERS["bob"])
    assert not readable(back, ASKERS["bob"])
    assert {item.key for item in forth}.isdisjoint(item.key for item in back)
    for_owner = (allow(OWNER_RIGHTS),)
    before = compile_descriptor(Descriptor(ALICE, for_owner, b"same"), meaning)
    after = compile_descriptor(Descriptor(BOB, for_owner, b"same"), meaning)
    assert {item.key for item in before}.isdisjoint(item.key for item in after)
    assert readable(after, ASKERS["bob"])
    assert not readable(after, ASKERS["alice"])
