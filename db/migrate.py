"""Numbered migrations, each in a transaction of its own, one process at a time."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, LiteralString, cast

import psycopg
from psycopg.errors import InsufficientPrivilege, UndefinedFile

from db.errors import our_errors
from db.queries import load
from notewarden.errors import ConfigError, DatabaseUnavailable, SchemaTooNew

Connection = psycopg.Connection[Any]

_LOCK = 0x6E6F7465  # "note": the advisory lock that only migrations take
_FILE = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
# Older ones let planner statistics tell of rows behind row security (CVE-2025-8713).
_OLDEST = {16: 160010, 17: 170006}
_OLDEST_VECTOR = (0, 8)


@dataclass(frozen=True)
class Migration:
    """One numbered file; `checksum` is the SHA-256 of its bytes."""

    version: int
    name: str
    sql: LiteralString
    checksum: bytes


@cache
def migrations(folder: Traversable | None = None) -> tuple[Migration, ...]:
    """The files ``NNNN_name.sql`` of `folder` (ours by default), in order; they must count 1, 2, 3 and so on.

    Raises ValueError for a gap, a number given twice or another name.
    """
    folder = folder or files("db") / "migrations"
    paths = sorted((p for p in folder.iterdir() if p.name.endswith(".sql")), key=lambda p: p.name)
    found = tuple(_read(path) for path in paths)
    if [m.version for m in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations in {folder} are not numbered 1, 2, 3 and so on")
    return found


def _read(path: Traversable) -> Migration:
    match = _FILE.fullmatch(path.name)
    if not match:
        raise ValueError(f"{path.name} is no migration; they are named NNNN_name.sql")
    raw = path.read_bytes()
    sql: LiteralString = path.read_text(encoding="utf-8")  # a file of this package, as good as a literal
    return Migration(int(match[1]), path.name, sql, hashlib.sha256(raw).digest())


def migrate(conn: Connection, wanted: Sequence[Migration] | None = None) -> int:
    """Bring the database to the newest schema and return how many migrations ran.

    `conn` is the owner's, in autocommit. Several processes may do so at once: one works, the others wait.
    Raises SchemaTooNew, or DatabaseUnavailable when an applied migration is not the one we ship.
    """
    wanted = migrations() if wanted is None else wanted
    with our_errors():
        if not _pending(conn, wanted):
            return 0
        queries = load("migrate")
        conn.execute(queries.lock, {"key": _LOCK})
        try:
            pending = _pending(conn, wanted)  # another process may have worked while we waited
            for migration in pending:
                _apply(conn, migration)
        finally:
            if not conn.closed:
                conn.execute(queries.unlock, {"key": _LOCK})
        return len(pending)


def _apply(conn: Connection, migration: Migration) -> None:
    queries = load("migrate")
    with conn.transaction():
        conn.execute(queries.prepare)
        conn.execute(migration.sql)
        values = {"version": migration.version, "name": migration.name, "checksum": migration.checksum}
        conn.execute(queries.record, values)


def check_schema(conn: Connection, wanted: Sequence[Migration] | None = None) -> None:
    """Raise SchemaTooNew or DatabaseUnavailable unless the database stands exactly at our schema."""
    with our_errors():
        if _pending(conn, migrations() if wanted is None else wanted):
            raise DatabaseUnavailable(
                "The database has no index of this version yet; run `notewarden sync` first."
            )


def _pending(conn: Connection, wanted: Sequence[Migration]) -> list[Migration]:
    applied = _applied(conn)
    if applied and max(applied) > len(wanted):
        raise SchemaTooNew(
            f"The database's schema has version {max(applied)}, this notewarden knows {len(wanted)}; "
            "upgrade notewarden."
        )
    for migration in wanted:
        if applied.get(migration.version, migration.checksum) != migration.checksum:
            raise DatabaseUnavailable(
                f"The database was made with another edition of {migration.name}; install the notewarden "
                "that made it, or index into a new database."
            )
    return [migration for migration in wanted if migration.version not in applied]


def _applied(conn: Connection) -> Mapping[int, bytes]:
    queries = load("migrate")
    if not _row(conn, queries.has_versions)[0]:
        return {}
    return {version: bytes(checksum) for version, checksum in conn.execute(queries.versions)}


def _row(conn: Connection, sql: LiteralString) -> tuple[Any, ...]:
    row = conn.execute(sql).fetchone()
    assert row is not None
    return cast(tuple[Any, ...], row)


def check_server(conn: Connection) -> None:
    """Raise ConfigError unless server and pgvector are new enough and the database is in UTF-8."""
    with our_errors():
        version, encoding, vector, _ = _row(conn, load("migrate").server_facts)
    if version < _OLDEST.get(version // 10000, 180000):
        raise ConfigError(
            f"The PostgreSQL server is version {version // 10000}.{version % 10000}; "
            "notewarden needs 16.10, 17.6, 18 or newer."
        )
    if encoding != "UTF8":
        raise ConfigError(f"The database is encoded in {encoding}; create one with ENCODING 'UTF8'.")
    if vector is None or tuple(int(part) for part in vector.split(".")[:2]) < _OLDEST_VECTOR:
        found = f"version {vector}" if vector else "not there"
        raise ConfigError(f"The database's extension vector is {found}; notewarden needs 0.8 or newer.")


def server_versions(conn: Connection) -> tuple[str, str]:
    """Return the versions of the server and of its extension vector, "none" where that is missing."""
    with our_errors():
        version, _, vector, _ = _row(conn, load("migrate").server_facts)
    return f"{version // 10000}.{version % 10000}", vector or "none"


def prepare_external(conn: Connection) -> None:
    """Make what a server that is not ours must hold before migrations: extension vector, the reader role.

    `conn` is the configured owner's, in autocommit. Raises ConfigError with the SQL that an admin must run
    where the owner may not do it, or when server, extension or encoding do not serve.
    """
    queries = load("migrate")
    with our_errors():
        _, _, vector, reader = _row(conn, queries.server_facts)
        if vector is None:
            _make(conn, queries.create_vector, "CREATE EXTENSION vector SCHEMA public;")
        if not reader:
            _make(conn, queries.create_reader, "CREATE ROLE notewarden_reader LOGIN;")
    check_server(conn)
    with our_errors():
        conn.execute(queries.close_database)


def _make(conn: Connection, sql: LiteralString, words: str) -> None:
    try:
        conn.execute(sql)
    except InsufficientPrivilege:
        raise ConfigError(
            f"An administrator of the PostgreSQL server must run, in our database: {words}"
        ) from None
    except UndefinedFile:
        raise ConfigError(
            "The PostgreSQL server lacks the extension pgvector; install version 0.8 or newer."
        ) from None
