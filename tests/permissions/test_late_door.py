"""The late check between two services: the indexer's private socket, heard from one account alone."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.accounts import run_as
from support.permission_world import PermissionWorld, set_acl

from indexer.latedoor import late_door
from notewarden.errors import ConfigError, DirectoryUnreachable, ShareUnavailable

WORD = "lapwing"


@pytest.fixture
def door(permission_world: PermissionWorld) -> Path:
    permission_world.write("sub/a.md", f"# A\n\nThe {WORD} of a calls.\n", 0o640)
    set_acl(permission_world.root / "sub/a.md", 0o640, groups={62001: 4})
    permission_world.write("b.md", f"# B\n\nThe {WORD} of b calls.\n")
    permission_world.sync()
    place = permission_world.folder / "late.sock"
    permission_world.configure("require", answerer={"late_check_socket": place})
    return place


@pytest.fixture
def world(permission_world: PermissionWorld, door: Path) -> Iterator[PermissionWorld]:
    with late_door(lambda: permission_world.settings, permission_world.database):
        yield permission_world


def exchange(place: str, request: bytes) -> bytes:
    """What comes back: nothing, too, where the other end hangs up unread."""
    try:
        return _exchange(place, request)
    except (BrokenPipeError, ConnectionResetError):
        return b""


def _exchange(place: str, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(10)
        line.connect(place)
        line.sendall(request)
        line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(65536), b""))


def test_a_revocation_is_heard_of_over_the_socket(world: PermissionWorld) -> None:
    assert world.see("bob", WORD, "sub/a.md").paths == {"sub/a.md", "b.md"}
    (world.root / "sub").chmod(0o700)
    assert world.see("bob", WORD, "sub/a.md").paths == {"b.md"}
    assert world.queued() == {world.note_id("sub/a.md")}
    with open(world.root / "b.md", "a") as note:
        note.write("More.\n")
    assert world.see("bob", WORD, "b.md").freshness == {"b.md": "changed"}


def test_no_path_no_text_and_no_name_goes_out(world: PermissionWorld, door: Path) -> None:
    ids = [row[0] for row in world.rows("select note_id from nw.note")]
    reply = exchange(str(door), json.dumps({"notes": ids}).encode() + b"\n")
    assert set(json.loads(reply)["notes"]) == {str(one) for one in ids}
    for secret in (b"a.md", b"sub", WORD.encode(), os.fsencode(world.root), b"notes/", b"alice", b"team"):
        assert secret not in reply


def test_only_the_answerers_account_is_heard(world: PermissionWorld, door: Path, as_root: None) -> None:
    assert stat.S_IMODE(door.stat().st_mode) == 0o600
    request = json.dumps({"notes": [1]}).encode() + b"\n"
    for folder in door.parents:
        if folder != Path("/") and folder.stat().st_uid == 0 and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o111)
    with pytest.raises(PermissionError):
        run_as(61009, 61009, exchange, str(door), request)
    door.chmod(0o666)  # even where somebody opens it
    assert run_as(61009, 61009, exchange, str(door), request) == b""


def test_the_socket_belongs_to_the_configured_account(
    permission_world: PermissionWorld, door: Path, as_root: None
) -> None:
    world = permission_world
    world.configure("require", answerer={"late_check_socket": door, "user": "daemon"})
    with late_door(lambda: world.settings, world.database):
        assert door.stat().st_uid == 1 and stat.S_IMODE(door.stat().st_mode) == 0o600
        assert exchange(str(door), b'{"notes": [1]}\n') == b"", "root is not the answerer"
    assert not door.exists()
    world.configure("require", answerer={"late_check_socket": door, "user": "no-such-account"})
    with pytest.raises(ConfigError), late_door(lambda: world.settings, world.database):
        pass


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"\n",
        b"{",
        b"[]\n",
        b'{"notes": "1"}\n',
        b'{"notes": [true]}\n',
        b'{"notes": [1.5]}\n',
        b'{"notes": [-1]}\n',
        b'{"notes": [99999999999999999999]}\n',
        b'{"notes": [1], "as": "root"}\n',
        b'{"notes": ' + b"[" * 100_000 + b"\n",
        b'{"notes": [' + b"1," * 200_000 + b"1]}\n",
        b"\xff\xfe\n",
    ],
)
def test_what_is_no_request_is_refused(world: PermissionWorld, door: Path, request_: bytes) -> None:
    reply = exchange(str(door), request_)
    assert reply == b"" or json.loads(reply) == {"error": "request"}
    assert world.see("bob", WORD).paths == {"sub/a.md", "b.md"}


def test_without_an_indexer_nothing_is_shown_where_the_check_is_required(
    permission_world: PermissionWorld, door: Path
) -> None:
    asker = permission_world.asker("bob")
    with pytest.raises(ShareUnavailable) as caught:
        permission_world.engine.search(asker, WORD)
    assert "notewarden run" in str(caught.value)
    permission_world.configure("prefer", answerer={"late_check_socket": door})
    seen = permission_world.see("bob", WORD)
    assert seen.paths == {"sub/a.md", "b.md"} and "last sync" in seen.notices[0]


@pytest.mark.parametrize(
    "reply", [b"", b"{}", b"[]", b'{"notes": {"1": {"state": "open"}}}', b'{"notes": 5}']
)
def test_a_reply_that_makes_no_sense_is_no_reply(
    permission_world: PermissionWorld, door: Path, reply: bytes
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as liar:
        liar.bind(str(door))
        liar.listen()

        def lie() -> None:
            line, _ = liar.accept()
            with line:
                line.recv(65536)
                line.sendall(reply)

        thread = threading.Thread(target=lie)
        thread.start()
        with pytest.raises(ShareUnavailable):
            permission_world.engine.search(permission_world.asker("bob"), WORD)
        thread.join()


def test_a_note_that_is_left_out_of_the_reply_is_dropped(
    permission_world: PermissionWorld, door: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with late_door(lambda: permission_world.settings, permission_world.database):
        permission_world.run("delete from nw.request")
        monkeypatch.setattr("indexer.latedoor.latecheck.indexed", lambda conn, note_ids: [])
        assert permission_world.see("bob", WORD).paths == frozenset()


def test_a_directory_that_cannot_tell_is_said_so(world: PermissionWorld) -> None:
    late = world.settings.answerer.late_check_socket
    rights: dict[str, Any] = {"source": "posix", "share_readers": ["team"]}
    world.configure("require", acl=rights, answerer={"late_check_socket": late})
    world.sync()
    assert world.see("bob", WORD).paths == {"sub/a.md", "b.md"}
    asker = world.asker("bob")
    world.people("[users")
    with pytest.raises(DirectoryUnreachable):
        world.engine.search(asker, WORD)


def test_a_configuration_that_was_read_again_counts(world: PermissionWorld) -> None:
    late = world.settings.answerer.late_check_socket
    assert "b.md" in world.see("bob", WORD).paths
    world.configure(
        "require", acl={"source": "posix", "share_readers": ["hr"]}, answerer={"late_check_socket": late}
    )
    assert world.see("bob", WORD).paths == frozenset()
