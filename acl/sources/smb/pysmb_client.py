"""Asking through pysmb: it logs in (SMB 2.002, NTLM); the questions are packets of our own on its connection.

pysmb asks one thing at a time and never checks a signature. Here many questions are in flight, as many as the
server grants credits for, and where the session is signed every answer's signature is checked.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import socket
import struct
from collections import deque
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from smb.base import NotConnectedError, SMBTimeout
from smb.smb_structs import ProtocolError
from smb.SMBConnection import SMBConnection

from acl.sources.smb import wire
from acl.sources.smb.client import Answer, Login, SmbGone, SmbRefused, as_answer, question, refused_account
from acl.sources.smb.status import ACCESS_DENIED, BAD_NETWORK_NAME, LOGON_FAILURE, why_no_login

_CREDITS = 256
# Requests in flight must fit into the sockets' buffers: we send them before we read what comes back.
_IN_FLIGHT = 64
_ECHO = 13
_BLOCK = 65_536
_ZEROS = b"\0" * 16
logging.getLogger("SMB").setLevel(logging.WARNING)  # it would write hashes of the password


class _Connection(SMBConnection):  # type: ignore[misc]  # pysmb has no types
    """pysmb's connection, which remembers how its session was granted."""

    session_flags = 0
    last_status = 0

    def _updateState_SMB2(self, message: Any) -> Any:  # noqa: N802
        self.last_status = message.status
        if message.command == 1 and message.status == 0 and message.payload is not None:
            self.session_flags = message.payload.session_flags
        return super()._updateState_SMB2(message)


class PysmbClient:
    """Implements SmbClient."""

    name = "pysmb"
    dialect = "2.002"

    def __init__(self, login: Login) -> None:
        """Log in and connect to the share. Raises SmbRefused, SmbGone."""
        self._login = login
        self._session = _logged_in(login)
        self._sock: socket.socket = self._session.sock
        self._credits = 1
        self._next_id = self._session.mid + 1
        self._kept: deque[tuple[wire.Message, bytes]] = deque()
        self._tree = 0
        try:
            self._tree = self._connect_tree()
        except BaseException:
            self.close()
            raise

    @property
    def guest(self) -> bool:
        """Whether the session is a guest's or nobody's (MS-SMB2 2.2.6)."""
        return bool(self._session.session_flags & 0x3)

    @property
    def signed(self) -> bool:
        """Whether both sides sign."""
        return bool(self._session.is_signing_active)

    def answers(self, paths: Sequence[str]) -> list[Answer]:
        """Ask for many descriptors, in as many packets at once as there are credits."""
        found: list[Answer] = []
        waiting: deque[list[int]] = deque()
        for path in paths:
            requests = question(path)
            while waiting and (self._credits < len(requests) or len(waiting) >= _IN_FLIGHT):
                found.append(as_answer(self._replies(waiting.popleft())))
            waiting.append(self._send(requests))
        found += [as_answer(self._replies(ids)) for ids in waiting]
        return found

    def maximal_access(self, path: str) -> int | None:
        """Ask for the session's own rights with an open (MS-SMB2 2.2.13.2.5)."""
        ids = self._send([(wire.CREATE, wire.create(path, maximal=True)), (wire.CLOSE, wire.close())])
        status, body = self._replies(ids)[0]
        return None if status else wire.opened(body).maximal_access

    def read(self, path: str, most: int) -> bytes:
        """Read a file's text. Raises PermissionError if it is refused."""
        pieces: list[bytes] = []
        at = 0
        while at < most:
            length = min(_BLOCK, most - at)
            opening = (wire.CREATE, wire.create(path, wire.READ_TEXT))
            ids = self._send([opening, (wire.READ, wire.read(at, length)), (wire.CLOSE, wire.close())])
            (refused, _), (status, body), _ = self._replies(ids)
            if refused or status not in (0, wire.END_OF_FILE):
                raise PermissionError(13, "the file server refused the text")
            piece = b"" if status else wire.text(body)
            pieces.append(piece)
            at += len(piece)
            if len(piece) < length:
                break
        return b"".join(pieces)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(Exception):
            self._session.close()

    def _connect_tree(self) -> int:
        target = rf"\\{self._login.host}\{self._login.tree}"
        ids = self._send([(wire.TREE_CONNECT, wire.tree_connect(target))])
        message, _ = self._await(ids[0])
        if message.status:
            raise _refused_tree(self._login, message.status)
        return message.tree_id

    def _send(self, requests: Sequence[tuple[int, bytes]]) -> list[int]:
        """Send requests as one packet; return their ids. Waits for credits if it must."""
        while self._credits < len(requests):
            if not self._ask_for_credits():
                raise SmbGone("The file server grants too few credits to be asked.")
        ids, parts = [], []
        for number, (command, body) in enumerate(requests):
            ids.append(self._next_id)
            parts.append(self._message(command, body, first=number == 0, last=number == len(requests) - 1))
            self._next_id += 1
        self._credits -= len(requests)
        packet = b"".join(parts)
        try:
            self._sock.sendall(struct.pack(">I", len(packet)) + packet)
        except OSError as error:
            raise SmbGone(f"The connection to {self._login.host} broke off ({error}).") from error
        return ids

    def _message(self, command: int, body: bytes, *, first: bool, last: bool) -> bytes:
        flags = (0 if first else wire.RELATED) | (wire.SIGNED if self.signed else 0)
        session = (self._session.session_id, self._tree)
        head = wire.header(command, self._next_id, session, credits=_CREDITS, flags=flags)
        padding = b"" if last else b"\0" * (-len(body) % 8)
        raw = head + body + padding
        if not last:
            raw = raw[:20] + struct.pack("<I", len(raw)) + raw[24:]
        return raw[:48] + self._signature(raw) + raw[64:] if self.signed else raw

    def _signature(self, raw: bytes) -> bytes:
        return hmac.new(self._session.signing_session_key, raw[:48] + _ZEROS + raw[64:], sha256).digest()[:16]

    def _ask_for_credits(self) -> bool:
        """With the one credit that is always left, ask for more (an echo)."""
        before = self._credits
        if before < 1:
            return False
        self._await(self._send([(_ECHO, struct.pack("<HH", 4, 0))])[0])
        return self._credits > before

    def _replies(self, ids: Sequence[int]) -> list[tuple[int, bytes]]:
        return [(message.status, message.body) for message, _ in map(self._await, ids)]

    def _await(self, message_id: int) -> tuple[wire.Message, bytes]:
        """The answer to one request; answers that come out of order are kept."""
        for number, (message, raw) in enumerate(self._kept):
            if message.message_id == message_id:
                del self._kept[number]
                return message, raw
        while True:
            arrived = self._receive()
            wanted = None
            for message, raw in arrived:
                if message.message_id == message_id:
                    wanted = (message, raw)
                else:
                    self._kept.append((message, raw))
            if wanted is not None:
                return wanted

    def _receive(self) -> list[tuple[wire.Message, bytes]]:
        try:
            length = struct.unpack(">I", self._exactly(4))[0] & 0xFFFFFF
            found = wire.unpack(self._exactly(length))
        except (OSError, ValueError) as error:
            raise SmbGone(f"The connection to {self._login.host} broke off ({error}).") from error
        for message, raw in found:
            self._credits += message.credits
            if self.signed and message.status != wire.PENDING and self._signature(raw) != message.signature:
                raise SmbGone(f"An answer of {self._login.host} carries a wrong signature.")
        return [one for one in found if one[0].status != wire.PENDING]

    def _exactly(self, length: int) -> bytes:
        pieces = bytearray()
        while len(pieces) < length:
            piece = self._sock.recv(length - len(pieces))
            if not piece:
                raise ConnectionResetError("closed by the server")
            pieces += piece
        return bytes(pieces)


def _logged_in(login: Login) -> _Connection:
    domain, name = login.account
    session = _Connection(
        name, login.password, "notewarden", login.host, domain, use_ntlm_v2=True, is_direct_tcp=True
    )
    try:
        good = session.connect(login.host, login.port, timeout=login.timeout_s)
    except (OSError, SMBTimeout) as error:
        session.close()
        if isinstance(error, ConnectionError) and session.sock is not None and session.has_negotiated:
            raise _demands_more(login) from error
        raise _unreachable(login, error) from error
    except (NotConnectedError, ProtocolError, AssertionError, ValueError, struct.error) as error:
        session.close()
        raise _demands_more(login, session.last_status) from error
    if not good:
        session.close()
        status = session.last_status or LOGON_FAILURE
        raise refused_account(login, status)
    if not session.isUsingSMB2:
        session.close()
        raise SmbRefused(
            f"{login.host} speaks only SMB 1, no longer used; set its `server max protocol` to SMB3."
        )
    return session


def _unreachable(login: Login, error: Exception) -> SmbRefused:
    told = getattr(error, "strerror", None) or "no answer"
    return SmbRefused(
        f"{login.host} port {login.port} cannot be reached ({told}); check server and port in [share.acl].",
        unreachable=True,
    )


def _demands_more(login: Login, status: int = 0) -> SmbRefused:
    if why_no_login(status):
        return refused_account(login, status)
    if status == ACCESS_DENIED:
        told = "encrypted sessions are demanded there (`smb encrypt = required`), which pysmb does not speak"
    else:
        word = f"NT status {status:#010x}" if status else "it closed the connection"
        told = f"its `server min protocol` is above SMB 2.002, all that pysmb speaks ({word})"
    return SmbRefused(
        f'{login.host} refuses this client: {told}; set client = "auto" or "smbprotocol" in [share.acl].',
        demands_more=True,
        status=status,
    )


def _refused_tree(login: Login, status: int) -> SmbRefused:
    if status == BAD_NETWORK_NAME:
        return SmbRefused(
            f"{login.host} has no share {login.tree!r}; correct share in [share.acl].", status=status
        )
    if status == ACCESS_DENIED:
        return SmbRefused(
            f"{login.host} refuses {login.username!r} share {login.tree!r}: admit that account, or where "
            "the share demands encryption (`smb encrypt = required`), which pysmb does not speak, "
            'set client = "auto" or "smbprotocol" in [share.acl].',
            demands_more=True,
            status=status,
        )
    return SmbRefused(
        f"{login.host} refuses the share {login.tree!r} (NT status {status:#010x}).", status=status
    )
