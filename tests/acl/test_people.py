"""people.toml: who is in what, every SID, and that a bad file answers nobody."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from acl.directories.file import FileDirectory
from acl.directories.people import derived_sid, parse_people
from acl.directory import resolve_name
from acl.sid import EVERYONE, Sid
from acl.token import build_token
from notewarden.errors import AskerUnknown, ConfigError, DirectoryUnreachable

PEOPLE = """
[users.alice]
groups = ["it"]

[users.bob]
groups = ["sales", "loop-a"]
sid = "S-1-5-21-1-2-3-1002"
sids = ["S-1-22-1-5001"]

[users.carol]

[users."dora maar"]
groups = ["all staff"]

[groups.it]
groups = ["helpdesk"]

[groups.helpdesk]
groups = ["staff"]
sids = ["S-1-22-2-998"]

[groups.loop-a]
groups = ["loop-b"]
[groups.loop-b]
groups = ["loop-a", "staff"]
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture
def people(tmp_path: Path) -> Callable[[str], FileDirectory]:
    return lambda text: FileDirectory(write(tmp_path / "people.toml", text))


@pytest.fixture
def directory(people: Callable[[str], FileDirectory]) -> FileDirectory:
    return people(PEOPLE)


GROUPS = ["it", "helpdesk", "staff", "sales", "loop-a", "loop-b", "all staff"]


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("alice", {"it", "helpdesk", "staff"}),
        ("bob", {"sales", "loop-a", "loop-b", "staff"}),
        ("carol", set()),
        ("dora maar", {"all staff"}),
    ],
)
def test_members_of_inner_groups_are_members_of_outer_ones(
    directory: FileDirectory, user: str, groups: set[str]
) -> None:
    token = build_token(directory, directory.user(user))
    assert {name for name in GROUPS if directory.resolve(f"group:{name}") in token.allow} == groups


def test_the_way_to_a_group_is_told_nearest_first(directory: FileDirectory) -> None:
    token = build_token(directory, directory.user("alice"))
    it, helpdesk, staff = (directory.resolve(name) for name in ("it", "helpdesk", "staff"))
    assert token.through[it] == ()
    assert token.through[staff] == (it, helpdesk)
    assert token.through[Sid("S-1-22-2-998@host")] == (it,)


def test_users_are_found_by_name_and_by_every_sid(directory: FileDirectory) -> None:
    bob = directory.user("bob")
    assert bob.sid == "S-1-5-21-1-2-3-1002"
    for known in (bob.sid, "S-1-22-1-5001", "S-1-22-1-5001@host"):
        assert directory.user(known) == bob
    assert directory.user_by_uid(5001) == bob
    assert directory.name_of(bob.sid) == directory.name_of(Sid("S-1-22-1-5001@host")) == "bob"
    assert directory.name_of(EVERYONE) is None


@pytest.mark.parametrize(
    "nobody", ["mallory", "it", "group:it", "", "S-1-5-21-1-2-3-9", "S-1-22-2-998", "everyone"]
)
def test_nobody_else_is_a_user(directory: FileDirectory, nobody: str) -> None:
    with pytest.raises(AskerUnknown):
        directory.user(nobody)


@pytest.mark.parametrize("uid", [0, 1000, 998, 65_534])
def test_a_uid_is_somebody_only_where_the_file_says_so(directory: FileDirectory, uid: int) -> None:
    with pytest.raises(AskerUnknown):
        directory.user_by_uid(uid)


def test_uid_65534_is_nobody_even_if_the_file_names_it(people: Callable[[str], FileDirectory]) -> None:
    directory = people('[users.nobody]\nsids = ["S-1-22-1-65534"]')
    with pytest.raises(AskerUnknown):
        directory.user_by_uid(65_534)


def test_derived_sids_are_ours_stable_and_different_by_kind_and_name() -> None:
    assert derived_sid("user", "alice") == "S-1-1852798053-1-1642412594-4151836390-3119145264-2576686199"
    made = {
        derived_sid("user", "x"),
        derived_sid("group", "x"),
        derived_sid("user", "y"),
        derived_sid("user", "X"),
    }
    assert len(made) == 4


def test_names_resolve_to_one_principal_or_to_none(people: Callable[[str], FileDirectory]) -> None:
    directory = people('[users.ops]\n[users.alice]\ngroups = ["staff"]\n[groups.ops]')
    assert resolve_name(directory, "everyone") == EVERYONE
    assert resolve_name(directory, "S-1-22-2-998") == "S-1-22-2-998@host"
    assert resolve_name(directory, "staff") == derived_sid("group", "staff")
    assert resolve_name(directory, "user:ops") == derived_sid("user", "ops")
    assert resolve_name(directory, "group:ops") == derived_sid("group", "ops")
    for name in ("ops", "nobody", "group:alice", ""):
        with pytest.raises(LookupError):
            resolve_name(directory, name)


def test_what_the_file_cannot_know_is_possible(directory: FileDirectory) -> None:
    markers = {"?S-1-22-1@host", "?S-1-22-2@host", "?S-1-22-2", "?S-1-5-32@host"}
    seen = {
        name: build_token(directory, directory.user(name)).deny & markers
        for name in ("alice", "bob", "carol")
    }
    assert seen["carol"] == markers
    assert seen["alice"] == markers - {"?S-1-22-2@host"}  # by helpdesk her unix groups are known
    assert seen["bob"] == markers - {"?S-1-22-1@host"}


@pytest.mark.parametrize(
    ("sid", "known"),
    [
        ("S-1-22-2-998@host", True),
        ("S-1-22-2-999@host", False),
        ("S-1-22-2-998@nas", False),
        ("S-1-22-1-4242@host", True),
        ("S-1-22-1-4242@nas", False),
        ("S-1-5-21-1-2-3-1002", True),
        ("S-1-5-21-1-2-3-513", False),
        ("S-1-5-32-545@host", False),
        ("S-1-1-0", True),
        ("S-1-5-4", True),
        ("S-1-5-64-10", True),
        ("S-1-5-18", True),
    ],
)
def test_whose_members_are_known(directory: FileDirectory, sid: str, known: bool) -> None:
    assert directory.enumerable(Sid(sid)) is known


def test_a_renamed_user_keeps_an_explicit_sid_and_a_new_one_does_not_inherit(tmp_path: Path) -> None:
    file = write(tmp_path / "people.toml", '[users.ann]\nsid = "S-1-5-21-1-2-3-7"')
    directory = FileDirectory(file)
    before = directory.user("ann")
    write(file, '[users.anna]\nsid = "S-1-5-21-1-2-3-7"\n[users.ann]\nsid = "S-1-5-21-1-2-3-8"')
    assert directory.user(before.sid).name == "anna"
    assert directory.user("ann").sid != before.sid


def test_a_change_counts_at_once_even_with_the_old_size_and_times(tmp_path: Path) -> None:
    file = write(tmp_path / "people.toml", '[users.ann]\ngroups = ["aa"]')
    directory = FileDirectory(file)
    info = file.stat()
    write(file, '[users.ann]\ngroups = ["bb"]')
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    token = build_token(directory, directory.user("ann"))
    assert derived_sid("group", "bb") in token.allow
    assert derived_sid("group", "aa") not in token.allow


BAD = {
    "no TOML": "[users.alice",
    "unknown table": "[people.alice]",
    "unknown key": '[users.alice]\ngroup = ["it"]',
    "groups is a text": '[users.alice]\ngroups = "it"',
    "a group that is a number": "[users.alice]\ngroups = [1]",
    "no SID": '[users.alice]\nsid = "alice"',
    "sid is a number": "[users.alice]\nsid = 5",
    "everyone's SID": '[users.alice]\nsids = ["S-1-1-0"]',
    "SYSTEM's SID": '[users.alice]\nsid = "S-1-5-18"',
    "two with one SID": '[users.a]\nsid = "S-1-5-21-1-2-3-4"\n[groups.b]\nsids = ["S-1-5-21-1-2-3-4"]',
    "two with one unix SID": '[users.a]\nsids = ["S-1-22-1-5"]\n[users.b]\nsids = ["S-1-22-1-5@host"]',
    "a user called everyone": "[users.everyone]",
    "a group called everyone": '[users.alice]\ngroups = ["everyone"]',
    "a name that is a SID": '[users."S-1-5-21-1-2-3-4"]',
    "no name": '[users.""]',
    "users is a list": "users = []",
    "a user that is a text": 'users.alice = "it"',
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_an_invalid_file_is_refused_and_later_answers_nobody(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_people(text)
    file = write(tmp_path / "people.toml", PEOPLE)
    directory = FileDirectory(file)
    alice = directory.user("alice")
    write(file, text)
    for ask in (
        lambda: directory.user("alice"),
        lambda: directory.user_by_uid(5001),
        lambda: directory.resolve("it"),
        lambda: directory.memberships(alice),
        lambda: directory.enumerable(Sid("S-1-5-21-1-2-3-4")),
    ):
        with pytest.raises(DirectoryUnreachable, match=r"people\.toml"):
            ask()
    with pytest.raises(ConfigError, match=r"people\.toml"):
        FileDirectory(file)
    write(file, PEOPLE)
    assert directory.user("alice") == alice


def test_a_missing_file_answers_nobody(tmp_path: Path) -> None:
    file = write(tmp_path / "people.toml", PEOPLE)
    directory = FileDirectory(file)
    file.unlink()
    with pytest.raises(DirectoryUnreachable):
        directory.user("alice")
    with pytest.raises(ConfigError):
        FileDirectory(file)


def test_a_file_others_could_write_is_not_believed(tmp_path: Path) -> None:
    file = write(tmp_path / "people.toml", PEOPLE)
    directory = FileDirectory(file)
    file.chmod(0o666)
    with pytest.raises(DirectoryUnreachable):
        directory.user("alice")
    file.chmod(0o600)
    with pytest.raises(ConfigError):
        FileDirectory(file, shares=(tmp_path,))
