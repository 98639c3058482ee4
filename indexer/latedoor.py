"""The indexer's private socket for the late check: note ids in; freshness, compiled lists and states out.

Only the account that the answerer runs as is heard. What goes out holds no path, no password and no byte of a
note; whoever is captured on the other side learns who may read a note, and nothing of what is in it.
"""

from __future__ import annotations

import json
import os
import pwd
import socket
import socketserver
import stat
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from acl.directory import Directory, make_directory
from acl.live import to_wire
from db import latecheck
from db.pool import Database
from indexer.latecheck import LateCheck
from notewarden.errors import ConfigError, DirectoryUnreachable, NotewardenError
from notewarden.log import get_logger
from notewarden.settings import Settings

NAME = "late-check"
"""FileDescriptorName of the socket where systemd makes it."""

_log = get_logger(__name__)
_PATIENCE_S = 10.0
_MOST_BYTES = 1 << 18  # of a request
_MOST_NOTES = 10_000
_UCRED = struct.Struct("3i")
_FIRST_PASSED = 3  # systemd's SD_LISTEN_FDS_START


class Looker:
    """Answers for the configuration as it stands: another one than last time makes a new late check."""

    def __init__(self, settings: Callable[[], Settings], database: Database) -> None:
        self._settings = settings
        self._database = database
        self._lock = threading.Lock()
        self._made: tuple[Settings, LateCheck] | None = None

    def look(self, note_ids: Sequence[int]) -> dict[str, Any]:
        """Return the reply's JSON. Raises what directory and database raise."""
        with self._database.owner() as conn:
            notes = latecheck.indexed(conn, note_ids)
        found = self._check()(notes)
        return {"notes": {str(note_id): to_wire(now) for note_id, now in found.items()}}

    def _check(self) -> LateCheck:
        settings = self._settings()
        with self._lock:
            if self._made is None or self._made[0] is not settings:
                directory: Directory = make_directory(settings)
                self._made = (settings, LateCheck(settings, directory))
            return self._made[1]


@contextmanager
def late_door(settings: Callable[[], Settings], database: Database) -> Iterator[None]:
    """Answer late checks in threads of their own while the block runs; nothing where none is configured.

    `settings` gives the configuration that counts now; the socket stays where it was at the start. Raises
    ConfigError where the socket cannot be made or the answerer's account does not exist.
    """
    answerer = settings().answerer
    if answerer.late_check_socket is None:
        yield
        return
    allowed = _uid_of(answerer.user)
    with _listening(answerer.late_check_socket, allowed) as door, _Server(door) as server:
        server.allowed, server.looker = allowed, Looker(settings, database)
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="late check", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    allowed: int
    looker: Looker

    def __init__(self, door: socket.socket) -> None:
        super().__init__("", _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = door

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A peer that breaks off costs nobody else anything."""
        _log.warning("late check broken off")

    def server_close(self) -> None:
        """The socket is closed, and where it is ours removed, by who made it."""


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        line: socket.socket = self.request
        line.settimeout(_PATIENCE_S)
        uid = _UCRED.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))[1]
        if uid != self.server.allowed:
            _log.warning("late check refused", uid=uid)
            return
        with suppress(OSError):
            line.sendall(json.dumps(self._reply(line)).encode())

    def _reply(self, line: socket.socket) -> dict[str, Any]:
        try:
            return self.server.looker.look(_note_ids(_first_line(line)))
        except DirectoryUnreachable:
            return {"error": "directory"}
        except NotewardenError as error:
            _log.warning("late check failed", reason=str(error))
            return {"error": "failed"}
        except ValueError:
            return {"error": "request"}


def _first_line(line: socket.socket) -> bytes:
    got = b""
    while b"\n" not in got and len(got) <= _MOST_BYTES:
        piece = line.recv(1 << 16)
        if not piece:
            break
        got += piece
    return got


def _note_ids(raw: bytes) -> list[int]:
    """The ids that a request names. Raises ValueError for anything but a short list of whole numbers."""
    try:
        told = json.loads(raw)
    except RecursionError:
        raise ValueError("no such request") from None
    ids = told.get("notes") if isinstance(told, dict) and len(told) == 1 else None
    if not isinstance(ids, list) or len(ids) > _MOST_NOTES:
        raise ValueError("no such request")
    if not all(type(one) is int and 0 < one < 1 << 63 for one in ids):
        raise ValueError("no such note")
    return ids


def _uid_of(user: str) -> int:
    if not user:
        return os.geteuid()
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        raise ConfigError(f'[answerer] user "{user}" is no account of this machine; create it.') from None


@contextmanager
def _listening(path: Path, owner: int) -> Iterator[socket.socket]:
    """Yield the socket that systemd passed on, else one of our own at `path`, 0600 and the answerer's."""
    passed = _passed_on()
    if passed is not None:
        with passed:
            yield passed
        return
    _clear(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        before = os.umask(0o177)
        try:
            door.bind(os.fspath(path))
            if owner != os.geteuid():
                os.chown(path, owner, -1)
        except OSError as error:
            raise ConfigError(
                f"The socket {path} cannot be made for uid {owner}: {error.strerror or error}; let systemd "
                "make it, or run both services as one account."
            ) from error
        finally:
            os.umask(before)
        door.listen(64)
        try:
            yield door
        finally:
            with suppress(OSError):
                path.unlink()


def _passed_on() -> socket.socket | None:
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    names = os.environ.get("LISTEN_FDNAMES", "").split(":")
    return socket.socket(fileno=_FIRST_PASSED + names.index(NAME)) if NAME in names else None


def _clear(path: Path) -> None:
    """Remove what a dead indexer left behind, and nothing else; the daemon's lock keeps a second one away."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ConfigError(f"{path} exists and is no socket; set another [answerer] late_check_socket.")
        path.unlink()
