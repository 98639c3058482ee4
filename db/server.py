"""The embedded PostgreSQL server: ours alone, shared by the processes that need it, gone with the last.

It listens on a Unix socket in a 0700 folder, never on TCP, and knows its peers by the kernel's word alone.
A use is a shared lock on ``server.lock``; starting and stopping happen under ``server.mutex``. A server left
behind by a killed process is found and used again, a data folder left by a killed server recovers by itself.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import psycopg

from db import postmaster
from db.bootstrap import ADMIN, bootstrap, is_bootstrapped
from db.cluster import Cluster, is_private, open_cluster, prepare
from db.errors import our_errors
from db.isolation import Isolation, choose_runner, runner_of
from notewarden.errors import DatabaseUnavailable
from notewarden.log import get_logger

_log = get_logger(__name__)

_START_PATIENCE = 600.0  # seconds: a recovery after a crash reads up to all of max_wal_size
_STOP_PATIENCE = 60.0
_SETTLE_PATIENCE = 15.0  # what a recovery from the death of one process takes, and more
_TICK = 0.05


class ServerHandle:
    """A use of the running server. A context manager; `release` gives it back."""

    def __init__(self, cluster: Cluster, use: int) -> None:
        self._cluster = cluster
        self._use: int | None = use

    def dsn(self, role: str, database: str = "notewarden") -> str:
        """The connection string for `role` (notewarden or notewarden_reader)."""
        return self._cluster.dsn(role, database)

    def describe(self) -> str:
        """One sentence: who runs the server and whom that shuts out."""
        return self._cluster.runner.describe()

    def ensure(self) -> None:
        """Start the server again if it died, at this very moment too. Raises DatabaseUnavailable."""
        with _mutex(self._cluster):
            _ensure_running(self._cluster)

    def release(self) -> None:
        """Give the server back; the last user stops it and waits until it has stopped."""
        if self._use is None:
            return
        use, self._use = self._use, None
        try:
            with _mutex(self._cluster):
                if _lock(use, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    _stop(self._cluster)
        finally:
            os.close(use)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class EmbeddedServer:
    """Our own server for one state folder."""

    @staticmethod
    def start(state_dir: Path, isolation: Isolation | None = None) -> ServerHandle:
        """Make sure that the server of `state_dir` runs, making it at first use, and take a share in it.

        `isolation` overrides how it is set apart from other accounts (tests). Raises DatabaseUnavailable,
        or ConfigError for a state folder that is not ours.
        """
        cluster = open_cluster(state_dir, choose_runner(isolation))
        use = os.open(cluster.state_dir / "server.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            with _mutex(cluster):
                _lock(use, fcntl.LOCK_SH)
                _ensure_running(cluster)
        except BaseException:
            os.close(use)
            raise
        return ServerHandle(cluster, use)


@contextmanager
def _mutex(cluster: Cluster) -> Iterator[None]:
    fd = os.open(cluster.state_dir / "server.mutex", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        _lock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        return False
    return True


def _ensure_running(cluster: Cluster) -> None:
    """Start, or find running, the server, and see to it that its roles and database stand.

    A server that was killed a moment ago, or that recovers from the death of one of its processes, still
    looks as if it ran: it is asked again for a while.
    """
    deadline = time.monotonic() + _SETTLE_PATIENCE
    while True:
        found = _find(cluster)
        if not found:
            _start(cluster)
        try:
            return _furnish(cluster, made=not found)
        except DatabaseUnavailable:
            if time.monotonic() > deadline:
                raise
        time.sleep(_TICK)


def _furnish(cluster: Cluster, *, made: bool) -> None:
    with our_errors(), psycopg.connect(cluster.dsn(ADMIN, "postgres"), autocommit=True) as conn:
        if made or not is_bootstrapped(conn):
            bootstrap(conn, cluster.dsn(ADMIN, "notewarden"))


def _find(cluster: Cluster) -> bool:
    """Whether a server runs that can be used; one that is going, or that lost its socket, is waited out."""
    pid = postmaster.running(cluster.data)
    if pid is None:
        return False
    if postmaster.status(cluster.data) == "stopping":
        _wait_stopped(cluster, pid)
        return False
    ready = postmaster.wait_ready(pid, cluster.data, _START_PATIENCE)
    socket = postmaster.socket_folder(cluster.data).resolve()
    owner = cluster.data.stat().st_uid
    if ready and is_private(socket, owner) and (socket / ".s.PGSQL.5432").exists():
        cluster.socket, cluster.runner = socket, runner_of(owner)
        return True
    _stop(cluster)
    return False


def _start(cluster: Cluster) -> None:
    made = not cluster.data.exists()
    prepare(cluster)
    alive = postmaster.hold(cluster.data, _STOP_PATIENCE)
    if alive is None:
        raise DatabaseUnavailable(
            f"Processes of an earlier embedded server still work in {cluster.data}; end them, then try again."
        )
    try:
        postmaster.clear_stale(cluster.data, cluster.socket)
        pid = cluster.launch(alive)
    finally:
        os.close(alive)
    if not postmaster.wait_ready(pid, cluster.data, _START_PATIENCE):
        raise DatabaseUnavailable(cluster.why("did not start", cluster.start_log()))
    told = _log.info if made else _log.debug  # once, not with each command
    told("embedded database started", how=cluster.runner.describe())


def _stop(cluster: Cluster) -> None:
    if not postmaster.stop(cluster.data, _STOP_PATIENCE):
        _log.warning("embedded database still stopping", state_dir=str(cluster.state_dir))


def _wait_stopped(cluster: Cluster, pid: int) -> None:
    if not postmaster.wait_gone(pid, _STOP_PATIENCE):
        raise DatabaseUnavailable(
            f"The embedded database in {cluster.state_dir} is still stopping; try again in a minute."
        )
