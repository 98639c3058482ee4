"""Declared rules: who reads which folder, and what a lost name does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from acl.declared import Rule, Rules
from acl.directories.file import FileDirectory
from acl.evaluate import readable
from acl.sources.declared import DeclaredSource
from acl.token import build_token
from acl.why import explain
from notewarden.errors import ConfigError
from notewarden.settings_sections import ShareSettings

PEOPLE = """
[users.ann]
groups = ["hr"]
[users.ben]
groups = ["hr", "temps"]
[users.cid]
groups = ["finance"]
[users.dan]
[groups.temps]
"""


def make_share(path: Path, rules: Iterable[dict[str, Any]], **acl: Any) -> ShareSettings:
    section = {"source": "declared", "rule": list(rules), **acl}
    return ShareSettings.model_validate({"name": "notes", "path": str(path), "acl": section})


@pytest.fixture
def world(tmp_path: Path) -> SimpleNamespace:
    file = tmp_path / "people.toml"
    file.write_text(PEOPLE)
    file.chmod(0o600)
    root = tmp_path / "notes"
    root.mkdir()
    return SimpleNamespace(file=file, root=root, directory=FileDirectory(file))


def readers(source: DeclaredSource, directory: FileDirectory, path: bytes) -> set[str]:
    lists = (*source.share_lists(), *source.parent_lists(-1, b""), *source.note_lists(-1, path))
    people = [directory.user(name) for name in ("ann", "ben", "cid", "dan")]
    return {account.name for account in people if readable(lists, build_token(directory, account))}


RULES = [
    {"folder": "", "readers": ["everyone"], "denied": ["dan"]},
    {"folder": "hr", "readers": ["hr"], "denied": ["temps"]},
    {"folder": "hr/open", "readers": ["everyone"]},
    {"folder": "finance", "readers": ["finance", "user:ann"]},
    {"folder": "locked", "readers": []},
    {"folder": "Büro", "readers": ["cid"]},
]


@pytest.mark.parametrize(
    ("path", "who"),
    [
        (b"a.md", {"ann", "ben", "cid"}),
        (b"other/deep/a.md", {"ann", "ben", "cid"}),
        (b"hr/a.md", {"ann"}),
        (b"hr/x/y/a.md", {"ann"}),
        (b"hr/open/a.md", {"ann", "cid"}),
        (b"hr/open/deep/a.md", {"ann", "cid"}),
        (b"hr-old/a.md", {"ann", "ben", "cid"}),
        (b"HR/a.md", {"ann", "ben", "cid"}),
        (b"hr", {"ann", "ben", "cid"}),
        (b"x/hr/a.md", {"ann", "ben", "cid"}),
        (b"finance/a.md", {"ann", "cid"}),
        (b"locked/a.md", set()),
        ("Büro/a.md".encode(), {"cid"}),
        ("Bu\u0308ro/a.md".encode(), {"cid"}),
        (b"hr/\xff\xfe/a.md", {"ann"}),
    ],
)
def test_the_nearest_rule_counts_and_denies_reach_down(
    world: SimpleNamespace, path: bytes, who: set[str]
) -> None:
    source = DeclaredSource(make_share(world.root, RULES), world.directory)
    source.check()
    assert readers(source, world.directory, path) == who


def test_without_a_rule_nobody_reads(world: SimpleNamespace) -> None:
    source = DeclaredSource(make_share(world.root, RULES[1:2]), world.directory)
    source.check()
    assert readers(source, world.directory, b"a.md") == set()
    assert readers(source, world.directory, b"hr/a.md") == {"ann"}
    (nobody,) = source.note_lists(-1, b"a.md")
    assert nobody.status == "ok"


def test_deny_wins_over_the_same_rules_readers(world: SimpleNamespace) -> None:
    rule = {"folder": "", "readers": ["ben", "hr"], "denied": ["temps"]}
    source = DeclaredSource(make_share(world.root, [rule]), world.directory)
    source.check()
    assert readers(source, world.directory, b"a.md") == {"ann"}


@pytest.mark.parametrize(
    ("folder", "ignore_case", "path", "matches"),
    [
        ("HR", False, b"hr", False),
        ("HR", True, b"hr", True),
        ("stra\u00dfe", True, b"STRASSE", True),
        ("Caf\u00e9", True, "CAFE\u0301".encode(), True),
        ("a/b", False, b"a/b/c", True),
        ("a/b", False, b"a", False),
        ("x\\xff", False, b"x\xff", True),
        ("a/./b", False, b"a/b", True),
    ],
)
def test_how_folders_compare(folder: str, ignore_case: bool, path: bytes, matches: bool) -> None:
    rules = Rules([Rule(folder, ("someone",))], ignore_case=ignore_case)
    assert (rules.access(path).readers == ("someone",)) is matches


@pytest.mark.parametrize("folders", [["a", "a"], ["a", "a/"], ["../a"], ["/a"], ["caf\u00e9", "cafe\u0301"]])
def test_rules_that_contradict_or_leave_the_share_are_refused(folders: list[str]) -> None:
    with pytest.raises(ConfigError):
        Rules([Rule(folder, ()) for folder in folders])


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        ({"folder": "", "readers": ["nobody-here"]}, {}),
        ({"folder": "", "readers": [], "denied": ["nobody-here"]}, {}),
        ({"folder": "", "readers": ["ann"]}, {"share_readers": ["nobody-here"]}),
        ({"folder": "", "readers": ["ann"]}, {"share_denied": ["nobody-here"]}),
    ],
)
def test_an_unknown_name_is_refused_at_load(
    world: SimpleNamespace, rule: dict[str, Any], more: dict[str, Any]
) -> None:
    source = DeclaredSource(make_share(world.root, [rule], **more), world.directory)
    with pytest.raises(ConfigError, match="nobody-here"):
        source.check()
    with pytest.raises(ConfigError, match="nobody-here"):
        source.note_lists(-1, b"a.md")


@pytest.fixture
def lose(world: SimpleNamespace) -> Callable[[str], None]:
    def without(name: str) -> None:
        kept = [line for line in PEOPLE.splitlines() if f".{name}]" not in line]
        text = "\n".join(kept).replace(f'"{name}", ', "").replace(f', "{name}"', "").replace(f'"{name}"', "")
        world.file.write_text(text)

    return without


def test_a_lost_reader_is_inert_and_shown(world: SimpleNamespace, lose: Callable[[str], None]) -> None:
    rule = {"folder": "", "readers": ["temps", "cid"]}
    source = DeclaredSource(make_share(world.root, [rule]), world.directory)
    source.check()
    assert readers(source, world.directory, b"a.md") == {"ben", "cid"}
    lose("temps")
    source.check()
    assert readers(source, world.directory, b"a.md") == {"cid"}
    (access_list,) = source.note_lists(-1, b"a.md")
    assert access_list.status == "ok"
    assert any(entry.startswith("ignored") and "temps" in entry for entry in access_list.entries)


def test_a_lost_denied_name_closes_its_folder_and_below(
    world: SimpleNamespace, lose: Callable[[str], None]
) -> None:
    source = DeclaredSource(make_share(world.root, RULES), world.directory)
    source.check()
    before = source.note_lists(-1, b"hr/open/a.md")[0].key
    lose("temps")
    source.check()
    assert readers(source, world.directory, b"hr/a.md") == set()
    assert readers(source, world.directory, b"hr/open/a.md") == set()
    assert readers(source, world.directory, b"a.md") == {"ann", "ben", "cid"}
    (closed,) = source.note_lists(-1, b"hr/open/a.md")
    assert closed.status == "quarantined"
    assert "temps" in closed.reason
    assert closed.key != before


def test_a_lost_denied_name_of_the_share_closes_the_share(
    world: SimpleNamespace, lose: Callable[[str], None]
) -> None:
    everyone = {"folder": "", "readers": ["everyone"]}
    source = DeclaredSource(make_share(world.root, [everyone], share_denied=["temps"]), world.directory)
    source.check()
    assert readers(source, world.directory, b"a.md") == {"ann", "cid", "dan"}
    lose("temps")
    source.check()
    assert readers(source, world.directory, b"a.md") == set()


@pytest.mark.parametrize(
    ("declared", "who"),
    [
        ({}, {"ann", "ben", "cid", "dan"}),
        ({"share_readers": ["hr"]}, {"ann", "ben"}),
        ({"share_readers": ["hr"], "share_denied": ["temps"]}, {"ann"}),
        ({"share_denied": ["temps"]}, {"ann", "cid", "dan"}),
        ({"share_readers": []}, set()),
        ({"share_readers": ["S-1-1-0"]}, {"ann", "ben", "cid", "dan"}),
    ],
)
def test_the_share_must_let_pass_too(world: SimpleNamespace, declared: dict[str, Any], who: set[str]) -> None:
    everyone = {"folder": "", "readers": ["everyone"]}
    source = DeclaredSource(make_share(world.root, [everyone], **declared), world.directory)
    source.check()
    assert readers(source, world.directory, b"a.md") == who
    assert all(item.role == "share" for item in source.share_lists())


def test_the_explanation_names_the_group_and_the_way(world: SimpleNamespace) -> None:
    world.file.write_text('[users.ann]\ngroups = ["it"]\n[groups.it]\ngroups = ["helpdesk"]')
    rule = {"folder": "", "readers": ["helpdesk"], "denied": []}
    source = DeclaredSource(make_share(world.root, [rule]), world.directory)
    (access_list,) = source.note_lists(-1, b"a.md")
    reason = explain(access_list, build_token(world.directory, world.directory.user("ann")))
    assert reason.readable
    assert reason.sid == world.directory.resolve("helpdesk")
    assert reason.through == (world.directory.resolve("it"),)
    assert "helpdesk" in reason.ace
