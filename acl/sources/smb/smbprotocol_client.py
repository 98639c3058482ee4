"""Asking through smbprotocol: SMB up to 3.1.1, encryption, signatures that are checked. Slower than pysmb."""

from __future__ import annotations

import contextlib
import logging
import struct
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smbprotocol.connection import Connection
from smbprotocol.exceptions import SMBAuthenticationError, SMBException, SMBResponseException
from smbprotocol.open import SMB2ReadRequest
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from acl.sources.smb import wire
from acl.sources.smb.client import (
    Answer,
    Login,
    SmbGone,
    SmbRefused,
    as_answer,
    as_guest,
    question,
    refused_account,
)
from acl.sources.smb.status import ACCESS_DENIED, BAD_NETWORK_NAME, NOT_SUPPORTED, why_no_login

_IN_FLIGHT = 32
# What the library raises where an answer is not what it should be.
_BROKEN = (SMBException, OSError, ValueError, LookupError, TypeError, AttributeError, struct.error)
_ENOUGH_CREDITS = 512
_BLOCK = 65_536
_DIALECTS = {0x202: "2.002", 0x210: "2.1", 0x300: "3.0", 0x302: "3.0.2", 0x311: "3.1.1"}
logging.getLogger("smbprotocol").setLevel(logging.WARNING)


@dataclass(frozen=True)
class _Packed:
    """A request that is bytes already, in the shape smbprotocol sends."""

    COMMAND: int  # the library's own name
    body: bytes

    def pack(self) -> bytes:
        return self.body

    def __len__(self) -> int:
        return len(self.body)


class SmbprotocolClient:
    """Implements SmbClient."""

    name = "smbprotocol"

    def __init__(self, login: Login) -> None:
        """Log in and connect to the share. Raises SmbRefused, SmbGone."""
        self._login = login
        # Always signed: SMB 3.1.1 servers refuse an unsigned tree connect (MS-SMB2 3.3.5.7).
        self._connection = Connection(uuid.uuid4(), login.host, login.port, require_signing=True)
        try:
            self._session = self._log_in()
            self._tree = TreeConnect(self._session, rf"\\{login.host}\{login.tree}")
            self._connect_tree()
            self._connection.echo(sid=self._session.session_id, credit_request=_ENOUGH_CREDITS)
        except BaseException:
            self.close()
            raise

    @property
    def dialect(self) -> str:
        """The dialect, with the word "encrypted" where it is."""
        told = _DIALECTS.get(int(self._connection.dialect or 0), "unknown")
        sealed = self._session.encrypt_data or self._tree.encrypt_data
        return f"{told}, encrypted" if sealed else told

    @property
    def guest(self) -> bool:
        """False: a guest's session has no keys, so it is refused at the log-in."""
        return False

    def answers(self, paths: Sequence[str]) -> list[Answer]:
        """Ask for many descriptors, a few dozen packets at once."""
        found: list[Answer] = []
        waiting: deque[list[Any]] = deque()
        for path in paths:
            if len(waiting) >= _IN_FLIGHT:
                found.append(as_answer(self._replies(waiting.popleft())))
            waiting.append(self._send(question(path)))
        found += [as_answer(self._replies(sent)) for sent in waiting]
        return found

    def maximal_access(self, path: str) -> int | None:
        """Ask for the session's own rights with an open (MS-SMB2 2.2.13.2.5)."""
        sent = self._send([(wire.CREATE, wire.create(path, maximal=True)), (wire.CLOSE, wire.close())])
        status, body = self._replies(sent)[0]
        return None if status else wire.opened(body).maximal_access

    def read(self, path: str, most: int) -> bytes:
        """Read a file's text. Raises PermissionError if it is refused."""
        pieces: list[bytes] = []
        at = 0
        while at < most:
            length = min(_BLOCK, most - at)
            opening = _Packed(wire.CREATE, wire.create(path, wire.READ_TEXT))
            closing = _Packed(wire.CLOSE, wire.close())
            (refused, _), (status, body), _ = self._replies(
                self._send_all([opening, _reading(at, length), closing])
            )
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
            self._connection.disconnect(close=False, timeout=2)

    def _log_in(self) -> Session:
        login = self._login
        try:
            self._connection.connect(timeout=login.timeout_s)
            session = Session(
                self._connection,
                login.username,
                login.password,
                require_encryption=False,
                auth_protocol="ntlm",
            )
            session.connect()
        except _BROKEN as error:
            raise _refused_login(login, error) from error
        return session

    def _connect_tree(self) -> None:
        login = self._login
        try:
            self._tree.connect(require_secure_negotiate=True)
        except SMBResponseException as error:
            raise _refused_tree(login, int(error.status)) from error
        except _BROKEN as error:
            raise SmbRefused(f"{login.host} refuses the share {login.tree!r} ({error}).") from error

    def _send(self, requests: Sequence[tuple[int, bytes]]) -> list[Any]:
        return self._send_all([_Packed(command, body) for command, body in requests])

    def _send_all(self, requests: Sequence[Any]) -> list[Any]:
        session, tree = self._session.session_id, self._tree.tree_connect_id
        try:
            sent: list[Any] = self._connection.send_compound(list(requests), session, tree, related=True)
        except _BROKEN as error:
            raise SmbGone(f"The connection to {self._login.host} broke off ({error}).") from error
        return sent

    def _replies(self, sent: Sequence[Any]) -> list[tuple[int, bytes]]:
        return [self._reply(one) for one in sent]

    def _reply(self, request: Any) -> tuple[int, bytes]:
        try:
            answer = self._connection.receive(request, timeout=self._login.timeout_s, resolve_symlinks=False)
        except SMBResponseException as error:
            return int(error.status), b""
        except _BROKEN as error:
            raise SmbGone(f"The connection to {self._login.host} broke off ({error}).") from error
        return 0, bytes(answer["data"].get_value())


def _reading(offset: int, length: int) -> SMB2ReadRequest:
    request = SMB2ReadRequest()
    request["length"], request["offset"] = length, offset
    request["file_id"], request["padding"] = wire.SAME_FILE, b"\x50"
    return request


def _refused_login(login: Login, error: Exception) -> SmbRefused:
    status = int(error.status) if isinstance(error, SMBResponseException) else 0
    if why_no_login(status):
        return refused_account(login, status)
    if isinstance(error, SMBAuthenticationError):
        return SmbRefused(f"{login.host} and smbprotocol cannot agree on a log-in ({error}).", status=status)
    if "guest" in str(error):
        return SmbRefused(as_guest(login), guest=True)
    if isinstance(error, OSError) or "Failed to connect" in str(error):
        return SmbRefused(
            f"{login.host} port {login.port} cannot be reached ({error}); check server and port in "
            "[share.acl].",
            unreachable=True,
        )
    if status == NOT_SUPPORTED:
        return SmbRefused(
            f"{login.host} and smbprotocol share no dialect of SMB 2 or 3: look at the server's `server min "
            "protocol` and `server max protocol`.",
            status=status,
        )
    word = " ".join(str(error).split())[:200]
    return SmbRefused(f"{login.host} cannot be used over SMB ({word}).", status=status)


def _refused_tree(login: Login, status: int) -> SmbRefused:
    if status == BAD_NETWORK_NAME:
        return SmbRefused(
            f"{login.host} has no share {login.tree!r}; correct share in [share.acl].", status=status
        )
    if status == ACCESS_DENIED:
        return SmbRefused(
            f"{login.host} refuses {login.username!r} the share {login.tree!r}: admit that account (`valid "
            "users`, the share's own permissions).",
            status=status,
        )
    return SmbRefused(
        f"{login.host} refuses the share {login.tree!r} (NT status {status:#010x}).", status=status
    )
