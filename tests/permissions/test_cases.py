"""Situations as rows, each with who must read and (all others) who must not.

Where a Samba can produce one, a real share serves it: `ask search` must show it to exactly those people, and
the server must open it for them too. The rest are descriptors and attributes as other servers send them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.posix_acls import GROUP, GROUP_OBJ, MASK, NO_ID, OTHER, OWNER, USER, acl_bytes
from support.samba import ACL_XATTR, PLAIN, Samba, ace_bytes, descriptor_bytes, store_descriptor
from support.smb_house import CAST, EVERYBODY, GIDS, READ, STAFF, SmbHouse, command, searched

from acl.posix import XATTR

NOBODY: frozenset[str] = frozenset()
WRITE, READ_EA, READ_DATA = 0x2, 0x8, 0x1
EVERYONE, USERS, NETWORK, INTERACTIVE = "S-1-1-0", "S-1-5-11", "S-1-5-2", "S-1-5-4"
BUILTIN_USERS, OWNER_RIGHTS, CREATOR_OWNER = "S-1-5-32-545", "S-1-3-4", "S-1-3-0"
ORPHAN, SAME_RID = "S-1-5-21-9-9-9-4444", "S-1-5-21-9-9-9-1001"
INHERITED, INHERIT_ONLY = 0x10, 0x0B

Ace = tuple[int, str, int, int]


def allow(who: str, mask: int = READ, flags: int = 0) -> Ace:
    return 0, who, mask, flags


def deny(who: str, mask: int = READ, flags: int = 0) -> Ace:
    return 1, who, mask, flags


@dataclass(frozen=True)
class Row:
    """One note of one share. `differs`: the server shows more people, and the reason why we do not."""

    number: int
    name: str
    readers: frozenset[str]
    aces: tuple[Ace, ...] | None = ()
    owner: str = "svc"
    differs: str = ""
    share: str = "nt"

    @property
    def path(self) -> str:
        return f"{self.number:02}-{self.name.replace(' ', '-').replace(',', '')}.md"


def row(number: int, name: str, aces: list[Ace] | None, *readers: str, **more: Any) -> Row:
    return Row(number, name, frozenset(readers), None if aces is None else tuple(aces), **more)


NT = [
    row(1, "allow group, deny user first", [deny("bob"), allow("staff")], "alice", "carol"),
    row(2, "allow of write only", [allow("staff", WRITE)]),
    row(3, "deny of write only", [deny("staff", WRITE)]),
    row(4, "deny of write, allow of read", [deny("staff", WRITE), allow("staff")], *STAFF),
    row(5, "explicit allow, inherited deny", [allow("alice"), deny("staff", READ, INHERITED)], "alice"),
    row(6, "allow group, later deny user", [allow("staff"), deny("bob")], *STAFF),
    row(7, "deny group then allow user", [deny("staff"), allow("alice")]),
    row(8, "inherit-only Everyone", [allow(EVERYONE, READ, INHERIT_ONLY), allow("alice")], "alice"),
    row(10, "deny of READ_EA only", [deny("staff", READ_EA), allow(EVERYONE)], "dave"),
    row(11, "empty list", [], owner="alice"),
    row(12, "no list", None, differs="a server may read it as it likes"),
    row(13, "Authenticated Users", [allow(USERS)], *EVERYBODY),
    row(14, "NETWORK", [allow(NETWORK)], *EVERYBODY),
    row(14, "INTERACTIVE", [allow(INTERACTIVE)]),
    row(15, "built-in users", [allow(BUILTIN_USERS)], differs="who is in them only the server knows"),
    row(16, "OWNER RIGHTS", [allow(OWNER_RIGHTS)], "alice", owner="alice"),
    row(16, "OWNER RIGHTS denied", [deny(OWNER_RIGHTS), allow("staff")], "bob", "carol", owner="alice"),
    row(17, "CREATOR OWNER", [allow(CREATOR_OWNER)], owner="alice"),
    row(18, "owner without entry", [allow("sales")], "carol", owner="alice"),
    row(19, "deny of READ_DATA alone", [deny("alice", READ_DATA), allow("staff")], "bob", "carol"),
    row(20, "deny of a lost group", [deny(ORPHAN), allow(EVERYONE)], differs="it may have been anybody's"),
    row(20, "allow of a lost group", [allow(ORPHAN), allow("alice")], "alice"),
    row(22, "same number, other domain", [allow(SAME_RID), allow("bob")], "bob"),
]
GATED = [
    row(25, "note for staff, share for alice and dave", [allow("staff")], "alice", share="gated"),
    row(25, "note for all", [allow(EVERYONE)], "alice", "dave", share="gated"),
    row(25, "note for bob alone", [allow("bob")], share="gated"),
    row(26, "note for all, valid users alice", [allow(EVERYONE)], "alice", share="valid"),
    row(26, "note for all, descriptor and valid users", [allow(EVERYONE)], "alice", share="both"),
    row(26, "note for bob, valid users alice", [allow("bob")], share="valid"),
]


@dataclass(frozen=True)
class Mode:
    """One note of the plain share: its owner, group, mode and named entries."""

    number: int
    name: str
    readers: frozenset[str]
    mode: int
    owner: str = "svc"
    users: tuple[tuple[str, int], ...] = ()
    groups: tuple[tuple[str, int], ...] = ()
    mask: int = 7

    @property
    def path(self) -> str:
        return f"{self.number:02}-{self.name.replace(' ', '-')}.md"


MODES = [
    Mode(28, "named user without", frozenset({"alice", "carol", "dave"}), 0o604, users=(("bob", 0),)),
    Mode(29, "owner without", frozenset({"bob", "carol", "dave"}), 0o044, "alice"),
    Mode(30, "owning group without", frozenset({"dave"}), 0o604),
    Mode(31, "mask closes a named user", NOBODY, 0o600, users=(("bob", 4),), mask=0),
    Mode(32, "one group grants", STAFF, 0o600, groups=(("staff", 4), ("sales", 0))),
    Mode(32, "one group grants less", frozenset({"carol"}), 0o600, groups=(("sales", 4), ("everyday", 0))),
]


def fill(house: SmbHouse) -> None:
    """Three NT shares, and a plain one that is configured twice: with its folders' modes, and without."""
    nt = {"model": "nt", "guards": "bypass"}
    house.add("nt", ACL_XATTR, **nt)
    house.add("gated", ACL_XATTR, **nt)
    house.add("valid", {**ACL_XATTR, "valid users": "alice"}, share_readers=["user:alice"], **nt)
    house.add(
        "both", {**ACL_XATTR, "valid users": "alice bob"}, share_readers=["user:alice", "user:bob"], **nt
    )
    for gated in ("gated", "both"):
        readers = f"(A;;0x1200a9;;;{house.sid('alice')})(A;;0x1f01ff;;;{house.sid('dave')})"
        house.server.sharesec(gated, f"O:BAG:SYD:{readers}")
    for one in [*NT, *GATED]:
        note(house, one)
    root = house.add("unix", PLAIN, model="posix", guards="posix_x", posix_path=house.exports / "unix")
    house.add("unix-open", PLAIN, folder="unix", model="posix", guards="bypass", posix_path=root)
    for mode in MODES:
        moded(house, root, mode)
    shut = root / "shut"
    shut.mkdir()
    moded(house, shut, Mode(27, "in a closed folder", EVERYBODY, 0o644, "alice"))
    os.chown(shut, house.uid("alice"), 0)
    shut.chmod(0o700)


def note(house: SmbHouse, one: Row) -> None:
    path = house.shares[one.share]["path"] / one.path
    path.write_text(f"# Case {one.number}\n\nThe walrus sits on {one.name}.\n")
    path.chmod(0o666)
    told = None if one.aces is None else [ace_bytes(k, house.sid(w), m, f) for k, w, m, f in one.aces]
    store_descriptor(path, descriptor_bytes(house.sid(one.owner), told))


def moded(house: SmbHouse, folder: Path, one: Mode) -> None:
    path = folder / one.path
    path.write_text(f"# Case {one.number}\n\nThe walrus sits on {one.name}.\n")
    os.chown(path, house.uid(one.owner), GIDS["staff"])
    path.chmod(one.mode)
    if one.users or one.groups:
        gids = {**GIDS, "everyday": 72000}
        entries = [
            (OWNER, one.mode >> 6 & 7, NO_ID),
            *((USER, bits, house.uid(name)) for name, bits in one.users),
            (GROUP_OBJ, 4 if one.users and one.mask else 0, NO_ID),
            *((GROUP, bits, gids[name]) for name, bits in sorted(one.groups, key=lambda item: gids[item[0]])),
            (MASK, one.mask, NO_ID),
            (OTHER, one.mode & 7, NO_ID),
        ]
        os.setxattr(path, XATTR, acl_bytes(entries))


@dataclass(frozen=True)
class Seen:
    """What `ask search` shows, and what the server opens, by person: (share, path)."""

    shown: dict[str, set[tuple[str, str]]]
    opened: dict[str, set[tuple[str, str]]]

    def who(self, share: str, path: str) -> frozenset[str]:
        return frozenset(name for name, found in self.shown.items() if (share, path) in found)

    def truly(self, share: str, path: str) -> frozenset[str]:
        return frozenset(name for name, found in self.opened.items() if (share, path) in found)


@pytest.fixture(scope="module")
def seen(start_samba: Callable[..., Samba], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("cases")
    house = SmbHouse(start_samba(CAST, GIDS, admin_users="svc"), folder)
    fill(house)
    config = house.write_config()
    command("notewarden", config, "sync", good=(0, 6))
    shown = {name: searched(config, "walrus", name) for name in sorted(EVERYBODY)}
    opened: dict[str, set[tuple[str, str]]] = {name: set() for name in EVERYBODY}
    for share in house.shares:
        for name, paths in house.truth(share).items():
            opened[name] |= {(share, path) for path in paths}
    yield Seen(shown, opened)
    house.remove()


@pytest.mark.parametrize("one", [*NT, *GATED], ids=lambda one: f"{one.number} {one.name}")
def test_nt_lists_on_a_real_share(one: Row, seen: Seen) -> None:
    assert seen.who(one.share, one.path) == one.readers
    if one.differs:
        assert one.readers <= seen.truly(one.share, one.path), one.differs
    else:
        assert seen.truly(one.share, one.path) == one.readers, "the row itself is wrong"


@pytest.mark.parametrize("one", MODES, ids=lambda one: f"{one.number} {one.name}")
def test_modes_on_a_real_share(one: Mode, seen: Seen) -> None:
    assert seen.who("unix", one.path) == one.readers
    assert seen.truly("unix", one.path) == one.readers, "the row itself is wrong"


def test_27_a_closed_folder_counts_where_the_server_says_so(seen: Seen) -> None:
    path = "shut/27-in-a-closed-folder.md"
    assert seen.who("unix", path) == seen.truly("unix", path) == {"alice"}
    assert seen.who("unix-open", path) == EVERYBODY
