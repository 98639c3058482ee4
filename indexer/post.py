"""The daemon's own connection: its lock, the requests that come in, and what it tells of itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from db import requests, runs
from db.errors import our_errors
from db.pool import Connection, Database
from db.requests import Request
from notewarden.errors import DatabaseUnavailable, NotewardenError

T = TypeVar("T")


class SecondDaemon(NotewardenError):
    """Another `notewarden run` holds this database."""


class Post:
    """One connection for the daemon's life. After it broke, `mend` makes another and takes the lock again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stack = ExitStack()
        self._conn: Connection | None = None
        self._run_id: int | None = None
        self.name = f"notewarden run {os.getpid()}@{socket.gethostname()}"[:63]

    @property
    def stands(self) -> bool:
        """Whether the connection stands, as far as is known."""
        return self._conn is not None

    def fileno(self) -> int | None:
        """Return what becomes readable when something was rung in."""
        return None if self._conn is None else self._conn.fileno()

    def mend(self) -> None:
        """Connect, become the daemon and listen.

        Raises SecondDaemon where another one is, DatabaseUnavailable where there is no database.
        """
        self.close()
        try:
            self._conn = self._become()
        except BaseException:
            self.close()
            raise

    def _become(self) -> Connection:
        conn = self._stack.enter_context(_closing(self._database.listener()))
        with our_errors():
            held = self._stack.enter_context(requests.daemon_lock(conn, self.name))
            if not held:
                self._refuse(conn)
            requests.listen(conn)
            requests.take_over(conn)
            if self._run_id is None:
                self._run_id, _ = runs.begin(conn, "daemon", daemon=True)
                runs.abandon(conn, self._run_id)
        return conn

    def heard(self) -> bool:
        """Take what was rung without waiting."""
        return self._with(requests.heard) or False

    def take(self) -> Request | None:
        """Take up the next request."""
        return self._with(requests.take)

    def progress(self, request: Request, progress: Mapping[str, Any]) -> None:
        """Show how far a request is."""
        self._with(lambda conn: requests.tell(conn, request.request_id, progress))

    def finish(self, request: Request, result: Mapping[str, Any], exit_code: int) -> bool:
        """Record the end of a request; tells whether that could be done."""

        def work(conn: Connection) -> bool:
            requests.finish(conn, request.request_id, result, exit_code)
            return True

        return self._with(work) or False

    def give_back(self, request: Request) -> bool:
        """Let a request wait again; tells whether that could be done."""

        def work(conn: Connection) -> bool:
            requests.give_back(conn, request.request_id)
            return True

        return self._with(work) or False

    def tell(self, state: dict[str, Any]) -> None:
        """Record what the daemon does, for `notewarden status`."""
        run_id = self._run_id
        if run_id is not None:
            self._with(lambda conn: runs.tell(conn, run_id, state))

    def end(self, state: dict[str, Any]) -> None:
        """Record that the daemon ended in order."""
        run_id = self._run_id
        if run_id is not None:
            self._with(lambda conn: runs.end(conn, run_id, state, 0))

    def close(self) -> None:
        """Give lock and connection back."""
        self._conn = None
        stack, self._stack = self._stack, ExitStack()
        try:
            stack.close()
        except DatabaseUnavailable:
            return

    def _with(self, work: Callable[[Connection], T]) -> T | None:
        """Do it on the connection; a connection that breaks is dropped, for `mend` to make another."""
        if self._conn is None:
            return None
        try:
            with our_errors():
                return work(self._conn)
        except DatabaseUnavailable:
            self.close()
            return None

    def _refuse(self, conn: Connection) -> None:
        holder = requests.daemon(conn)
        if holder is None:
            raise DatabaseUnavailable("The database is just being left by another daemon; try again.")
        if holder.name == self.name:
            raise DatabaseUnavailable("The database still holds our earlier connection; it goes by itself.")
        since = holder.since.strftime("%Y-%m-%d %H:%M:%S UTC")
        raise SecondDaemon(
            f"Another indexer is the daemon of this database: {holder.name}, connected since {since}; stop "
            "that one first, or use `notewarden status` to see what it does."
        )


@contextmanager
def _closing(conn: Connection) -> Iterator[Connection]:
    try:
        yield conn
    finally:
        conn.close()
