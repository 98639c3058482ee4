"""Declared rules follow folders, and a rename is no way round a narrower one."""

from __future__ import annotations

from typing import Any

import pytest
from share_world import ShareWorld

RULES: list[dict[str, Any]] = [
    {"folder": "", "readers": ["team"]},
    {"folder": "hr", "readers": ["hr"]},
    {"folder": "closed", "readers": []},
]


def declared(rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {"source": "declared", "rule": rules}


@pytest.fixture
def ruled(make_world) -> ShareWorld:
    """A share in which alice and bob read all but hr, hr is alice's, and closed is nobody's."""
    world = make_world(acl=declared(RULES))
    world.write("open/a.md", "# Open\n\nopen words\n")
    world.write("hr/s.md", "# Salaries\n\nsalary words\n")
    world.sync()
    return world


def kept(world: ShareWorld) -> int:
    return world.one("select count(*) from nw.narrowed")


def test_rules_and_not_modes_count(ruled: ShareWorld) -> None:
    (ruled.root / "open/a.md").chmod(0o600)
    (ruled.root / "hr/s.md").chmod(0o666)
    ruled.sync()
    assert (ruled.readable("alice"), ruled.readable("bob")) == ({"open/a.md", "hr/s.md"}, {"open/a.md"})
    assert ruled.readable("owner") == set()


def test_changed_rules_count_at_the_next_sync_and_embed_nothing(ruled: ShareWorld) -> None:
    rules = [{"folder": "", "readers": ["team"]}, {"folder": "open", "readers": ["hr"]}]
    ruled.configure(acl=declared(rules))
    report = ruled.sync_all()
    assert (report.shares[0].acl_changed, report.chunks_embedded) == (2, 0)
    assert (ruled.readable("alice"), ruled.readable("bob")) == ({"open/a.md", "hr/s.md"}, {"hr/s.md"})


def test_a_denied_name_that_is_lost_closes_the_folder(ruled: ShareWorld) -> None:
    ruled.configure(acl=declared([{"folder": "", "readers": ["team"], "denied": ["hr"]}]))
    ruled.sync()
    assert (ruled.readable("alice"), ruled.readable("bob")) == (set(), {"open/a.md", "hr/s.md"})
    ruled.people.write_text(ruled.people.read_text().replace('"team", "hr"', '"team"'))
    ruled.sync()
    assert ruled.readable("bob") == set()


def test_a_rename_to_a_wider_rule_keeps_the_narrower_one(ruled: ShareWorld) -> None:
    (ruled.root / "hr/s.md").rename(ruled.root / "open/s.md")
    assert ruled.sync().moved == 1
    assert kept(ruled) == 1
    assert (ruled.readable("alice"), ruled.readable("bob")) == ({"open/a.md", "open/s.md"}, {"open/a.md"})
    for _ in range(2):
        ruled.sync(full=True)
    assert (kept(ruled), ruled.readable("bob")) == (1, {"open/a.md"})


def test_a_kept_rule_holds_for_edits_too(ruled: ShareWorld) -> None:
    file = (ruled.root / "hr/s.md").rename(ruled.root / "open/s.md")
    ruled.sync()
    file.write_text("# Salaries\n\nhigher salary words\n")
    ruled.sync()
    assert "higher" in ruled.text("alice")
    assert ruled.readable("bob") == {"open/a.md"}


def test_a_rename_with_an_edit_is_still_a_rename(ruled: ShareWorld) -> None:
    file = (ruled.root / "hr/s.md").rename(ruled.root / "open/s.md")
    file.write_text("# Salaries\n\nhigher salary words and more of them\n")
    ruled.sync()
    assert (kept(ruled), ruled.readable("bob")) == (1, {"open/a.md"})


def test_a_rename_over_another_note_is_still_a_rename(ruled: ShareWorld) -> None:
    (ruled.root / "hr/s.md").rename(ruled.root / "open/a.md")
    ruled.sync()
    assert "salary" not in ruled.text("bob")
    assert "salary" in ruled.text("alice")
    assert kept(ruled) == 1
    ruled.sync()
    assert "salary" not in ruled.text("bob")
    ruled.whole()


def test_a_rename_with_another_note_put_in_its_place_is_still_a_rename(ruled: ShareWorld) -> None:
    (ruled.root / "hr/s.md").rename(ruled.root / "open/s.md")
    ruled.write("hr/s.md", "# Salaries\n\nnothing any more\n")
    ruled.sync()
    assert "salary" not in ruled.text("bob")
    assert "salary" in ruled.text("alice")
    ruled.sync()
    assert "salary" not in ruled.text("bob")
    ruled.whole()


def test_a_chain_of_renames_is_still_renames(ruled: ShareWorld) -> None:
    (ruled.root / "open/a.md").rename(ruled.root / "open/b.md")
    (ruled.root / "hr/s.md").rename(ruled.root / "open/a.md")
    ruled.write("hr/s.md", "# Other\n\nother words\n")
    ids = {path: ruled.note(path)["note_id"] for path in ("open/a.md", "hr/s.md")}
    report = ruled.sync()
    assert (report.moved, report.added, report.deleted) == (2, 1, 0)
    assert ruled.note("open/b.md")["note_id"] == ids["open/a.md"]
    assert ruled.note("open/a.md")["note_id"] == ids["hr/s.md"]
    for _ in range(2):
        assert "salary" not in ruled.text("bob")
        assert "open words" in ruled.text("bob")
        assert "salary" in ruled.text("alice")
        ruled.sync()
    ruled.whole()


def test_names_traded_between_two_rules_are_renames(ruled: ShareWorld) -> None:
    (ruled.root / "hr/s.md").rename(ruled.root / "aside.md")
    (ruled.root / "open/a.md").rename(ruled.root / "hr/s.md")
    (ruled.root / "aside.md").rename(ruled.root / "open/a.md")
    ruled.sync()
    assert "salary" not in ruled.text("bob")
    assert "salary" in ruled.text("alice")
    ruled.sync()
    assert "salary" not in ruled.text("bob")
    ruled.whole()


def test_a_copy_into_a_wider_folder_is_a_decision(ruled: ShareWorld) -> None:
    ruled.write("open/copy.md", (ruled.root / "hr/s.md").read_text())
    ruled.sync()
    assert (kept(ruled), ruled.readable("bob")) == (0, {"open/a.md", "open/copy.md"})


def test_the_kept_rule_ends_when_the_folder_gets_another(ruled: ShareWorld) -> None:
    (ruled.root / "hr/s.md").rename(ruled.root / "open/s.md")
    ruled.sync()
    ruled.configure(acl=declared([*RULES, {"folder": "open", "readers": ["team", "hr"]}]))
    ruled.sync()
    assert (kept(ruled), ruled.readable("bob")) == (0, {"open/a.md", "open/s.md"})


def test_a_rename_to_a_narrower_rule_counts_at_once(ruled: ShareWorld) -> None:
    (ruled.root / "open/a.md").rename(ruled.root / "hr/a.md")
    ruled.sync()
    assert (kept(ruled), ruled.readable("bob")) == (0, set())
    assert ruled.readable("alice") == {"hr/a.md", "hr/s.md"}


def test_there_and_back_leaves_nothing_kept(ruled: ShareWorld) -> None:
    (ruled.root / "hr/s.md").rename(ruled.root / "open/s.md")
    ruled.sync()
    (ruled.root / "open/s.md").rename(ruled.root / "hr/s.md")
    ruled.sync()
    ruled.sync()
    assert kept(ruled) == 0
    assert ruled.readable("alice") == {"open/a.md", "hr/s.md"}


def test_a_folder_moved_under_a_wider_rule(ruled: ShareWorld) -> None:
    for number in range(3):
        ruled.write(f"hr/deep/{number}.md")
    ruled.sync()
    (ruled.root / "hr/deep").rename(ruled.root / "open/deep")
    assert ruled.sync().moved == 3
    assert (kept(ruled), ruled.readable("bob")) == (3, {"open/a.md"})


def test_without_a_rule_nobody_reads(make_world) -> None:
    world = make_world(acl=declared([{"folder": "hr", "readers": ["everyone"]}]))
    world.write("a.md")
    world.write("hr/a.md")
    world.write("hr-old/a.md")
    world.sync()
    assert world.readable("bob") == {"hr/a.md"}
