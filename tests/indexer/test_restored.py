"""A restored database serves nobody until one full sweep, whichever way it was restored."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from share_world import ShareWorld
from support.database import _created, admin

from db.binaries import program
from db.bootstrap import ADMIN
from db.pool import OWNER, READER, Database
from db.server import ServerHandle
from notewarden.settings import Settings


@pytest.fixture
def world(tmp_path: Path, database: Database, settings_factory: Callable[..., Settings]) -> ShareWorld:
    world = ShareWorld(tmp_path, database, settings_factory)
    world.write("open.md")
    world.write("closing.md")
    world.sync()
    assert world.readable("alice") == {"open.md", "closing.md"}
    return world


def name_of(database: Database) -> str:
    with database.owner() as conn:
        return conn.info.dbname


def run(name: str, *arguments: str) -> bytes:
    done = subprocess.run([program(name), *arguments], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def restored_whole(server: ServerHandle, source: str, dump: Path) -> str:
    """pg_dump and pg_restore of everything, as docs/backup.md says."""
    run("pg_dump", "-Fc", "-f", str(dump), "-d", server.dsn(ADMIN, source))
    name = f"test_{uuid.uuid4().hex}"
    with admin(server) as conn:
        conn.execute(f"create database {name} template template0 owner {OWNER}")
    run("pg_restore", "--exit-on-error", "-d", server.dsn(ADMIN, name), str(dump))
    return name


def restored_rows(server: ServerHandle, source: str, dump: Path, empty: str) -> None:
    """The rows alone, into a schema that was migrated before."""
    run("pg_dump", "-Fc", "--data-only", "-f", str(dump), "-d", server.dsn(ADMIN, source))
    with psycopg.connect(server.dsn(OWNER, empty), autocommit=True) as conn:
        for table in ("schema_version", "generation"):
            conn.execute(f"delete from nw.{table}")
        conn.execute("select nw.add_generation('x', 'x', 'x', 16, 'serving')")
        conn.execute("delete from nw.generation")
    run("pg_restore", "--disable-triggers", "-d", server.dsn(ADMIN, empty), str(dump))


@contextmanager
def at(server: ServerHandle, world: ShareWorld, name: str) -> Iterator[ShareWorld]:
    """The same world on another database."""
    with Database.from_dsns(server.dsn(OWNER, name), server.dsn(READER, name)) as database:
        world.database = database
        world.restart()
        yield world


def closed_until_swept(world: ShareWorld) -> None:
    assert world.one("select count(*) from nw.note") == 2, "the rows are there"
    assert world.readable("alice") == set(), "a restored database serves nobody"
    (world.root / "closing.md").chmod(0o600)  # before the sweep, and after the dump
    report = world.sync()
    assert report.hashed == 2, "every note was read again, whatever its times say"
    assert world.readable("alice") == {"open.md"}
    assert world.embedder.texts == [], "and nothing embedded again"


def test_a_dump_restored_as_a_whole(world: ShareWorld, database_server: ServerHandle, tmp_path: Path) -> None:
    name = restored_whole(database_server, name_of(world.database), tmp_path / "dump")
    try:
        with at(database_server, world, name):
            closed_until_swept(world)
    finally:
        with admin(database_server) as conn:
            conn.execute(f"drop database {name} with (force)")


def test_rows_restored_into_a_new_schema(
    world: ShareWorld, database_server: ServerHandle, template_database: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        empty = stack.enter_context(_created(database_server, template_database))
        restored_rows(database_server, name_of(world.database), tmp_path / "dump", empty)
        closed_until_swept(stack.enter_context(at(database_server, world, empty)))


def test_a_database_copied_by_the_server(world: ShareWorld, database_server: ServerHandle) -> None:
    source = name_of(world.database)
    world.database.close()
    with ExitStack() as stack:
        copy = stack.enter_context(_created(database_server, source))
        closed_until_swept(stack.enter_context(at(database_server, world, copy)))


def test_a_restart_is_no_restore(world: ShareWorld) -> None:
    world.database.close()
    world.restart()
    assert world.readable("alice") == {"open.md", "closing.md"}


def test_the_reader_cannot_say_that_it_was_swept(world: ShareWorld) -> None:
    world.rows("update nw.share set swept_in = 'elsewhere' returning 1")
    assert world.readable("alice") == set()
    with world.database.reader() as conn, pytest.raises(psycopg.Error):
        conn.execute("update nw.share set swept_in = app.place()")
    for hidden in ("passed_lists", "passing_ids", "young_shares", "aged_shares"):
        with world.database.reader() as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(f"select app.{hidden}()")
