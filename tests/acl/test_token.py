"""Tokens: what is in both sets, that none is ever empty, and for how long one may be kept."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from acl.directories.file import FileDirectory
from acl.directories.people import derived_sid
from acl.sid import AUTHENTICATED, EVERYONE, NETWORK, Sid, qualify, server_of, unix_gid, unix_uid
from acl.token import Token, TokenCache, build_token, require_token
from notewarden.errors import AskerUnknown, DirectoryUnreachable

ALICE = Sid("S-1-5-21-1-2-3-4")
MEMBER = '[users.alice]\ngroups = ["it"]'
NO_MEMBER = "[users.alice]\n[groups.it]"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("allow", "deny"),
    [
        (frozenset(), frozenset({ALICE})),
        (frozenset({EVERYONE}), frozenset({EVERYONE})),
        (frozenset({ALICE, EVERYONE}), frozenset({EVERYONE})),
        (frozenset({ALICE, EVERYONE}), frozenset()),
    ],
)
def test_a_token_without_its_user_or_with_lost_denies_cannot_be_made(
    allow: frozenset[Sid], deny: frozenset[Sid]
) -> None:
    with pytest.raises(AskerUnknown):
        Token(ALICE, "alice", allow, deny)


def test_no_token_is_an_error() -> None:
    with pytest.raises(AskerUnknown):
        require_token(None)


def test_what_a_named_user_certainly_and_possibly_is(tmp_path: Path) -> None:
    directory = FileDirectory(write(tmp_path / "people.toml", MEMBER))
    token = build_token(directory, directory.user("alice"))
    user, group = derived_sid("user", "alice"), derived_sid("group", "it")
    assert (token.user, token.name) == (user, "alice")
    assert token.allow == {user, group, EVERYONE, AUTHENTICATED, NETWORK}
    assert {
        "S-1-5-4",
        "S-1-5-15",
        "?S-1-5-64",
        "?S-1-18",
        "?S-1-22-2",
        "?S-1-5-32@host",
    } <= token.deny - token.allow
    assert not any(sid.startswith("?") for sid in token.allow)


def test_a_cached_token_lives_for_its_time_and_no_longer(tmp_path: Path) -> None:
    file = write(tmp_path / "people.toml", MEMBER)
    directory = FileDirectory(file)
    kept, spent = TokenCache(directory, timedelta(hours=1)), TokenCache(directory, timedelta(0))
    alice, group = directory.user("alice"), derived_sid("group", "it")
    assert group in kept.token(alice).allow
    assert group in spent.token(alice).allow
    write(file, NO_MEMBER)
    assert group in kept.token(alice).allow
    assert group not in spent.token(alice).allow
    assert group not in kept.token(alice, fresh=True).allow
    assert group not in kept.token(alice).allow


def test_a_cached_token_runs_out(tmp_path: Path) -> None:
    file = write(tmp_path / "people.toml", MEMBER)
    directory = FileDirectory(file)
    cache = TokenCache(directory, timedelta(milliseconds=1))
    alice, group = directory.user("alice"), derived_sid("group", "it")
    cache.token(alice)
    write(file, NO_MEMBER)
    time.sleep(0.002)
    assert group not in cache.token(alice).allow


def test_the_account_is_looked_up_on_each_use(tmp_path: Path) -> None:
    file = write(tmp_path / "people.toml", '[users.alice]\nsid = "S-1-5-21-1-2-3-4"')
    directory = FileDirectory(file)
    cache = TokenCache(directory, timedelta(hours=1))
    alice = directory.user("alice")
    assert cache.token(alice).name == "alice"
    write(file, '[users.alicia]\nsid = "S-1-5-21-1-2-3-4"')
    assert cache.token(alice).name == "alicia"
    write(file, '[users.alice]\nsid = "S-1-5-21-1-2-3-5"')
    with pytest.raises(AskerUnknown):
        cache.token(alice)
    write(file, "[broken")
    with pytest.raises(DirectoryUnreachable):
        cache.token(alice)


@pytest.mark.parametrize(
    ("sid", "qualified"),
    [
        ("S-1-22-1-5", "S-1-22-1-5@nas"),
        ("S-1-22-2-5@host", "S-1-22-2-5@host"),
        ("S-1-5-32-544", "S-1-5-32-544@nas"),
        ("S-1-5-21-1-2-3-4", "S-1-5-21-1-2-3-4"),
        ("S-1-5-320-1", "S-1-5-320-1"),
        ("S-1-1-0", "S-1-1-0"),
    ],
)
def test_only_relative_sids_carry_their_server(sid: str, qualified: str) -> None:
    assert qualify(sid, "nas") == qualified
    assert server_of(Sid(qualified)) == (qualified.partition("@")[2] or None)


def test_unix_ids_are_read_only_from_this_hosts_sids() -> None:
    assert unix_uid("S-1-22-1-5") == unix_uid("S-1-22-1-5@host") == unix_gid("S-1-22-2-5") == 5
    for other in ("S-1-22-1-5@nas", "S-1-22-2-5", "S-1-22-1-5-6", "S-1-1-0", "alice"):
        assert unix_uid(other) is None
