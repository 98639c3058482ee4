"""A real server for the tests: one per run, shared by its workers; a database of its own for each test."""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from db import bootstrap, migrate
from db.pool import OWNER, READER, Database
from db.server import EmbeddedServer, ServerHandle

_TEMPLATE = "migrated"


@pytest.fixture(scope="session")
def database_server(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[ServerHandle]:
    """The embedded server of this test run. Workers of one run share it; the last to end stops it."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    with EmbeddedServer.start(shared / "server") as server:
        yield server


@pytest.fixture(scope="session")
def template_database(database_server: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a migrated, empty database that nobody is connected to; made by the first worker."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if base.name.startswith("popen-") else base
    with open(folder / "template.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with admin(database_server) as conn:
            row = conn.execute(
                "select count(*) from pg_database where datname = %s and not datallowconn", [_TEMPLATE]
            )
            if row.fetchone() != (1,):
                _make_template(conn, database_server)
    return _TEMPLATE


def _make_template(conn: psycopg.Connection, server: ServerHandle) -> None:
    conn.execute(f"drop database if exists {_TEMPLATE} with (force)")
    conn.execute(f"create database {_TEMPLATE} owner {OWNER}")
    bootstrap.furnish(server.dsn(bootstrap.ADMIN, _TEMPLATE))
    with psycopg.connect(server.dsn(OWNER, _TEMPLATE), autocommit=True) as owner:
        migrate.migrate(owner)
    conn.execute(f"alter database {_TEMPLATE} allow_connections false")


def admin(server: ServerHandle, database: str = "postgres") -> psycopg.Connection:
    """A connection as the bootstrap superuser, for what only tests may do."""
    return psycopg.connect(server.dsn(bootstrap.ADMIN, database), autocommit=True)


@pytest.fixture
def empty_database(database_server: ServerHandle) -> Iterator[str]:
    """The name of a database that holds what the bootstrap makes and no schema."""
    with _created(database_server, "template1") as name:
        yield name


@pytest.fixture
def new_database(database_server: ServerHandle, template_database: str) -> Iterator[Callable[[], Database]]:
    """A function that gives one more migrated, empty database at each call; all go after the test."""
    with ExitStack() as stack:

        def make() -> Database:
            name = stack.enter_context(_created(database_server, template_database))
            dsns = database_server.dsn(OWNER, name), database_server.dsn(READER, name)
            return stack.enter_context(Database.from_dsns(*dsns))

        yield make


@pytest.fixture
def database(new_database: Callable[[], Database]) -> Database:
    """A migrated, empty database of this test alone, with its owner and its reader side."""
    return new_database()


@contextmanager
def _created(server: ServerHandle, template: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    with admin(server) as conn:
        conn.execute(f"create database {name} template {template} owner {OWNER}")
        bootstrap.furnish(server.dsn(bootstrap.ADMIN, name))  # a template does not pass on its privileges
        try:
            yield name
        finally:
            conn.execute(f"drop database {name} with (force)")
