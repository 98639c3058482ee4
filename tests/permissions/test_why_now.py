"""`why` says beside the index's verdict what the share shows now, down to entry, SID and groups."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest
from support.permission_world import HR, PEOPLE, TEAM, PermissionWorld, set_acl

from indexer.doctor.shares import permissions
from indexer.files import Files
from indexer.notepaths import Place
from indexer.why import Explainer, Why
from notewarden.settings_sections import ShareSettings


@pytest.fixture
def world(permission_world: PermissionWorld) -> PermissionWorld:
    set_acl(permission_world.write("plans/a.md", mode=0o640), 0o640, groups={TEAM: 4})
    permission_world.sync()
    return permission_world


def why(world: PermissionWorld, person: str, path: str = "plans/a.md") -> Why:
    (share,) = world.settings.shares
    explainer = Explainer(world.database, world.directory, share)
    return explainer.explain(Place("notes", os.fsencode(path)), world.directory.user(person))


def test_entry_sid_and_groups_are_named(world: PermissionWorld) -> None:
    world.people(
        PEOPLE.replace('groups = ["team", "hr"]', 'groups = ["oncall"]\n[groups.oncall]\ngroups = ["team"]')
    )
    found = why(world, "alice")
    assert found.readable and found.doubts == []
    note = found.layers[-1]
    assert (note.layer, note.readable, note.through) == ("note", True, ("oncall",))
    assert f"[S-1-22-2-{TEAM}] through oncall" in found.as_text()
    assert {layer.layer for layer in found.layers} == {"share", "parent", "note"}


def test_what_the_share_shows_now_is_said_beside_the_verdict(world: PermissionWorld) -> None:
    set_acl(world.root / "plans/a.md", 0o640, groups={HR: 4})
    (bob,) = why(world, "bob").doubts
    (alice,) = why(world, "alice").doubts
    assert bob.endswith("the new ones do not") and alice.endswith("the new ones do")
    assert why(world, "bob").readable, "the verdict is the index's own"
    (world.root / "plans/a.md").write_text("# Other\n")
    assert "its text has changed since it was indexed" in why(world, "alice").doubts
    (world.root / "plans/a.md").unlink()
    (gone,) = why(world, "alice").doubts
    assert "not there any more" in gone
    world.root.rename(world.folder / "away")
    (away,) = why(world, "alice").doubts
    assert "cannot be reached" in away


def test_permissions_that_are_not_told_are_said(
    world: PermissionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(errno.EIO, "fault")

    monkeypatch.setattr(Files, "open_note", refuse)
    (doubt,) = why(world, "alice").doubts
    assert "does not tell" in doubt


def test_declared_gates_are_said_to_be_unchecked(world: PermissionWorld) -> None:
    world.configure("prefer", acl={"source": "posix", "share_readers": ["team"], "share_denied": ["hr"]})
    world.sync()
    found = why(world, "bob")
    assert found.readable and "share_readers, share_denied" in found.doubts[0]
    share: ShareSettings = world.settings.shares[0]
    assert share.acl.share_readers == ["team"]


def test_a_deny_that_nobody_can_resolve_any_more_is_explained(world: PermissionWorld) -> None:
    set_acl(world.root / "plans/a.md", 0o644, groups={HR: 0})
    world.sync()
    assert why(world, "bob").readable
    world.people(PEOPLE.replace('"hr"', "").replace("[groups.hr]", "[groups.x]").replace(f"2-{HR}", "2-9"))
    found = why(world, "bob")
    assert not found.readable and not found.layers[-1].readable
    assert "nobody can tell who is a member" in found.layers[-1].ace
    assert not any("do not explain" in doubt for doubt in found.doubts)


def test_doctor_lists_them_too(world: PermissionWorld) -> None:
    assert "share_readers" not in permissions(world.settings, world.settings.shares[0]).detail
    world.configure("prefer", acl={"source": "posix", "share_readers": ["team"]})
    assert (
        "(share_readers); it cannot be checked"
        in permissions(world.settings, world.settings.shares[0]).detail
    )
