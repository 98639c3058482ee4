"""The database as the rest of the program sees it: connections as the owner and as the reader."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Self

import psycopg
from pgvector.psycopg import register_vector
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

from db import migrate as schema
from db.errors import our_errors
from db.queries import load
from db.server import EmbeddedServer, ServerHandle
from notewarden.errors import ConfigError
from notewarden.settings import Settings

OWNER = "notewarden"
READER = "notewarden_reader"

Connection = psycopg.Connection[Any]

_MOST = 4  # connections of one role
_PATIENCE = 30.0  # seconds to wait for one of them
_CONNECT_PATIENCE = 10  # seconds, unless the connection string says otherwise
_READING_S = 30  # what one statement of a question may take; the owner's have no limit
_SESSION = "-c search_path=nw,app,public -c TimeZone=UTC"


class _Side:
    """The connections of one role.

    The first is a plain one: a one-shot command needs no more, it starts no threads, and where it cannot be
    made the true reason is known at once. A pool opens only when a second is wanted at the same time.
    """

    def __init__(self, dsn: Callable[[], str], revive: Callable[[], None], *, reader: bool) -> None:
        self._dsn = dsn
        self._revive = revive
        self._reader = reader
        self._first: Connection | None = None
        self._first_lent = Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._opening = Lock()

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        with our_errors():
            if not self._first_lent.acquire(blocking=False):
                with self._others().connection() as conn:
                    yield conn
                return
            try:
                yield self._take_first()
            finally:
                self._tidy_first()
                self._first_lent.release()

    def fresh(self) -> Connection:
        with our_errors():
            return self._connect_first()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
        if self._first is not None:
            self._first.close()

    def _take_first(self) -> Connection:
        if self._first is not None:
            try:
                _refresh(self._first)
            except psycopg.OperationalError:  # the server was started anew meanwhile
                self._first.close()
                self._first = None
        if self._first is None:
            self._first = self._connect_first()
        return self._first

    def _connect_first(self) -> Connection:
        try:
            conn = _connect(self._dsn_with_session())
        except psycopg.OperationalError:
            self._revive()
            conn = _connect(self._dsn_with_session())
        try:
            if self._reader:
                require_reader(conn)
        except BaseException:
            conn.close()
            raise
        return conn

    def _tidy_first(self) -> None:
        """A block that left a transaction open, or lost its connection, leaves nothing to the next."""
        conn = self._first
        if conn is not None and conn.info.transaction_status != TransactionStatus.IDLE:
            conn.close()
            self._first = None

    def _others(self) -> ConnectionPool[Connection]:
        with self._opening:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._dsn_with_session,
                    kwargs={"autocommit": True},
                    configure=register_vector,
                    check=_refresh,
                    min_size=0,
                    max_size=_MOST - 1,
                    timeout=_PATIENCE,
                    num_workers=1,
                    open=True,
                )
            return self._pool

    def _dsn_with_session(self) -> str:
        return _with_session(self._dsn(), _READING_S if self._reader else 0)


def _refresh(conn: Connection) -> None:
    conn.execute(load("connection").forget)


def _with_session(dsn: str, limit_s: int = 0) -> str:
    """`limit_s`: what one statement may take, in seconds; 0 for no limit."""
    given: dict[str, Any] = {"connect_timeout": _CONNECT_PATIENCE, **conninfo_to_dict(dsn)}
    session = f"{_SESSION} -c statement_timeout={limit_s}s"
    ours = {"options": session, "application_name": "notewarden", "client_encoding": "UTF8"}
    return make_conninfo(**given | ours)


def _connect(dsn: str) -> Connection:
    conn: Connection = psycopg.connect(dsn, autocommit=True)
    try:
        register_vector(conn)
    except psycopg.ProgrammingError:
        conn.close()
        raise ConfigError(
            "The database lacks the extension vector; run `notewarden sync` as its owner."
        ) from None
    return conn


def require_reader(conn: Connection) -> None:
    """Raise ConfigError unless row security binds this connection's role and nothing can lift it."""
    row = conn.execute(load("connection").reader_role).fetchone()
    assert row is not None
    current, session, superuser, bypasses, administers, member, owns = row
    faults = {
        f"is {current}, not {READER}": current != READER,
        f"logged in as {session}": session != READER,
        "is a superuser": superuser,
        "has BYPASSRLS": bypasses,
        "may create roles or databases, or replicate": administers,
        "is a member of another role": member,
        "owns objects": owns,
    }
    found = [words for words, holds in faults.items() if holds]
    if found:
        raise ConfigError(
            f"The database role for answers {', '.join(found)}, so row security would not bind it; "
            f"give {READER} no more than LOGIN, and check [database] reader_url."
        )


class Database:
    """Connections to one database. A context manager; threads may share it.

    Every connection is in autocommit: open transactions with ``conn.transaction()``. A psycopg error that
    leaves a ``with`` block of `owner` or `reader` does so as one of ours (db.errors).
    """

    def __init__(
        self, owner: Callable[[], str] | None, reader: Callable[[], str], server: ServerHandle | None = None
    ) -> None:
        """`owner`, `reader` give connection strings; `server`: our own server, given back at `close`."""
        self._server = server
        self._owner = None if owner is None else _Side(owner, self._revive, reader=False)
        self._reader = _Side(reader, self._revive, reader=True)

    @classmethod
    def open(cls, settings: Settings, *, migrate: bool | None = True) -> Self:
        """Open both sides, starting the embedded server if it is ours, and bring the schema up to date.

        With ``migrate=False`` a missing, older or newer schema is refused instead, with None it is not
        looked at.
        Raises DatabaseUnavailable, SchemaTooNew, ConfigError.
        """
        if settings.database.url == "embedded":
            database = cls._embedded(settings)
        else:
            if migrate:
                _prepare_external(settings.database.url)
            reader = _reader_url(settings)
            database = cls.from_dsns(settings.database.url, reader)
        if migrate is None:
            return database._checked(lambda conn: None)
        return database._checked(schema.migrate if migrate else schema.check_schema)

    @classmethod
    def open_reader(cls, settings: Settings) -> Self:
        """Open the reader's side alone. A missing, older or newer schema is refused; raises as `open`."""
        if settings.database.url == "embedded":
            database = cls._embedded(settings)
            database._owner = None
        else:
            reader = _reader_url(settings)
            database = cls(None, lambda: reader)
        return database._checked(schema.check_schema)

    @classmethod
    def from_dsns(cls, owner: str, reader: str) -> Self:
        """A database by its two connection strings, as it stands: nothing is started, migrated or checked."""
        return cls(lambda: owner, lambda: reader)

    @classmethod
    def _embedded(cls, settings: Settings) -> Self:
        server = EmbeddedServer.start(settings.state_dir)
        return cls(lambda: server.dsn(OWNER), lambda: server.dsn(READER), server)

    def _checked(self, check: Callable[[Connection], object]) -> Self:
        try:
            with self.reader() if self._owner is None else self.owner() as conn:
                check(conn)
        except BaseException:
            self.close()
            raise
        return self

    @contextmanager
    def owner(self) -> Iterator[Connection]:
        """Lend a connection as the role notewarden: the indexer's. Raises DatabaseUnavailable."""
        if self._owner is None:
            raise ConfigError("This process may use the database as its reader only.")
        with self._owner.lend() as conn:
            yield conn

    @contextmanager
    def reader(self) -> Iterator[Connection]:
        """Lend a connection as notewarden_reader, bound by row security and without a token.

        Raises DatabaseUnavailable, or ConfigError when the role could step past row security.
        """
        with self._reader.lend() as conn:
            yield conn

    def listener(self) -> Connection:
        """Return a connection as the owner that nobody else is lent, for the caller to close.

        For what lasts longer than one piece of work: a lock held, a channel listened to. Raises
        DatabaseUnavailable.
        """
        if self._owner is None:
            raise ConfigError("This process may use the database as its reader only.")
        return self._owner.fresh()

    def describe(self) -> str:
        """One sentence for `doctor`: which server this is, and whom it shuts out."""
        return "An external PostgreSQL server." if self._server is None else self._server.describe()

    def close(self) -> None:
        """Close every connection and give an embedded server back."""
        try:
            for side in (self._owner, self._reader):
                if side is not None:
                    side.close()
        finally:
            if self._server is not None:
                self._server.release()

    def _revive(self) -> None:
        if self._server is not None:
            self._server.ensure()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _prepare_external(url: str) -> None:
    with our_errors(), psycopg.connect(_with_session(url), autocommit=True) as conn:
        schema.prepare_external(conn)


def _reader_url(settings: Settings) -> str:
    """The configured one, or the owner's with the reader's name and without the owner's password."""
    if settings.database.reader_url:
        return settings.database.reader_url
    parts: dict[str, Any] = dict(conninfo_to_dict(settings.database.url))
    parts.pop("password", None)
    return make_conninfo(**parts | {"user": READER})
