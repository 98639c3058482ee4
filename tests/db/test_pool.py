"""Connections: who they are, what they see, and that nothing passes from one borrower to the next."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psycopg
import pytest
from support.database import admin

from db import migrate, postmaster
from db.binaries import program
from db.errors import Conflict, DatabaseFault, NotPermitted
from db.pool import OWNER, READER, Database
from db.server import EmbeddedServer, ServerHandle
from notewarden.errors import ConfigError, DatabaseUnavailable, LimitReached, SchemaTooNew
from notewarden.settings import Settings

NOWHERE = "postgresql://nobody-there@127.0.0.1:1/notewarden?connect_timeout=2"


def state_of(conn: psycopg.Connection) -> tuple[object, ...]:
    row = conn.execute(
        "select current_user::text, current_setting('search_path'), current_setting('timezone'),"
        " current_setting('statement_timeout'), current_setting('application_name')"
    ).fetchone()
    assert row is not None
    return row


def test_each_side_is_its_role_with_our_session(database: Database) -> None:
    with database.owner() as owner, database.owner() as second:
        for conn in (owner, second):  # the plain one and one of the pool
            assert state_of(conn) == (OWNER, "nw,app,public", "UTC", "0", "notewarden")
            assert conn.autocommit
    with database.reader() as reader, database.reader() as second:
        for conn in (reader, second):
            assert state_of(conn) == (READER, "nw,app,public", "UTC", "30s", "notewarden")


def test_no_statement_of_a_question_holds_the_database_for_ever(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("db.pool._READING_S", 1)
    with database.owner() as conn:
        assert conn.execute("select true from pg_sleep(1.2)").fetchone() == (True,), (
            "the indexer has no limit"
        )
    for _ in range(2):
        plain = database.reader()
        with plain, pytest.raises(LimitReached) as raised, database.reader() as conn, conn.transaction():
            conn.execute("select from pg_sleep(20)")
        assert (raised.value.exit_code, "stopped" in str(raised.value)) == (9, True)
    with pytest.raises(LimitReached), database.reader() as conn, conn.transaction():
        conn.execute("select from pg_sleep(20)")
    with database.reader() as conn, database.reader() as second:  # both can be used again
        assert [one.execute("select 1").fetchone() for one in (conn, second)] == [(1,), (1,)]


def test_vectors_go_in_and_out_as_arrays(database: Database) -> None:
    sent = np.array([0.5, -1.0], dtype=np.float32)
    with database.owner() as conn, database.owner() as second:
        for each in (conn, second):
            (got,) = each.execute("select %s::vector", [sent]).fetchone() or ()
            assert np.array_equal(got.to_numpy(), sent)


def test_a_token_left_behind_is_gone_for_the_next(database: Database) -> None:
    for _ in range(2):
        with database.reader() as first, database.reader() as second:
            for conn in (first, second):
                for name in ("nw.allow", "nw.deny", "nw.ids"):
                    left = conn.execute("select current_setting(%s, true)", [name]).fetchone()
                    assert left in [("",), (None,)]
                    conn.execute("select set_config(%s, '{1}', false)", [name])


def test_a_transaction_left_open_is_rolled_back(database: Database) -> None:
    with database.owner() as conn:
        conn.execute("begin")
        conn.execute("insert into nw.term (term) values ('left')")
    with database.owner() as conn:
        assert conn.execute("select count(*) from nw.term").fetchone() == (0,)


def test_more_at_once_than_a_pool_holds_wait_for_their_turn(database: Database) -> None:
    def work(n: int) -> int:
        with database.reader() as conn:
            row = conn.execute("select %s::int from pg_sleep(0.02)", [n]).fetchone()
            assert row is not None
            return int(row[0])

    with ThreadPoolExecutor(12) as threads:
        assert list(threads.map(work, range(12))) == list(range(12))


def test_errors_are_ours_and_carry_no_values(database: Database) -> None:
    with database.owner() as conn:
        conn.execute("insert into nw.term (term) values ('salary of Ann')")
    cases = [
        ("insert into nw.term (term) values ('salary of Ann')", Conflict, "23505"),
        ("select 'salary of Ann'::int", DatabaseFault, "22P02"),
        ("select * from salary_of_Ann", DatabaseFault, "42P01"),
    ]
    for statement, kind, state in cases:
        with pytest.raises(kind) as raised, database.owner() as conn:
            conn.execute(statement)
        assert raised.value.sqlstate == state
        assert "Ann" not in str(raised.value)
        assert raised.value.__cause__ is None and raised.value.__suppress_context__
    with pytest.raises(NotPermitted), database.reader() as conn:
        conn.execute("delete from nw.note")
    with pytest.raises(Conflict) as raised, database.owner() as conn:
        conn.execute("insert into nw.term (term) values ('salary of Ann')")
    assert raised.value.constraint == "term_term"


def test_errors_that_are_not_the_drivers_pass_unchanged(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.owner() as conn, conn.transaction():
        conn.execute("insert into nw.term (term) values ('x')")
        _ = 1 / 0
    with database.owner() as conn:
        assert conn.execute("select count(*) from nw.term").fetchone() == (0,)


# Roles belong to the whole server, so this one is not the other tests'.
TOO_MUCH = {
    "has BYPASSRLS": ("alter role notewarden_reader bypassrls", "alter role notewarden_reader nobypassrls"),
    "may create roles": (
        "alter role notewarden_reader createrole",
        "alter role notewarden_reader nocreaterole",
    ),
    "is a superuser": ("alter role notewarden_reader superuser", "alter role notewarden_reader nosuperuser"),
    "is a member": ("grant notewarden to notewarden_reader", "revoke notewarden from notewarden_reader"),
    "owns objects": (
        "create table public.mine (); alter table public.mine owner to notewarden_reader",
        "drop table public.mine",
    ),
}


def test_a_reader_that_could_pass_row_security_is_refused(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path / "state") as server, admin(server, "notewarden") as conn:
        dsns = server.dsn(OWNER), server.dsn(READER)
        for fault, (grant, revoke) in TOO_MUCH.items():
            conn.execute(grant)
            with (
                Database.from_dsns(*dsns) as database,
                pytest.raises(ConfigError, match=f"{fault}.*row security would not bind it"),
                database.reader(),
            ):
                pass
            conn.execute(revoke)
            with Database.from_dsns(*dsns) as database, database.reader() as reader:
                assert reader.execute("select 1").fetchone() == (1,)


def test_the_owner_is_no_reader(database_server: ServerHandle, empty_database: str) -> None:
    owner = database_server.dsn(OWNER, empty_database)
    with (
        Database.from_dsns(owner, owner) as database,
        pytest.raises(ConfigError, match="is notewarden, not notewarden_reader"),
        database.reader(),
    ):
        pass


def test_the_embedded_database_opens_migrated_and_comes_back_after_a_kill(
    settings_factory: Callable[..., Settings],
) -> None:
    settings = settings_factory()
    with Database.open(settings) as database:
        with database.owner() as conn, database.reader() as reader:
            migrate.check_schema(conn)
            assert reader.execute("select count(*) from nw.note").fetchone() == (0,)
        pid = postmaster.running(settings.state_dir / "postgres")
        assert pid
        os.kill(pid, signal.SIGKILL)
        assert postmaster.wait_gone(pid, 10)
        with database.owner() as conn:
            migrate.check_schema(conn)
        with database.reader() as conn:
            assert conn.execute("select count(*) from nw.note").fetchone() == (0,)
        assert "embedded server" in database.describe()
    assert postmaster.running(settings.state_dir / "postgres") is None


def test_the_answerer_opens_its_side_alone_and_only_a_schema_that_stands(
    settings_factory: Callable[..., Settings],
) -> None:
    settings = settings_factory()
    with pytest.raises(DatabaseUnavailable, match="notewarden sync"):
        Database.open_reader(settings)
    with pytest.raises(DatabaseUnavailable, match="notewarden sync"):
        Database.open(settings, migrate=False)
    assert postmaster.running(settings.state_dir / "postgres") is None, "a refusal leaves no server behind"
    Database.open(settings).close()
    with Database.open_reader(settings) as database:
        with pytest.raises(ConfigError, match="reader only"), database.owner():
            pass
        with database.reader() as conn:
            assert state_of(conn)[0] == READER
    with Database.open(settings) as database, database.owner() as conn:
        conn.execute("insert into nw.schema_version values (9999, 'later', sha256(''))")
    with pytest.raises(SchemaTooNew):
        Database.open_reader(settings)
    with pytest.raises(SchemaTooNew):
        Database.open(settings)


def test_an_external_server_is_used_by_its_url(
    database_server: ServerHandle, empty_database: str, settings_factory: Callable[..., Settings]
) -> None:
    parts = psycopg.conninfo.conninfo_to_dict(database_server.dsn(OWNER, empty_database))
    url = f"postgresql://{OWNER}@/{empty_database}?host={parts['host']}&port={parts['port']}"
    settings = settings_factory(database={"url": url})
    with Database.open(settings) as database:
        with database.owner() as conn, database.reader() as reader:
            assert state_of(conn)[0] == OWNER
            assert reader.execute("select count(*) from nw.note").fetchone() == (0,)
        assert "external" in database.describe()


def test_a_server_that_is_not_there_is_one_plain_sentence(settings_factory: Callable[..., Settings]) -> None:
    settings = settings_factory(database={"url": NOWHERE})
    with pytest.raises(DatabaseUnavailable, match="cannot be reached") as raised:
        Database.open(settings)
    assert raised.value.exit_code == 7
    assert "nobody-there" not in str(raised.value)


def test_a_missing_program_is_said_with_its_remedy() -> None:
    with pytest.raises(DatabaseUnavailable, match=r"lacks its program .*/no_such_program; install"):
        program("no_such_program")
