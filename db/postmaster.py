"""The server's process: found by its ``postmaster.pid``, proved by its working folder, watched by a pidfd.

A pid file alone proves nothing: its number may be another process by now, as after a container's restart.
"""

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
    return pid if pid and _works_in(pid, data) and _alive(pid) else None


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
    with suppress(ProcessLookupError):
        fd = os.pidfd_open(pid)
        try:
            if running(data) == pid:  # the pidfd now pins the process that was checked
                signal.pidfd_send_signal(fd, signal.SIGINT)
        finally:
            os.close(fd)
    return wait_gone(pid, patience)


def clear_stale(data: Path, socket: Path, patience: float) -> bool:
    """Remove the pid files of a server that no longer runs; False while a process of it is still there.

    The server does so itself unless the number belongs to another process by now. Its children may outlive
    it for a moment, and a new server beside them would corrupt the data: nobody may be at work in `data`.
    """
    deadline = time.monotonic() + patience
    while _workers(data):
        if time.monotonic() > deadline:
            return False
        time.sleep(_TICK * 4)
    for stale in (data / "postmaster.pid", socket / ".s.PGSQL.5432.lock", socket / ".s.PGSQL.5432"):
        stale.unlink(missing_ok=True)
    return True


def _workers(data: Path) -> list[int]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and _works_in(pid, data) and _alive(pid)]


def _works_in(pid: int, data: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").samefile(data)
    except OSError:
        return False


def _alive(pid: int) -> bool:
    return not wait_gone(pid, 0)


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(errors="replace").splitlines()
    except OSError:
        return []
