"""Servers that demand more, refuse, lie or break off: it works, or a sentence says what to set."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.samba import KINDS, Samba, free_port, people

from acl.descriptor import parse_descriptor
from acl.sources.smb import wire
from acl.sources.smb.client import Login, SmbClient, SmbGone, SmbRefused
from acl.sources.smb.lookup import own_sid
from acl.sources.smb.pysmb_client import PysmbClient
from acl.sources.smb.session import SmbSession, connect_with
from acl.sources.smb.shares import ShareUnknown, share_descriptor
from acl.sources.smb.smbprotocol_client import SmbprotocolClient
from notewarden.errors import ShareUnavailable

CLIENTS = (PysmbClient, SmbprotocolClient)


@pytest.fixture
def serve(start_samba: Callable[..., Samba], export: Path) -> Callable[..., Samba]:
    """A function that starts a server with options and one share "notes" of two notes."""
    for name, mode in (("open.md", 0o644), ("closed.md", 0o600)):
        (export / name).write_text(f"# {name}\n")
        (export / name).chmod(mode)

    def start(**options: str) -> Samba:
        shares = {"notes": (export, {"read only": "yes"})}
        return start_samba(people("svc", "alice"), {}, shares, **options)

    return start


def login(server: Samba, user: str = "svc", password: str | None = None, **more: object) -> Login:
    secret = f"pw-{user}" if password is None else password
    return Login("127.0.0.1", server.port, "notes", user, secret, **more)  # type: ignore[arg-type]


def works(client: SmbClient, export: Path) -> None:
    """The descriptors of the root and of a note come back, with the file ids that the disk shows."""
    root, note, gone = client.answers(["", "open.md", "nowhere.md"])
    assert parse_descriptor(note.raw).aces
    assert note.file_id == (export / "open.md").stat().st_ino
    assert root.file_id == export.stat().st_ino
    assert gone.status == 0xC0000034
    client.close()


@pytest.mark.parametrize(
    ("options", "chosen", "dialect"),
    [
        ({}, "pysmb", "2.002"),
        ({"server_min_protocol": "SMB2_10"}, "smbprotocol", "3.1.1"),
        ({"server_min_protocol": "SMB3_11"}, "smbprotocol", "3.1.1"),
        ({"server_smb_encrypt": "required"}, "smbprotocol", "3.1.1, encrypted"),
        ({"server_signing": "mandatory"}, "pysmb", "2.002"),
        ({"server_max_protocol": "SMB2_02"}, "pysmb", "2.002"),
    ],
)
def test_auto_finds_the_client_that_the_server_lets_in(
    options: dict[str, str], chosen: str, dialect: str, serve: Callable[..., Samba], export: Path
) -> None:
    client = connect_with("auto", login(serve(**options)))
    assert (client.name, client.dialect) == (chosen, dialect)
    works(client, export)


def test_signatures_demanded_by_us_mean_smbprotocol(serve: Callable[..., Samba], export: Path) -> None:
    client = connect_with("auto", login(serve(), require_signing=True))
    assert client.name == "smbprotocol"
    works(client, export)


def test_a_signed_pysmb_session_checks_the_answers(serve: Callable[..., Samba], export: Path) -> None:
    client = PysmbClient(login(serve(server_signing="mandatory")))
    assert client.signed
    client._session.signing_session_key = bytes(16)  # as an attacker who does not know it
    with pytest.raises(SmbGone):
        client.answers(["open.md"])
    client.close()


@pytest.mark.parametrize(
    ("options", "client", "words"),
    [
        ({"server_min_protocol": "SMB3_11"}, "pysmb", ["server min protocol", 'client = "auto"']),
        ({"server_smb_encrypt": "required"}, "pysmb", ["smb encrypt", 'client = "auto"']),
        ({"ntlm_auth": "disabled"}, "pysmb", ["NTLM", "ntlm auth"]),
        ({"ntlm_auth": "disabled"}, "auto", ["NTLM", "ntlm auth"]),
        ({"server_max_protocol": "NT1", "server_min_protocol": "NT1"}, "auto", ["protocol"]),
    ],
)
def test_a_refusal_says_which_setting_meets_which(
    options: dict[str, str], client: str, words: list[str], serve: Callable[..., Samba]
) -> None:
    server = serve(**options)
    with pytest.raises(SmbRefused) as refused:
        connect_with(client, login(server))
    told = str(refused.value)
    assert all(word in told for word in words), told
    assert "\n" not in told and "pw-svc" not in told


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_wrong_password_is_said_and_not_repeated(
    kind: type[SmbClient], serve: Callable[..., Samba]
) -> None:
    with pytest.raises(SmbRefused, match="username and password_file") as refused:
        kind(login(serve(), password="Wrong-Secret"))  # type: ignore[call-arg]
    assert "Wrong-Secret" not in str(refused.value) and not refused.value.demands_more


@pytest.mark.parametrize("kind", CLIENTS)
def test_the_account_may_be_of_a_domain(
    kind: type[SmbClient], serve: Callable[..., Samba], export: Path
) -> None:
    where = Login("127.0.0.1", serve(admin_users="svc").port, "notes", "NWTEST\\svc", "pw-svc")
    works(kind(where), export)  # type: ignore[call-arg]
    assert share_descriptor(where) and own_sid(where).endswith("-1000")


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_share_that_is_not_there(kind: type[SmbClient], serve: Callable[..., Samba]) -> None:
    server = serve()
    with pytest.raises(SmbRefused, match="no share 'other'"):
        kind(Login("127.0.0.1", server.port, "other", "svc", "pw-svc"))  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", CLIENTS)
def test_nobody_listens(kind: type[SmbClient]) -> None:
    with pytest.raises(SmbRefused, match="cannot be reached"):
        kind(Login("127.0.0.1", free_port(), "notes", "svc", "pw-svc"))  # type: ignore[call-arg]


@pytest.mark.parametrize("client", ["pysmb", "smbprotocol"])
def test_a_guest_session_is_no_success(client: str, serve: Callable[..., Samba], export: Path) -> None:
    """The server takes a name it does not know for a guest: what it then shows is another's view."""
    server = serve(map_to_guest="bad user")
    server.share("notes", export, {"read only": "yes", "guest ok": "yes"})
    session = SmbSession(login(server, "stranger"), lambda one: connect_with(client, one))
    assert not session.open()
    assert "guest" in session.closed and "username" in session.closed
    with pytest.raises(ShareUnavailable, match="guest"):
        session.answers(["open.md"])


@pytest.mark.parametrize("client", ["pysmb", "smbprotocol"])
def test_a_session_that_broke_is_made_anew(client: str, serve: Callable[..., Samba]) -> None:
    session = SmbSession(login(serve()), lambda one: connect_with(client, one))
    (before,) = session.answers(["open.md"])
    inner = session._client
    sock = inner._sock if isinstance(inner, PysmbClient) else inner._connection.transport._sock  # type: ignore[union-attr]
    sock.shutdown(socket.SHUT_RDWR)
    assert session.answers(["open.md"]) == [before]
    session.reset()


def test_a_dead_server_is_unavailable(serve: Callable[..., Samba]) -> None:
    server = serve()
    session = SmbSession(login(server), lambda one: connect_with("auto", one))
    assert session.answers(["open.md"])
    server.pause()
    with pytest.raises(ShareUnavailable, match=r"broke off|cannot be reached"):
        session.answers(["open.md"])


@pytest.mark.parametrize("kind", CLIENTS)
def test_many_questions_are_answered_in_their_order(
    kind: type[SmbClient], serve: Callable[..., Samba], export: Path
) -> None:
    names = [f"n{number}.md" for number in range(300)]
    for name in names:
        (export / name).write_text(name)
    client = kind(login(serve()))  # type: ignore[call-arg]
    asked = [*names, "nowhere.md", *names]
    found = client.answers(asked)
    ids = {name: (export / name).stat().st_ino for name in names}
    assert [answer.file_id for answer in found] == [ids.get(name, 0) for name in asked]
    client.close()


@pytest.mark.parametrize("kind", CLIENTS)
def test_read_control_alone_is_enough(
    kind: type[SmbClient], start_samba: Callable[..., Samba], export: Path
) -> None:
    """An account that may read the permissions and not the text: its question is answered all the same."""
    from support.samba import ace_bytes, descriptor_bytes, store_descriptor

    server = start_samba(people("svc", "alice"), {})
    alice, svc = (server.people[name].sid for name in ("alice", "svc"))
    note = export / "note.md"
    note.write_text("secret")
    note.chmod(0o644)
    store_descriptor(
        note, descriptor_bytes(alice, [ace_bytes(0, svc, 0x20000), ace_bytes(0, alice, 0x120089)])
    )
    server.share("notes", export, KINDS["acl_xattr"])
    client = kind(login(server))  # type: ignore[call-arg]
    (answer,) = client.answers(["note.md"])
    assert parse_descriptor(answer.raw).owner == alice
    with pytest.raises(PermissionError):
        client.read("note.md", 100)
    client.close()


@pytest.mark.parametrize("kind", CLIENTS)
def test_the_text_can_come_over_smb(kind: type[SmbClient], serve: Callable[..., Samba], export: Path) -> None:
    text = os.urandom(200_001)
    (export / "large.md").write_bytes(text)
    client = kind(login(serve()))  # type: ignore[call-arg]
    assert client.read("large.md", 1_000_000) == text
    assert client.read("large.md", 70_000) == text[:70_000]
    client.close()


def test_a_share_descriptor_that_is_not_told_is_unknown(serve: Callable[..., Samba]) -> None:
    """Samba answers success without it to an account that is no administrator: never Everyone."""
    with pytest.raises(ShareUnknown, match="without it"):
        share_descriptor(login(serve()))


def test_a_share_descriptor_is_told_to_an_administrator(serve: Callable[..., Samba]) -> None:
    server = serve(admin_users="svc")
    server.sharesec("notes", "O:BAG:SYD:(A;;0x1200a9;;;AU)")
    read = parse_descriptor(share_descriptor(login(server)))
    assert [(ace.sid, ace.mask) for ace in read.aces or ()] == [("S-1-5-11", 0x1200A9)]


@pytest.fixture
def liar() -> Iterator[Callable[[bytes], int]]:
    """A function that serves the same bytes to whoever connects, and returns the port."""
    doors: list[socket.socket] = []

    def serve_bytes(said: bytes) -> int:
        door = socket.create_server(("127.0.0.1", 0))
        doors.append(door)
        threading.Thread(target=_talk, args=(door, said), daemon=True).start()
        port: int = door.getsockname()[1]
        return port

    yield serve_bytes
    for door in doors:
        door.close()


def _talk(door: socket.socket, said: bytes) -> None:
    while True:
        try:
            caller, _ = door.accept()
        except OSError:
            return
        with caller:
            caller.recv(65_536)
            caller.sendall(said)


@pytest.mark.parametrize(
    "said", [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"\0\0\0\x04junk", b"\0\0\0\x40" + b"\xfeSMB" + b"\xff" * 60]
)
@pytest.mark.parametrize("client", ["pysmb", "smbprotocol", "auto"])
def test_a_server_that_speaks_something_else(said: bytes, client: str, liar: Callable[[bytes], int]) -> None:
    where = Login("127.0.0.1", liar(said), "notes", "svc", "pw-svc", timeout_s=3)
    with pytest.raises((SmbRefused, SmbGone)) as refused:
        connect_with(client, where)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"\xfeSMB" + b"\0" * 59,
        b"\xffSMB" + b"\0" * 60,
        wire.header(5, 1, (1, 1)),  # a request, not an answer
        b"\xfeSMB\x40\0" + b"\0" * 10 + b"\x01\0\0\0" + b"\x10\0\0\0" + b"\0" * 40,  # the next one inside
    ],
)
def test_answers_that_are_cut_off_are_refused(packet: bytes) -> None:
    with pytest.raises(ValueError, match="answer"):
        wire.unpack(packet)


@pytest.mark.parametrize("parse", [wire.opened, wire.payload, wire.text])
@pytest.mark.parametrize("body", [b"", b"\x09\0\x48\0\xff\xff\0\0", b"\x11\0\x50\0\xff\xff\0\0" + b"\0" * 8])
def test_bodies_that_promise_more_than_they_hold_are_refused(
    parse: Callable[[bytes], object], body: bytes
) -> None:
    with pytest.raises(ValueError, match="cut off"):
        parse(body)
