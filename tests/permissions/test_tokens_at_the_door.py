"""How long a membership counts that was taken away: token_ttl by a clock nobody sets; not with require."""

from __future__ import annotations

import os
import time

import pytest
from support.permission_world import PEOPLE, TEAM, PermissionWorld

from answerer.identity import Doorkeeper

FEWER = PEOPLE.replace('groups = ["team", "hr"]', 'groups = ["hr"]')
GROUP = f"S-1-22-2-{TEAM}@host"


def door(world: PermissionWorld, late_check: str) -> Doorkeeper:
    me = f'\n[users.me]\ngroups = []\nsids = ["S-1-22-1-{os.geteuid()}"]\n'
    world.people(PEOPLE + me)
    world.configure(late_check)
    return Doorkeeper(world.directory, world.settings, service=False)


def certain(keeper: Doorkeeper) -> bool:
    """Whether alice counts as a member of the team."""
    return GROUP in keeper.asker(os.geteuid(), "alice").require_token().allow


def test_21_a_membership_removed_counts_no_longer_than_token_ttl(
    permission_world: PermissionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = door(permission_world, "prefer")
    assert certain(keeper)
    permission_world.people(FEWER)
    now, real = time.clock_gettime(time.CLOCK_BOOTTIME), time.clock_gettime
    boottime = [now]
    monkeypatch.setattr(
        time, "clock_gettime", lambda clock: boottime[0] if clock == time.CLOCK_BOOTTIME else real(clock)
    )
    for name in ("time", "monotonic"):  # neither a set clock nor one that sleeps with the machine counts
        monkeypatch.setattr(time, name, lambda: 0.0)
    boottime[0] = now + 55
    assert certain(keeper), "within token_ttl"
    boottime[0] = now + 61
    assert not certain(keeper)


def test_with_require_it_counts_no_more_at_once(permission_world: PermissionWorld) -> None:
    keeper = door(permission_world, "require")
    assert certain(keeper)
    permission_world.people(FEWER)
    assert not certain(keeper)
