"""The Unix socket of the service, and who stands at its other end, as the kernel says."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from answerer.identity import peer_uid
from notewarden.errors import ConfigError, NotewardenError

PEER = "notewarden.peer_uid"
"""The key in the ASGI scope under which the peer's uid stands; no request can set it."""

_FIRST_PASSED = 3  # systemd's SD_LISTEN_FDS_START
_BACKLOG = 128


class PeerProtocol(H11Protocol):
    """uvicorn's HTTP protocol, with the connection's peer uid put into each request's scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask the kernel once for each connection, before anything is read from it."""
        super().connection_made(transport)
        connection: socket.socket = transport.get_extra_info("socket")
        self.app = _WithPeer(self.app, peer_uid(connection))


class _WithPeer:
    """An ASGI application that knows who its connection belongs to."""

    def __init__(self, app: Any, uid: int) -> None:
        self._app = app
        self._uid = uid

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app({**scope, PEER: self._uid}, receive, send)


@contextmanager
def listen(path: Path) -> Iterator[socket.socket]:
    """Yield the listening socket: the one systemd passed on, else a new one at `path`, removed afterwards.

    Everybody on this machine may connect; who they are decides what they get. Raises ConfigError if the
    socket cannot be made there, NotewardenError if another answerer listens on it.
    """
    passed = _passed_on()
    if passed is not None:
        with passed:
            yield passed
        return
    _clear(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        try:
            door.bind(os.fspath(path))
            path.chmod(0o666)
        except OSError as error:
            raise ConfigError(f"The socket {path} cannot be made: {error.strerror or error}.") from error
        ours = path.lstat()
        door.listen(_BACKLOG)
        try:
            yield door
        finally:
            with suppress(OSError):
                if os.path.samestat(path.lstat(), ours):
                    path.unlink()


def _passed_on() -> socket.socket | None:
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        return None
    door = socket.socket(fileno=_FIRST_PASSED)
    if door.family != socket.AF_UNIX:
        raise ConfigError("systemd passed on a socket that is no Unix socket; the service needs one.")
    return door


def _clear(path: Path) -> None:
    """Remove what a dead answerer left behind, and nothing else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"The socket {path} cannot be made: {error.strerror}.") from error
    if not stat.S_ISSOCK(found.st_mode):
        raise ConfigError(f"{path} exists and is no socket; remove it or set another [answerer] socket.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as error:
            raise ConfigError(f"The socket {path} cannot be used: {error.strerror}.") from error
    raise NotewardenError(f"Another answerer already listens on {path}.")
