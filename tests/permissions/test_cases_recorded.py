"""Situations that no throw-away Samba produces: descriptors and attributes as bytes, written here.

Each row says who must read; everybody else of the cast must not.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.samba import ace_bytes, descriptor_bytes, sid_bytes

from acl.compile import Meaning
from acl.directories.file import FileDirectory
from acl.evaluate import passes, readable
from acl.model import READ_DATA, AccessList
from acl.nfs4 import READ_DATA as NFS_READ
from acl.nfs4 import Nfs4State, compile_nfs4
from acl.sid import EVERYONE, HOST, Sid, uncertain_names
from acl.sources.layers import DescriptorLayers
from acl.token import Token, build_token
from notewarden.errors import AskerUnknown
from notewarden.settings_sections import ShareAclSettings

READ = 0x120089
DOMAIN, OTHER = "S-1-5-21-3001-3002-3003", "S-1-5-21-9-9-9"
BUILTIN, AUTHENTICATED, GUEST = "S-1-5-32-545", "S-1-5-11", f"{DOMAIN}-501"

PEOPLE = f"""
[users.alice]
sid = "{DOMAIN}-1001"
groups = ["staff", "nas1-users", "wheel-here"]
sids = ["S-1-22-1-1001@nas1"]
[users.bob]
sid = "{DOMAIN}-1002"
groups = ["staff", "nas2-users", "wheel-nas1"]
[users.zoe]
sid = "{OTHER}-1001"
groups = ["wheel-nas2"]
[groups.staff]
sid = "{DOMAIN}-2001"
[groups.nas1-users]
sid = "{BUILTIN}@nas1"
[groups.nas2-users]
sid = "{BUILTIN}@nas2"
[groups.wheel-here]
sid = "S-1-22-2-998"
[groups.wheel-nas1]
sid = "S-1-22-2-998@nas1"
[groups.wheel-nas2]
sid = "S-1-22-2-998@nas2"
"""
ALICE, BOB, ZOE, STAFF = f"{DOMAIN}-1001", f"{DOMAIN}-1002", f"{OTHER}-1001", f"{DOMAIN}-2001"
CAST = frozenset({"alice", "bob", "zoe"})


@pytest.fixture
def directory(tmp_path: Path) -> FileDirectory:
    return people_in(tmp_path, PEOPLE)


def people_in(folder: Path, text: str) -> FileDirectory:
    file = folder / "people.toml"
    file.write_text(text)
    file.chmod(0o600)
    return FileDirectory(file)


def layers(server: str = "nas1", **acl: Any) -> DescriptorLayers:
    told = {"source": "smb", "model": "nt", "guards": "bypass", "server": server, **acl}
    return DescriptorLayers(ShareAclSettings(**told), server, lambda sid: None)


def who_passes(directory: FileDirectory, lists: Sequence[AccessList]) -> frozenset[str]:
    """Who of the cast reads under these lists, denies that nobody can resolve counted."""
    denied = {sid for one in lists for clause in one.clauses for sid in clause.deny}
    lost = frozenset(sid for sid in denied if not sid.startswith("?") and not directory.enumerable(sid))
    return frozenset(
        name for name in CAST if readable(lists, build_token(directory, directory.user(name)), lost)
    )


@dataclass(frozen=True)
class Row:
    """One descriptor of one server under some settings."""

    number: int
    name: str
    aces: tuple[bytes, ...] | None
    readers: frozenset[str]
    server: str = "nas1"
    acl: dict[str, Any] = field(default_factory=dict)


def row(number: int, name: str, aces: Sequence[bytes] | None, *readers: str, **more: Any) -> Row:
    told = None if aces is None else tuple(aces)
    return Row(number, name, told, frozenset(readers), more.pop("server", "nas1"), more)


def allow(sid: str, mask: int = READ) -> bytes:
    return ace_bytes(0, sid, mask)


def deny(sid: str, mask: int = READ) -> bytes:
    return ace_bytes(1, sid, mask)


OBJECT = struct.pack("<BBHII16s", 5, 0, 28 + len(sid_bytes(ALICE)), READ, 1, bytes(16)) + sid_bytes(ALICE)
MANY = [deny(f"{OTHER}-{number}") for number in range(5_000, 5_999)]
ROWS = [
    row(9, "generic read", [allow(STAFF, 0x80000000)], "alice", "bob"),
    row(9, "generic all", [allow(ALICE, 0x10000000)], "alice"),
    row(9, "generic write and execute", [allow(EVERYONE, 0x60000000)]),
    row(9, "generic read denied", [deny(BOB, 0x80000000), allow(EVERYONE)], "alice", "zoe"),
    row(10, "deny READ_EA, generic_read", [deny(STAFF, 0x8), allow(EVERYONE)], "zoe"),
    row(10, "deny READ_EA, read_data", [deny(STAFF, 0x8), allow(EVERYONE)], *CAST, read_mask="read_data"),
    row(11, "empty list", []),
    row(12, "no list, quarantined", None),
    row(12, "no list, everyone as configured", None, *CAST, null_dacl="everyone"),
    row(12, "empty list, though no list were everyone", [], null_dacl="everyone"),
    row(15, "built-in users of nas1", [allow(BUILTIN)], "alice", server="nas1"),
    row(15, "built-in users of nas2", [allow(BUILTIN)], "bob", server="nas2"),
    row(15, "built-in users of a server nobody knows", [allow(BUILTIN)], server="nas3"),
    row(15, "built-in users denied: who is in them nobody can tell", [deny(BUILTIN), allow(EVERYONE)]),
    row(20, "a lost group denied", [deny(f"{OTHER}-7777"), allow(EVERYONE)]),
    row(20, "a lost group allowed", [allow(f"{OTHER}-7777"), allow(BOB)], "bob"),
    row(22, "the same number in two domains", [allow(ALICE)], "alice"),
    row(22, "and the other one", [allow(ZOE)], "zoe"),
    row(23, "wheel of nas1", [allow("S-1-22-2-998")], "bob", server="nas1"),
    row(23, "wheel of nas2", [allow("S-1-22-2-998")], "zoe", server="nas2"),
    row(53, "gid 998 of this host, declared the same", [allow("S-1-22-2-998")], "alice", same_ids=True),
    row(53, "gid 998 of a third server", [allow("S-1-22-2-998")], server="nas3"),
    row(53, "uid 1001 of nas1 and of nas2", [allow("S-1-22-1-1001")], "alice", server="nas1"),
    row(53, "uid 1001 of nas2", [allow("S-1-22-1-1001")], server="nas2"),
    row(44, "the thousandth entry allows", [*MANY, allow(ALICE)]),
    row(44, "the first of a thousand allows", [allow(ALICE), *MANY, allow(BOB)], "alice"),
    row(0, "an object entry", [OBJECT, allow(BOB)]),
    row(0, "an entry of type 2", [ace_bytes(2, BOB, READ), allow(BOB)]),
    row(0, "a callback allow is nobody's", [ace_bytes(9, ALICE, READ), allow(BOB)], "bob"),
    row(0, "a callback deny denies", [ace_bytes(10, ALICE, READ), allow(STAFF)], "bob"),
    row(0, "allows nothing: a unix mode, not an NT list", [allow(ALICE, 0), allow(EVERYONE)], "bob", "zoe"),
]


@pytest.mark.parametrize("one", ROWS, ids=lambda one: f"{one.number} {one.name}")
def test_descriptors_as_servers_send_them(one: Row, directory: FileDirectory) -> None:
    raw = descriptor_bytes(f"{DOMAIN}-500", None if one.aces is None else list(one.aces))
    acl = dict(one.acl)
    assert who_passes(directory, layers(one.server, **acl).note(raw, None)) == one.readers


def test_44_the_last_of_a_thousand_entries_decides_who_no_other_did(tmp_path: Path) -> None:
    """Where the denied ones are known to be others, the last entry is reached."""
    others = "\n".join(f'[groups.g{number}]\nsid = "{OTHER}-{number}"' for number in range(5_000, 5_999))
    directory = people_in(tmp_path, PEOPLE + others)
    raw = descriptor_bytes(f"{DOMAIN}-500", [*MANY, allow(ALICE)])
    assert who_passes(directory, layers().note(raw, None)) == {"alice"}


def test_44_a_token_of_two_thousand_groups(tmp_path: Path) -> None:
    groups = [f"g{number}" for number in range(2_000)]
    lines = [f'[groups.{name}]\nsid = "{OTHER}-{6_000 + number}"' for number, name in enumerate(groups)]
    text = PEOPLE.replace('groups = ["wheel-nas2"]', f"groups = {groups}".replace("'", '"'))
    directory = people_in(tmp_path, text + "\n".join(lines))
    last = descriptor_bytes(f"{DOMAIN}-500", [allow(f"{OTHER}-7999")])
    assert who_passes(directory, layers().note(last, None)) == {"zoe"}
    shut = descriptor_bytes(f"{DOMAIN}-500", [deny(f"{OTHER}-7999"), allow(EVERYONE)])
    assert who_passes(directory, layers().note(shut, None)) == {"alice", "bob"}


def test_13_a_guest_is_no_authenticated_user() -> None:
    lists = layers().note(descriptor_bytes(f"{DOMAIN}-500", [allow(AUTHENTICATED)]), None)
    sids = frozenset({Sid(GUEST), EVERYONE})
    assert not readable(lists, Token(Sid(GUEST), "guest", sids, sids | uncertain_names([])))


def test_24_renamed_is_the_same_person_and_made_anew_is_another(tmp_path: Path) -> None:
    lists = layers().note(descriptor_bytes(f"{DOMAIN}-500", [allow(ALICE)]), None)
    renamed = people_in(tmp_path, PEOPLE.replace("[users.alice]", "[users.alicia]"))
    assert readable(lists, build_token(renamed, renamed.user("alicia")))
    anew = people_in(tmp_path, PEOPLE.replace(f'"{ALICE}"', f'"{DOMAIN}-1777"'))
    assert not readable(lists, build_token(anew, anew.user("alice")))


@pytest.mark.parametrize("token", [None])
def test_43_no_token_is_nobody(token: None) -> None:
    lists = layers().note(descriptor_bytes(f"{DOMAIN}-500", [allow(EVERYONE)]), None)
    with pytest.raises(AskerUnknown):
        readable(lists, token)


def test_43_an_empty_token_cannot_be_made() -> None:
    with pytest.raises(AskerUnknown):
        Token(Sid(ALICE), "alice", frozenset(), frozenset())


def test_55_the_same_bytes_as_note_and_as_parent_are_two_lists(directory: FileDirectory) -> None:
    """Pass-through without reading: as a folder it lets everybody on, as a note nobody."""
    raw = descriptor_bytes(f"{DOMAIN}-500", [allow(EVERYONE, 0x1200A0)])
    both = layers(guards="nt_traverse")
    (note, *_), (parent, *_) = both.note(raw, None), both.parent(raw, None)
    assert note.raw == parent.raw and note.key != parent.key
    assert who_passes(directory, [parent]) == CAST
    assert who_passes(directory, both.note(raw, None)) == frozenset()


def test_35_the_same_entries_in_another_order_are_another_list(directory: FileDirectory) -> None:
    first, second = [deny(BOB), allow(STAFF)], [allow(STAFF), deny(BOB)]
    one, two = (layers().note(descriptor_bytes(f"{DOMAIN}-500", aces), None) for aces in (first, second))
    assert {a.key for a in one}.isdisjoint(b.key for b in two)
    assert (who_passes(directory, one), who_passes(directory, two)) == ({"alice"}, {"alice", "bob"})


def nfs4(*aces: tuple[int, int, int, str]) -> bytes:
    """system.nfs4_acl: entries of (type, flags, mask, who)."""
    raw = struct.pack(">I", len(aces))
    for kind, flags, mask, who in aces:
        name = who.encode()
        raw += struct.pack(">IIII", kind, flags, mask, len(name)) + name + b"\0" * (-len(name) % 4)
    return raw


GROUP, INHERIT_ONLY = 0x40, 0x08
NFS_ROWS: list[tuple[str, bytes, set[str]]] = [
    ("33 allow alice, then deny EVERYONE@", nfs4((0, 0, 1, "alice@corp"), (1, 0, 1, "EVERYONE@")), {"alice"}),
    ("deny EVERYONE@ first", nfs4((1, 0, 1, "EVERYONE@"), (0, 0, 1, "alice@corp")), set()),
    ("a group", nfs4((0, GROUP, 1, "staff@corp")), {"alice", "bob"}),
    ("a user of a group's name is nobody", nfs4((0, 0, 1, "staff@corp")), set()),
    ("allow of another right", nfs4((0, 0, 0x20, "EVERYONE@")), set()),
    ("deny of another right", nfs4((1, 0, 0x2, "EVERYONE@"), (0, 0, 1, "EVERYONE@")), set(CAST)),
    ("OWNER@", nfs4((0, 0, 1, "OWNER@")), {"alice"}),
    ("GROUP@", nfs4((0, 0, 1, "GROUP@")), {"bob"}),
    ("for children only", nfs4((0, INHERIT_ONLY, 1, "EVERYONE@")), set()),
    ("a number", nfs4((0, 0, 1, "1001")), {"alice"}),
    ("an unknown name allowed", nfs4((0, 0, 1, "ghost@corp"), (0, 0, 1, "bob@corp")), {"bob"}),
    ("an unknown name denied may be anybody", nfs4((1, 0, 1, "ghost@corp"), (0, 0, 1, "EVERYONE@")), set()),
    ("another special name", nfs4((0, 0, 1, "NETWORK@")), set()),
    ("an audit entry", nfs4((2, 0, 1, "alice@corp"), (0, 0, 1, "EVERYONE@")), set()),
    ("no entry", nfs4(), set()),
    ("nothing at all", b"", set()),
    ("cut off", nfs4((0, 0, 1, "EVERYONE@"))[:-4], set()),
    ("more entries than there are", b"\xff\xff\xff\xff" + nfs4((0, 0, 1, "EVERYONE@"))[4:], set()),
    ("bytes behind the last", nfs4((0, 0, 1, "EVERYONE@")) + b"\0" * 4, set()),
    ("a NUL in a name, as no database takes it", nfs4((0, 0, 1, "a\0b"), (0, 0, 1, "EVERYONE@")), set()),
    ("a name that is no text", nfs4((0, 0, 1, "ab")).replace(b"ab", b"\xff\xfe"), set()),
]


@pytest.mark.parametrize(("name", "raw", "readers"), NFS_ROWS, ids=[name for name, *_ in NFS_ROWS])
def test_nfs4_attributes(name: str, raw: bytes, readers: set[str], directory: FileDirectory) -> None:
    names = {"alice@corp": ALICE, "bob@corp": BOB, "staff@corp": STAFF}
    kinds = {"alice@corp": "user", "bob@corp": "user", "staff@corp": "group"}

    def who(told: str, kind: str) -> Sid | None:
        return Sid(names[told]) if kinds.get(told) == kind else None

    one = compile_nfs4(Nfs4State(1001, 998, raw), NFS_READ, Meaning("nas1", "nfs4", "note"), who)
    assert who_passes(directory, [one]) == readers


def test_an_owner_whom_the_mount_cannot_name_is_nobody(directory: FileDirectory) -> None:
    meaning = Meaning(HOST, "nfs4", "note")
    state = Nfs4State(65_534, 65_534, nfs4((0, 0, 1, "OWNER@"), (0, 0, 1, "GROUP@")))
    assert who_passes(directory, [compile_nfs4(state, NFS_READ, meaning, lambda name, kind: None)]) == set()
    denied = Nfs4State(65_534, 65_534, nfs4((1, 0, 1, "OWNER@"), (0, 0, 1, "EVERYONE@")))
    assert who_passes(directory, [compile_nfs4(denied, NFS_READ, meaning, lambda name, kind: None)]) == set()


def test_passes_and_readable_agree(directory: FileDirectory) -> None:
    (one, *_) = layers(read_mask="read_data").note(descriptor_bytes(ALICE, [allow(ALICE, READ_DATA)]), None)
    assert passes(one, build_token(directory, directory.user("alice")))
