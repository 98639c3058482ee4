"""Permissions count by the database's clock, from the start of a complete sweep, never into the future."""

from __future__ import annotations

import pytest
from support.permission_world import PermissionWorld, set_acl
from test_cases_in_time import FailingFiles

from notewarden.errors import IndexTooOld, NotewardenError


@pytest.fixture
def world(permission_world: PermissionWorld) -> PermissionWorld:
    permission_world.configure("off")
    for number in range(5):
        permission_world.write(f"d/{number}.md", f"# {number}\n\nThe osprey of {number} fishes.\n")
    permission_world.sync()
    return permission_world


def shown(world: PermissionWorld) -> int:
    try:
        return len(world.see("bob", "osprey").paths)
    except IndexTooOld:
        return 0


@pytest.mark.parametrize(
    ("change", "open_still"),
    [
        ("swept_at = clock_timestamp() + interval '3 seconds'", True),
        ("swept_at = clock_timestamp() + interval '8 seconds'", False),
        ("swept_at = clock_timestamp() - max_age + interval '20 seconds'", True),
        ("swept_at = clock_timestamp() - max_age - interval '1 second'", False),
        ("swept_at = null", False),
        ("polled_at = clock_timestamp() + interval '8 seconds'", False),
        (
            "polled_at = now() + interval '1 hour', swept_at = now() - interval '1 hour'",
            False,
        ),
        ("polled_at = null", True),
        ("max_age = interval '0'", False),
    ],
)
def test_a_sweep_counts_within_its_time_only(world: PermissionWorld, change: str, open_still: bool) -> None:
    assert shown(world) == 5
    world.run(f"update nw.share set {change}")
    assert shown(world) == (5 if open_still else 0)


def test_after_a_clock_set_back_only_a_complete_sweep_opens_again(world: PermissionWorld) -> None:
    files = FailingFiles()
    world.with_files(files)
    world.engine._watch = None
    hour = "interval '1 hour'"
    world.run(f"update nw.share set swept_at = swept_at + {hour}, polled_at = polled_at + {hour}")
    assert shown(world) == 0
    report = world.sync()
    assert report.hashed == 5, "times that may repeat say nothing: every note is read again"
    assert shown(world) == 5
    assert world.sync().hashed == 0


def test_an_incomplete_poll_after_the_step_does_not_open(
    world: PermissionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run("update nw.share set polled_at = polled_at + interval '1 hour'")
    monkeypatch.setattr("indexer.poll.shares.swept", lambda *_: None)  # as when a folder could not be listed
    world.sync()
    assert world.rows("select swept_at, polled_at <= clock_timestamp() from nw.share") == [(None, True)]
    assert shown(world) == 0
    monkeypatch.undo()
    world.sync()
    assert shown(world) == 5


def test_a_sweep_is_as_old_as_its_start(world: PermissionWorld) -> None:
    set_acl(world.root / "d/1.md", 0o640, groups={62002: 4})
    world.sync()
    (row,) = world.rows(
        "select s.swept_at < max(n.verified_at), s.swept_at <= s.polled_at, age(s.swept_at) < '1 minute'"
        " from nw.share s join nw.note n using (share_id) group by s.share_id"
    )
    assert row == (True, True, True)


def test_permissions_too_old_are_said_to_be_so(world: PermissionWorld) -> None:
    world.run("update nw.share set swept_at = swept_at - max_age, polled_at = polled_at - max_age")
    with pytest.raises(NotewardenError) as caught:
        world.see("bob", "osprey")
    assert caught.value.exit_code == 4
