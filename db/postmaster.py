"""The server's process: proved alive by a lock it inherits, found by ``postmaster.pid``, watched by a pidfd.

A pid file alone proves nothing: its number may be another process by now, as after a container's restart.
So the server is started with an open, locked file, which it and all its children hold until the last of
them has ended. /proc would not do: without CAP_SYS_PTRACE root may not look at another account's process.
"""

import fcntl
import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path

_TICK = 0.005  # seconds between two looks at the pid file
_PID_LINE, _SOCKET_LINE, _STATUS_LINE = 0, 4, 7  # PostgreSQL, src/include/utils/pidfile.h


def running(data: Path) -> int | None:
    """The process id of the live postmaster of data folder `data`, or None."""
    lines = _pid_file(data)
    pid = int(lines[_PID_LINE]) if lines and lines[_PID_LINE].isdigit() else 0
    return pid if pid and _held(data) and not wait_gone(pid, 0) else None


def _held(data: Path) -> bool:
    """Whether any process of the server lives, its children included."""
    try:
        fd = os.open(_lock_of(data), os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def hold(data: Path, patience: float) -> int | None:
    """Take the lock that a new server is to inherit, as a file descriptor of the caller's to close.

    None while a process of an earlier server lives, after `patience` seconds: children outlive a killed
    server for a moment, and a new server beside them would corrupt the data.
    """
    fd = os.open(_lock_of(data), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(_TICK)
                continue
            os.close(fd)
            return None
        return fd


def _lock_of(data: Path) -> Path:
    return data.parent / "server.alive"


def status(data: Path) -> str:
    """What the pid file says: starting, ready, stopping, or "" before it says anything."""
    lines = _pid_file(data)
    return lines[_STATUS_LINE].strip() if len(lines) > _STATUS_LINE else ""


def socket_folder(data: Path) -> Path:
    """The folder of the live server's socket, as it was started with."""
    lines = _pid_file(data)
    return data / (lines[_SOCKET_LINE] if len(lines) > _SOCKET_LINE else "")


def wait_ready(pid: int, data: Path, patience: float) -> bool:
    """Wait until the server takes connections; False when it ended, or after `patience` seconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        lines = _pid_file(data)
        if lines[:1] == [str(pid)] and status(data) == "ready":
            return True
        if wait_gone(pid, _TICK):
            return False
    return False


def wait_gone(pid: int, patience: float) -> bool:
    """Wait until process `pid` has ended; False when it still runs after `patience` seconds."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        waiting = select.poll()
        waiting.register(fd, select.POLLIN)
        return bool(waiting.poll(patience * 1000))
    finally:
        os.close(fd)


def stop(data: Path, patience: float) -> bool:
    """Fast shutdown: transactions are rolled back, a checkpoint written. True when no server is left."""
    pid = running(data)
    if pid is None:
        return True
    with suppress(ProcessLookupError, FileNotFoundError):
        fd = os.pidfd_open(pid)
        try:
            # The pidfd pins the process that is checked here; the file's word is not enough to signal one.
            owned = Path(f"/proc/{pid}").stat().st_uid == data.stat().st_uid
            if owned and running(data) == pid:
                signal.pidfd_send_signal(fd, signal.SIGINT)
        finally:
            os.close(fd)
    return wait_gone(pid, patience) and _wait_free(data, patience)


def _wait_free(data: Path, patience: float) -> bool:
    """Wait until the server's children have ended too: while one holds the lock, the pid file is believed."""
    lock = hold(data, patience)
    if lock is not None:
        os.close(lock)
    return lock is not None


def clear_stale(data: Path, socket: Path) -> None:
    """Remove what a killed server left; only for the holder of its lock (`hold`).

    The server does so itself unless the number in its files belongs to another process by now.
    """
    for stale in (data / "postmaster.pid", socket / ".s.PGSQL.5432.lock", socket / ".s.PGSQL.5432"):
        stale.unlink(missing_ok=True)


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(errors="replace").splitlines()
    except OSError:
        return []
