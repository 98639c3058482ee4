"""Migrations: each once, in order, by one process at a time; a schema from the future is left alone."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.database import admin

from db import migrate
from db.pool import OWNER, READER, Database
from db.server import ServerHandle
from notewarden.errors import ConfigError, DatabaseUnavailable, SchemaTooNew


def folder_of(place: Path, *bodies: str) -> tuple[migrate.Migration, ...]:
    place.mkdir(exist_ok=True)
    for number, body in enumerate(bodies, 1):
        (place / f"{number:04}_step.sql").write_text(body)
    migrate.migrations.cache_clear()
    return migrate.migrations(place)


@pytest.fixture
def owner(database_server: ServerHandle, empty_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_server.dsn(OWNER, empty_database), autocommit=True) as conn:
        yield conn


def versions(conn: psycopg.Connection) -> list[int]:
    return [version for (version,) in conn.execute("select version from nw.schema_version order by 1")]


def test_ours_run_on_an_empty_database_and_only_once(owner: psycopg.Connection) -> None:
    assert migrate.migrate(owner) == len(migrate.migrations())
    assert migrate.migrate(owner) == 0
    assert versions(owner) == [m.version for m in migrate.migrations()]
    migrate.check_schema(owner)


def test_a_later_one_runs_on_what_stands(owner: psycopg.Connection, tmp_path: Path) -> None:
    first = folder_of(tmp_path, "create table nw.a (x int);")
    assert migrate.migrate(owner, first) == 1
    owner.execute("insert into nw.a values (7)")
    both = folder_of(tmp_path, "create table nw.a (x int);", "alter table nw.a add y int default 8;")
    assert migrate.migrate(owner, both) == 1
    assert owner.execute("select x, y from nw.a").fetchone() == (7, 8)


def test_one_that_fails_leaves_nothing_of_itself_and_all_before_it(
    owner: psycopg.Connection, tmp_path: Path
) -> None:
    bad = folder_of(tmp_path, "create table nw.a (x int);", "create table nw.b (x int); select 1/0;")
    with pytest.raises(Exception, match="SQLSTATE 22012"):
        migrate.migrate(owner, bad)
    assert versions(owner) == [1]
    assert owner.execute("select to_regclass('nw.b')").fetchone() == (None,)
    good = folder_of(tmp_path, "create table nw.a (x int);", "create table nw.b (x int);")
    assert migrate.migrate(owner, good) == 1  # the lock was given back too


def test_a_newer_schema_is_refused(owner: psycopg.Connection, tmp_path: Path) -> None:
    newer = folder_of(tmp_path, "create table nw.a (x int);", "create table nw.b (x int);")
    migrate.migrate(owner, newer)
    for refuse in (migrate.migrate, migrate.check_schema):
        with pytest.raises(SchemaTooNew, match="version 2, this notewarden knows 1") as raised:
            refuse(owner, newer[:1])
        assert raised.value.exit_code == 7
    assert versions(owner) == [1, 2]


def test_a_changed_file_is_refused(owner: psycopg.Connection, tmp_path: Path) -> None:
    migrate.migrate(owner, folder_of(tmp_path, "create table nw.a (x int);"))
    changed = folder_of(tmp_path, "create table nw.a (x bigint);", "create table nw.b (x int);")
    with pytest.raises(DatabaseUnavailable, match=r"another edition of 0001_step\.sql"):
        migrate.migrate(owner, changed)
    assert versions(owner) == [1]


def test_a_missing_schema_is_refused_where_none_is_made(
    database_server: ServerHandle, empty_database: str
) -> None:
    dsn = database_server.dsn(READER, empty_database)
    with (
        psycopg.connect(dsn, autocommit=True) as reader,
        pytest.raises(DatabaseUnavailable, match="notewarden sync"),
    ):
        migrate.check_schema(reader)


def _migrate_slowly(dsn: str, folder: str, start: object, made: multiprocessing.Queue[int]) -> None:
    start.wait()  # type: ignore[attr-defined]
    with psycopg.connect(dsn, autocommit=True) as conn:
        made.put(migrate.migrate(conn, migrate.migrations(Path(folder))))


def test_two_processes_at_once_share_the_work(
    database_server: ServerHandle, empty_database: str, tmp_path: Path
) -> None:
    folder_of(tmp_path, "create table nw.a (x int); select pg_sleep(0.3);", "create table nw.b (x int);")
    spawn = multiprocessing.get_context("spawn")
    start, made = spawn.Barrier(2), spawn.Queue()
    dsn = database_server.dsn(OWNER, empty_database)
    pair = [spawn.Process(target=_migrate_slowly, args=(dsn, str(tmp_path), start, made)) for _ in range(2)]
    for process in pair:
        process.start()
    counts = sorted(made.get(timeout=60) for _ in pair)
    for process in pair:
        process.join()
    assert counts == [0, 2]


@pytest.mark.parametrize(
    "names", [["0002_late.sql"], ["0001_a.sql", "0001_b.sql"], ["0001_a.sql", "first.sql"]]
)
def test_files_must_be_numbered_without_gap(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("select 1")
    with pytest.raises(ValueError, match=r"NNNN_name|numbered"):
        migrate.migrations(tmp_path)


def test_an_owner_who_may_not_make_the_extension_hears_what_an_admin_must_run(
    database_server: ServerHandle, empty_database: str
) -> None:
    with admin(database_server, empty_database) as conn:
        conn.execute("drop extension vector")
    with (
        psycopg.connect(database_server.dsn(READER, empty_database), autocommit=True) as conn,
        pytest.raises(ConfigError, match="CREATE EXTENSION vector"),
    ):
        migrate.prepare_external(conn)


def test_an_external_owner_makes_what_is_missing(database_server: ServerHandle, empty_database: str) -> None:
    with psycopg.connect(database_server.dsn(OWNER, empty_database), autocommit=True) as conn:
        migrate.prepare_external(conn)
        migrate.migrate(conn)
    dsns = database_server.dsn(OWNER, empty_database), database_server.dsn(READER, empty_database)
    with Database.from_dsns(*dsns) as database, database.reader() as reader:
        assert reader.execute("select count(*) from nw.note").fetchone() == (0,)
