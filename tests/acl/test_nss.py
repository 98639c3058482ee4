"""The host's own accounts: real ones as they are, and a made-up /etc in a mount namespace of its own."""

from __future__ import annotations

import json
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acl.directories.nss import NssDirectory
from acl.directory import Account, resolve_name
from acl.sid import Sid, unix_group, unix_user
from acl.token import build_token
from notewarden.errors import AskerUnknown

DIRECTORY = NssDirectory()


def test_root_is_a_user_by_the_list() -> None:
    root = DIRECTORY.user_by_uid(0)
    assert root == Account(Sid("S-1-22-1-0@host"), "root")
    token = build_token(DIRECTORY, root)
    assert {"S-1-22-1-0@host", "S-1-22-2-0@host", "S-1-1-0", "S-1-5-11", "S-1-5-2"} <= token.allow


def test_unix_ids_of_this_host_are_certain_and_others_are_not() -> None:
    token = build_token(DIRECTORY, DIRECTORY.user_by_uid(0))
    assert {"?S-1-22-1", "?S-1-22-2", "?S-1-5-32", "?S-1-5-32@host"} <= token.deny
    assert {"?S-1-22-1@host", "?S-1-22-2@host"}.isdisjoint(token.deny)


def test_groups_are_those_the_system_gives_at_log_in() -> None:
    for name in ("root", "daemon", "nobody"):
        shown = subprocess.run(["id", "-G", name], capture_output=True, text=True, check=True).stdout
        token = build_token(DIRECTORY, DIRECTORY.user(name))
        groups = {sid for sid in token.allow if sid.startswith("S-1-22-2-")}
        assert groups == {unix_group(int(gid), "host") for gid in shown.split()}


@pytest.mark.parametrize("uid", [65_534, 4_000_000_001, 2**32, 2**40, -1])
def test_uids_that_are_nobody_are_refused(uid: int) -> None:
    with pytest.raises(AskerUnknown):
        DIRECTORY.user_by_uid(uid)


@pytest.mark.parametrize(
    "name",
    ["no-such-user", "", "a\0b", "S-1-22-2-0", "S-1-22-1-0@nas", "S-1-5-21-1-2-3-4", "S-1-22-1-4000000001"],
)
def test_names_and_sids_that_are_nobody_are_refused(name: str) -> None:
    with pytest.raises(AskerUnknown):
        DIRECTORY.user(name)


def test_users_are_found_by_name_and_sid() -> None:
    daemon = pwd.getpwnam("daemon")
    for known in ("daemon", f"S-1-22-1-{daemon.pw_uid}", f"S-1-22-1-{daemon.pw_uid}@host"):
        assert DIRECTORY.user(known) == Account(unix_user(daemon.pw_uid, "host"), "daemon")


def test_an_account_whose_name_went_to_another_uid_is_gone() -> None:
    with pytest.raises(AskerUnknown):
        build_token(DIRECTORY, Account(Sid("S-1-22-1-777@host"), "root"))


def test_names_of_sids() -> None:
    assert DIRECTORY.name_of(Sid("S-1-22-1-0@host")) == DIRECTORY.name_of(Sid("S-1-22-2-0@host")) == "root"
    for stranger in ("S-1-22-1-0@nas", "S-1-22-1-4000000001@host", "S-1-22-1-99999999999@host", "S-1-1-0"):
        assert DIRECTORY.name_of(Sid(stranger)) is None


@pytest.mark.parametrize(
    ("sid", "known"),
    [
        ("S-1-22-1-7@host", True),
        ("S-1-22-2-7@host", True),
        ("S-1-22-2-7@nas", False),
        ("S-1-5-32-545@host", False),
        ("S-1-5-21-1-2-3-513", False),
        ("S-1-1-0", True),
    ],
)
def test_whose_members_are_known(sid: str, known: bool) -> None:
    assert DIRECTORY.enumerable(Sid(sid)) is known


PASSWD = """root:x:0:0::/:/bin/sh
ann:x:5001:5001::/:/bin/sh
ben:x:5002:6000::/:/bin/sh
one:x:5003:5003::/:/bin/sh
two:x:5003:5003::/:/bin/sh
ops:x:5004:5004::/:/bin/sh
"""
GROUP = """root:x:0:
ann:x:5001:
staff:x:6000:ann
audit:x:6001:ann,ben
ops:x:6002:ben
everyone:x:6003:ben
"""
SCRIPT = """
import json, sys
from acl.directories.nss import NssDirectory
from acl.directory import resolve_name
from acl.token import build_token
directory = NssDirectory()
def tell(what):
    try:
        return what()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
def unix_sids(name):
    return sorted(sid for sid in build_token(directory, directory.user(name)).allow if "-22-" in sid)
asked = json.loads(sys.argv[1])
print(json.dumps({
    "groups": {n: tell(lambda: unix_sids(n)) for n in asked["users"]},
    "uids": {u: tell(lambda: directory.user_by_uid(u).name) for u in asked["uids"]},
    "names": {n: tell(lambda: resolve_name(directory, n)) for n in asked["names"]},
}))
"""


@pytest.fixture(scope="module")
def invented(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Ask a directory in a process whose /etc/passwd and /etc/group are ours."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("NOT TESTED WITH INVENTED ACCOUNTS: only who may unshare mounts has an /etc of its own")
    folder = tmp_path_factory.mktemp("etc")
    for name, text in (
        ("passwd", PASSWD),
        ("group", GROUP),
        ("nsswitch.conf", "passwd: files\ngroup: files\n"),
    ):
        (folder / name).write_text(text)
    mounts = [f"mount --bind {folder}/{name} /etc/{name}" for name in ("passwd", "group", "nsswitch.conf")]
    command = " && ".join([*mounts, 'exec "$@"'])

    def ask(**asked: list[Any]) -> dict[str, Any]:
        question = json.dumps({"users": [], "uids": [], "names": [], **asked})
        run = subprocess.run(
            ["unshare", "-m", "sh", "-c", command, "sh", sys.executable, "-c", SCRIPT, question],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        answer: dict[str, Any] = json.loads(run.stdout)
        return answer

    return ask


def test_primary_and_further_groups_are_in_the_token(invented: Callable[..., dict[str, Any]]) -> None:
    groups = invented(users=["ann", "ben"])["groups"]
    assert groups["ann"] == [
        "S-1-22-1-5001@host",
        "S-1-22-2-5001@host",
        "S-1-22-2-6000@host",
        "S-1-22-2-6001@host",
    ]
    gids = (6000, 6001, 6002, 6003)
    assert groups["ben"] == ["S-1-22-1-5002@host", *(f"S-1-22-2-{gid}@host" for gid in gids)]


def test_two_names_of_one_uid_are_nobody(invented: Callable[..., dict[str, Any]]) -> None:
    answer = invented(uids=[5001, 5003], users=["one", "two"])
    assert answer["uids"]["5001"] == "ann"
    refused = [answer["uids"]["5003"], answer["groups"]["one"], answer["groups"]["two"]]
    assert all(
        text.startswith("AskerUnknown: uid 5003 has more than one account (one, two)") for text in refused
    )


def test_a_name_means_one_principal(invented: Callable[..., dict[str, Any]]) -> None:
    names = ["ann", "staff", "ops", "user:ops", "group:ops", "everyone", "group:everyone", "nothing"]
    answer = invented(names=names)["names"]
    assert answer.pop("ops").startswith("LookupError: is both a user and a group")
    assert answer.pop("nothing").startswith("LookupError")
    assert answer == {
        "ann": "S-1-22-1-5001@host",
        "staff": "S-1-22-2-6000@host",
        "user:ops": "S-1-22-1-5004@host",
        "group:ops": "S-1-22-2-6002@host",
        "everyone": "S-1-1-0",
        "group:everyone": "S-1-22-2-6003@host",
    }


def test_everyone_and_sids_need_no_look_up() -> None:
    assert resolve_name(DIRECTORY, "everyone") == "S-1-1-0"
    assert resolve_name(DIRECTORY, "S-1-5-21-1-2-3-4") == "S-1-5-21-1-2-3-4"
