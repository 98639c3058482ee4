"""The daemon's numbers for Prometheus, on a private door of this machine: no note, no path, no text."""

from __future__ import annotations

import os
import socket
import socketserver
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from db.pool import Connection, Database
from indexer.daemon import Daemon
from indexer.status import ShareState, Status, read_status
from notewarden.errors import ConfigError, DatabaseUnavailable
from notewarden.log import get_logger

_log = get_logger(__name__)

_STATES = ("pending", "parked", "unreadable", "skipped")


class Numbers:
    """A Prometheus collector: what the daemon knows, and how the index stands at the moment of the look."""

    def __init__(self, daemon: Daemon, look: Callable[[], Status | None]) -> None:
        self._daemon = daemon
        self._look = look

    def collect(self) -> Iterator[Metric]:
        """Yield every family; those of the index are absent while there is no database."""
        yield from self._of_daemon()
        status = self._look()
        yield _gauge("notewarden_database_up", "1 while the database answers.", status is not None)
        if status is not None:
            yield _gauge("notewarden_healthy", "1 while nothing needs a look.", status.healthy)
            yield from _of_shares(status.shares)
            yield _of_notes(status)

    def _of_daemon(self) -> Iterator[Metric]:
        state = self._daemon.state()
        about = GaugeMetricFamily("notewarden_build", "The version that runs.", labels=["version"])
        about.add_metric([version("notewarden")], 1)
        yield about
        refused = state["configuration"] != "as loaded"
        yield _gauge("notewarden_configuration_refused", "1 after a reload was refused.", refused)
        faults = GaugeMetricFamily(
            "notewarden_fault_failures", "Failures in a row, by what fails.", labels=["what"]
        )
        for what, fault in state["faults"].items():
            faults.add_metric([what], fault["failures"])
        yield faults
        done = CounterMetricFamily("notewarden_work", "What was done since the start.", labels=["what"])
        for what, count in sorted(self._daemon.work.totals.items()):
            done.add_metric([what], count)
        yield done


def _gauge(name: str, words: str, value: float | bool) -> Metric:
    family = GaugeMetricFamily(name, words)
    family.add_metric([], float(value))
    return family


def _of_shares(shares: Iterable[ShareState]) -> Iterator[Metric]:
    values: dict[str, tuple[str, Callable[[ShareState], float | None]]] = {
        "available": ("1 while the share can be polled.", lambda one: float(one.available)),
        "notes": ("Indexed notes.", lambda one: one.notes),
        "chunks": ("Indexed chunks.", lambda one: one.chunks),
        "coverage": ("The indexed part of what should be, 0 to 1.", lambda one: one.coverage),
        "held": ("Notes proved gone whose rows wait for a confirmation.", lambda one: one.held),
        "oldest_pending_seconds": ("How long the oldest note waits.", lambda one: one.oldest_pending_s),
        "polled_timestamp_seconds": ("Start of the last good poll.", lambda one: _seconds(one.last_poll)),
        "swept_timestamp_seconds": (
            "Start of the last complete reading of permissions.",
            lambda one: _seconds(one.last_acl_sweep),
        ),
        "max_age_seconds": (
            "From this age on permissions count no more.",
            lambda one: one.max_age.total_seconds(),
        ),
    }
    for name, (words, value) in values.items():
        family = GaugeMetricFamily(f"notewarden_share_{name}", words, labels=["share"])
        for share in shares:
            found = value(share)
            if found is not None:
                family.add_metric([share.share], found)
        yield family


def _of_notes(status: Status) -> Metric:
    family = GaugeMetricFamily(
        "notewarden_notes_in_trouble", "Notes by their trouble.", labels=["share", "state"]
    )
    for share in status.shares:
        states: list[str] = [one.state for one in status.notes if one.share == share.share]
        for state in _STATES:
            family.add_metric([share.share, state], states.count(state))
    return family


def _seconds(at: Any) -> float | None:
    return None if at is None else float(at.timestamp())


class _Look:
    """Reads the status over a connection of its own, so that a scrape never waits for the worker's."""

    def __init__(self, daemon: Daemon, database: Database) -> None:
        self._daemon, self._database = daemon, database
        self._conn: Connection | None = None
        self._lock = threading.Lock()

    def __call__(self) -> Status | None:
        with self._lock:
            try:
                if self._conn is None or self._conn.closed:
                    self._conn = self._database.listener()
                return read_status(self._conn, self._daemon.settings)
            except Exception as error:
                if not isinstance(error, DatabaseUnavailable):
                    _log.warning("the numbers cannot be read", fault=type(error).__name__)
                self.close()
                return None

    def close(self) -> None:
        if self._conn is not None:
            with suppress(Exception):
                self._conn.close()
        self._conn = None


@contextmanager
def metrics_door(daemon: Daemon, database: Database) -> Iterator[None]:
    """Serve `GET /metrics` while the block runs, at `[metrics] listen`; nothing where that is empty.

    A Unix socket opens for root and the daemon's own account and group; a port of this machine for everybody
    on it. Raises ConfigError where the door cannot be made.
    """
    place = daemon.settings.metrics.listen
    if place is None:
        yield
        return
    look = _Look(daemon, database)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Numbers(daemon, look))
    server = _open(place, registry)
    thread = threading.Thread(target=server.serve_forever, args=(0.2,), name="metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        look.close()
        if isinstance(place, Path):
            place.unlink(missing_ok=True)


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    timeout = 10

    def do_GET(self) -> None:
        """Answer with the numbers."""
        if self.path.split("?")[0] != "/metrics":
            self.send_error(404)
            return
        body = generate_latest(self.registry)
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE_LATEST)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        """A Unix socket's peer has no address."""
        return "local"

    def log_message(self, *_: Any) -> None:
        """Say nothing of each look."""


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class _PortServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True


class _Port6Server(_PortServer):
    address_family = socket.AF_INET6


def _open(place: Path | tuple[str, int], registry: CollectorRegistry) -> socketserver.BaseServer:
    handler = type("Handler", (_Handler,), {"registry": registry})
    try:
        if isinstance(place, tuple):
            return (_Port6Server if ":" in place[0] else _PortServer)(place, handler)
        _clear(place)
        before = os.umask(0o117)
        try:
            return _UnixServer(os.fspath(place), handler)
        finally:
            os.umask(before)
    except OSError as error:
        shown = place if isinstance(place, Path) else f"{place[0]}:{place[1]}"
        raise ConfigError(f"[metrics] listen: {shown} cannot be opened: {error.strerror or error}.") from None


def _clear(path: Path) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ConfigError(f"[metrics] listen: {path} exists and is no socket; name another.")
        path.unlink()
