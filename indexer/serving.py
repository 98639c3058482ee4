"""`notewarden run` as a process: start-up, signals, and an end within 5 seconds."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from db.pool import Database
from indexer.daemon import Daemon, Means
from indexer.latedoor import late_door
from indexer.metrics import metrics_door
from indexer.setup import equip
from indexer.watching import watchers
from notewarden import systemd
from notewarden.errors import DatabaseUnavailable
from notewarden.log import configure_logging, get_logger
from notewarden.settings import Settings, find_config, load_settings

_START_PATIENCE_S = 60.0
_START_PAUSE_S = 2.0
_INTERRUPTED = 130

_log = get_logger(__name__)


def run_daemon(config: Path | None) -> int:
    """Run until SIGTERM (exit code 0) or SIGINT (130); SIGHUP reads the configuration again.

    Raises ConfigError, SecondDaemon, and DatabaseUnavailable where the database is not there at the start
    even after a minute. Where the worker does not end in time, as on a hanging share, this never returns.
    """
    file = find_config(config)
    settings = load_settings(file)
    configure_logging(settings.log)
    equip(settings)  # better no start than a half one
    with ExitStack() as stack:
        database = stack.enter_context(_opened(settings))
        daemon = Daemon(settings, database, Means(lambda: load_settings(file), equip))
        code = stack.enter_context(_signals(daemon))
        _start(daemon)
        stack.enter_context(_doors(daemon, database))
        daemon.run()
    if not daemon.ended_in_time:
        sys.stderr.flush()
        os._exit(code[0])  # the worker hangs in a call that nothing can end; its transaction is rolled back
    return code[0]


@contextmanager
def _opened(settings: Settings) -> Iterator[Database]:
    deadline = time.monotonic() + _START_PATIENCE_S
    while True:
        try:
            database = Database.open(settings)
        except DatabaseUnavailable as error:
            if time.monotonic() >= deadline:
                raise
            systemd.notify(f"STATUS=Waiting for the database: {error}")
            _log.warning("database unavailable; trying again", reason=str(error))
            time.sleep(_START_PAUSE_S)
        else:
            break
    with database:
        yield database


def _start(daemon: Daemon) -> None:
    """Take the lock; our own earlier connection may hold it for a moment after a kill."""
    deadline = time.monotonic() + _START_PATIENCE_S
    while not daemon.stopping.is_set():
        try:
            return daemon.start()
        except DatabaseUnavailable:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_START_PAUSE_S)
    return None


@contextmanager
def _signals(daemon: Daemon) -> Iterator[list[int]]:
    """Let signals set the daemon's flags and wake its loop; yields the exit code, in a list of one."""
    code = [0]

    def stop(number: int, _: object) -> None:
        code[0] = _INTERRUPTED if number == signal.SIGINT else 0
        daemon.stopping.set()

    def reload(_number: int, _: object) -> None:
        daemon.reload_wanted.set()

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGHUP, reload)
    old_fd = signal.set_wakeup_fd(daemon.wake_fd, warn_on_full_buffer=False)
    try:
        yield code
    finally:
        signal.set_wakeup_fd(old_fd)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _doors(daemon: Daemon, database: Database) -> Iterator[None]:
    """Open what others may ask the daemon: its numbers, and the late check."""
    with late_door(lambda: daemon.settings, database), metrics_door(daemon, database), watchers(daemon):
        yield
