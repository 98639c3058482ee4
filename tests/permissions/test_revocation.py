"""What somebody may no longer read is in no very next answer; without a late check, in none after a poll."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from support.permission_world import ALICE, PEOPLE, TEAM, PermissionWorld, set_acl

SECRET = "zebrafish"
NOTE = "plans/deep/secret.md"

Change = Callable[[PermissionWorld], None]


def by_note_mode(world: PermissionWorld) -> None:
    (world.root / NOTE).chmod(0o600)


def by_note_acl(world: PermissionWorld) -> None:
    set_acl(world.root / NOTE, 0o644, users={ALICE: 0})


def by_a_deny_of_whom_nobody_knows(world: PermissionWorld) -> None:
    """The group 63333 is in no directory: it may have anybody in it."""
    set_acl(world.root / NOTE, 0o644, groups={63333: 0})


def by_parent(world: PermissionWorld) -> None:
    (world.root / "plans").chmod(0o700)


def by_nearest_parent_acl(world: PermissionWorld) -> None:
    set_acl(world.root / "plans/deep", 0o755, users={ALICE: 0})


def by_root(world: PermissionWorld) -> None:
    world.root.chmod(0o700)


def by_group(world: PermissionWorld) -> None:
    world.people(PEOPLE.replace('groups = ["team", "hr"]', 'groups = ["hr"]'))


def by_share_acl(world: PermissionWorld) -> None:
    late = world.settings.answerer.late_check
    world.configure(late, acl={"source": "posix", "share_readers": ["bob"]})


def by_share_denial(world: PermissionWorld) -> None:
    late = world.settings.answerer.late_check
    world.configure(late, acl={"source": "posix", "share_denied": ["alice"]})


def by_rename(world: PermissionWorld) -> None:
    (world.root / NOTE).rename(world.root / "plans/deep/other.md")
    (world.root / "plans/deep/other.md").chmod(0o600)


def by_move(world: PermissionWorld) -> None:
    (world.root / "vault").mkdir(0o700)
    (world.root / NOTE).rename(world.root / "vault/secret.md")


def by_folder_move(world: PermissionWorld) -> None:
    (world.root / "vault").mkdir(0o700)
    (world.root / "plans").rename(world.root / "vault/plans")


def by_delete(world: PermissionWorld) -> None:
    (world.root / NOTE).unlink()


def by_a_link_in_its_place(world: PermissionWorld) -> None:
    (world.root / NOTE).rename(world.folder / "outside.md")
    (world.root / NOTE).symlink_to(world.folder / "outside.md")


def by_a_link_in_the_folders_place(world: PermissionWorld) -> None:
    (world.root / "plans").rename(world.folder / "plans")
    (world.root / "plans").symlink_to(world.folder / "plans")


CHANGES: list[Change] = [
    by_note_mode,
    by_note_acl,
    by_a_deny_of_whom_nobody_knows,
    by_parent,
    by_nearest_parent_acl,
    by_root,
    by_group,
    by_share_acl,
    by_share_denial,
    by_rename,
    by_move,
    by_folder_move,
    by_delete,
    by_a_link_in_its_place,
    by_a_link_in_the_folders_place,
]


def furnish(world: PermissionWorld, late_check: str) -> None:
    world.configure(late_check)
    note = world.write(NOTE, f"# Plan\n\nThe {SECRET} ships in March.\n", 0o640)
    set_acl(note, 0o640, groups={TEAM: 4})
    world.write("open.md", "# Open\n\nEverybody may know that lunch is at noon.\n")
    world.sync()
    assert SECRET in world.see("alice", SECRET, NOTE).text


@pytest.mark.parametrize("late_check", ["require", "prefer"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_the_very_next_answer_holds_nothing_of_it(
    permission_world: PermissionWorld, change: Change, late_check: str
) -> None:
    world = permission_world
    furnish(world, late_check)
    change(world)
    seen = world.see("alice", SECRET, NOTE)
    assert SECRET not in seen.text and NOTE not in seen.paths
    assert seen.notices == ()
    if change not in (by_root, by_group, by_share_acl, by_share_denial):
        assert "open.md" in seen.paths, "what is still readable is still found"
        assert world.note_id(NOTE) in world.queued()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_without_a_late_check_the_next_poll_counts(permission_world: PermissionWorld, change: Change) -> None:
    world = permission_world
    furnish(world, "off")
    made = world.embedder.made
    change(world)
    if change is not by_group:  # tokens are built when the question comes: a group counts at once
        assert SECRET in world.see("alice", SECRET, NOTE).text, "this world goes by the index"
    world.sync()
    seen = world.see("alice", SECRET, NOTE)
    assert SECRET not in seen.text and NOTE not in seen.paths
    if change not in (by_rename, by_move, by_folder_move):  # their paths stand in what is embedded
        assert world.embedder.made == made, "no embedding is computed for a permission"


@pytest.mark.parametrize("change", [by_note_acl, by_nearest_parent_acl], ids=lambda one: one.__name__)
def test_who_is_still_let_in_goes_on_reading(permission_world: PermissionWorld, change: Change) -> None:
    world = permission_world
    furnish(world, "require")
    (world.root / NOTE).chmod(0o644)
    set_acl(world.root / NOTE, 0o644, groups={TEAM: 4})
    world.sync()
    change(world)
    assert SECRET in world.see("bob", SECRET, NOTE).text
    assert SECRET not in world.see("alice", SECRET, NOTE).text


def test_a_wider_list_lets_nobody_in_before_the_poll(permission_world: PermissionWorld) -> None:
    world = permission_world
    furnish(world, "require")
    (world.root / NOTE).chmod(0o644)
    os.removexattr(world.root / NOTE, "system.posix_acl_access")
    (world.root / NOTE).chmod(0o644)
    assert SECRET not in world.see("carol", SECRET, NOTE).text
    assert world.queued() == set(), "who may not read it by the index is told nothing, and asks nothing of it"
    assert SECRET in world.see("alice", SECRET, NOTE).text
    assert world.queued() == {world.note_id(NOTE)}
    world.sync()
    assert world.queued() == set()
    assert SECRET in world.see("carol", SECRET, NOTE).text


def test_a_note_that_differs_is_queued_once(permission_world: PermissionWorld) -> None:
    world = permission_world
    furnish(world, "require")
    (world.root / NOTE).chmod(0o600)
    for _ in range(3):
        world.see("alice", SECRET, NOTE)
    assert world.rows("select count(*) from nw.request") == [(1,)]


def test_a_changed_text_is_cited_as_changed(permission_world: PermissionWorld) -> None:
    world = permission_world
    furnish(world, "require")
    assert world.see("alice", SECRET).freshness == {NOTE: "current"}
    with open(world.root / NOTE, "a") as note:
        note.write("\nOr in April.\n")
    seen = world.see("alice", SECRET, NOTE)
    assert seen.freshness == {NOTE: "changed"} and "April" not in seen.text
    assert world.queued() == {world.note_id(NOTE)}


def test_a_touched_note_with_the_same_text_is_current(permission_world: PermissionWorld) -> None:
    world = permission_world
    furnish(world, "require")
    os.utime(world.root / NOTE, (1, 1))
    assert world.see("alice", SECRET).freshness == {NOTE: "current"}


def test_a_revocation_between_search_and_answer_counts(permission_world: PermissionWorld) -> None:
    world = permission_world
    furnish(world, "require")
    watch = world.engine._watch
    assert watch is not None

    def revoked(notes):  # type: ignore[no-untyped-def]
        by_note_mode(world)  # the search is over by now; the note was among what it found
        return watch(notes)

    world.engine._watch = revoked
    assert SECRET not in world.see("alice", SECRET, NOTE).text


def test_what_falls_is_filled_up_with_what_passes(permission_world: PermissionWorld) -> None:
    world = permission_world
    for number in range(30):
        world.write(f"mill/{number}.md", f"# Mill {number}\n\nThe windmill number {number} turns.\n")
    world.sync()
    for number in range(0, 30, 2):
        (world.root / f"mill/{number}.md").chmod(0o600)
    rows = world.engine.search(world.asker("bob"), "windmill", k=10).result.results
    assert len(rows) == 10
    assert all(int(row.path.split("/")[1].removesuffix(".md")) % 2 for row in rows)
    everything = world.engine.search(world.asker("bob"), "windmill", k=100).result.results
    assert len(everything) == 15


def test_what_fills_up_is_looked_at_too(permission_world: PermissionWorld) -> None:
    """More notes than a search ranks, all but three revoked: what no leg found is no way out either."""
    world, chance = permission_world, random.Random(3)
    for number in range(140):
        words = " ".join(f"{chance.choice('bdfgklmnprstv')}{chance.choice('aeiou')}{n}x" for n in range(12))
        world.write(f"mill/{number:03}.md", f"# Mill {number}\n\nThe windmill turns: {words}.\n")
    world.sync()
    kept = {f"mill/{number:03}.md" for number in (7, 70, 139)}
    for number in range(140):
        if f"mill/{number:03}.md" not in kept:
            (world.root / f"mill/{number:03}.md").chmod(0o600)
    for words in ("windmill", "nothing like it"):
        rows = world.engine.search(world.asker("bob"), words, k=10).result.results
        assert {row.path for row in rows} == kept and len(rows) == 3


def test_a_twin_that_passes_stands_in_for_one_that_does_not(permission_world: PermissionWorld) -> None:
    world = permission_world
    text = "# Canteen\n\nThe pelican soup is served at noon.\n"
    world.write("a.md", text)
    world.write("b.md", text)
    world.sync()
    (world.root / "a.md").chmod(0o600)
    assert world.see("bob", "pelican soup").paths == {"b.md"}
    (cited,) = world.engine.ask(world.asker("bob"), "pelican soup").result.citations
    assert cited.path == "b.md"
