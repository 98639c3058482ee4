"""The embedded server: one for all who need it, gone with the last, and safe from kills at any point."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from db import postmaster
from db.binaries import program
from db.bootstrap import ADMIN
from db.pool import OWNER, READER
from db.server import EmbeddedServer, ServerHandle
from notewarden.errors import ConfigError, DatabaseUnavailable

_USE = """
import sys
from pathlib import Path
from db.server import EmbeddedServer
from db import postmaster
state = Path(sys.argv[1])
handle = EmbeddedServer.start(state)
print("pid", postmaster.running(state / "postgres"), flush=True)
sys.stdin.read()
handle.release()
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state folder; whatever server is left in it at the end is stopped."""
    yield tmp_path / "state"
    postmaster.stop(tmp_path / "state" / "postgres", 30)


def pid_of(state: Path) -> int | None:
    return postmaster.running(state / "postgres")


def connect(handle: ServerHandle, role: str = OWNER) -> psycopg.Connection:
    return psycopg.connect(handle.dsn(role), autocommit=True)


def user_of(state: Path) -> subprocess.Popen[bytes]:
    """Another process that holds the server until its stdin is closed."""
    return subprocess.Popen(
        [sys.executable, "-c", _USE, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def told_pid(user: subprocess.Popen[bytes]) -> int:
    assert user.stdout is not None
    told = next(line for line in user.stdout if line.startswith(b"pid "))
    return int(told.split()[1])


def test_roles_database_and_extension_stand(state: Path) -> None:
    with EmbeddedServer.start(state) as handle:
        for role in (OWNER, READER):
            with connect(handle, role) as conn:
                row = conn.execute(
                    "select current_user::text, rolsuper or rolbypassrls or rolcreaterole or rolcreatedb,"
                    " current_setting('server_encoding') from pg_roles where rolname = current_user"
                ).fetchone()
                assert row == (role, False, "UTF8")
                assert conn.execute("select '[1,2]'::public.vector::text").fetchone() == ("[1,2]",)


def test_it_stops_with_its_last_user_and_keeps_what_was_written(state: Path) -> None:
    first, second = EmbeddedServer.start(state), EmbeddedServer.start(state)
    pid = pid_of(state)
    with connect(first) as conn:
        conn.execute("create table public.kept as select 42 as n")
    first.release()
    first.release()  # harmless twice
    assert pid_of(state) == pid
    second.release()
    assert pid_of(state) is None
    with EmbeddedServer.start(state) as again, connect(again) as conn:
        assert conn.execute("select n from public.kept").fetchone() == (42,)


def test_two_processes_that_start_at_once_share_one(state: Path) -> None:
    users = [user_of(state), user_of(state)]
    pids = {told_pid(user) for user in users}
    assert len(pids) == 1
    users[0].communicate()
    assert pid_of(state) in pids, "the other still needs it"
    users[1].communicate()
    assert pid_of(state) is None


def test_a_killed_server_comes_back_with_all_that_was_committed(state: Path) -> None:
    with EmbeddedServer.start(state) as handle:
        with connect(handle) as conn:
            conn.execute("create table public.kept as select 42 as n")
        pid = pid_of(state)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert postmaster.wait_gone(pid, 10)
        handle.ensure()
        assert pid_of(state) not in (None, pid)
        with connect(handle) as conn:
            assert conn.execute("select n from public.kept").fetchone() == (42,)


def test_it_is_asked_again_while_it_is_dying_or_recovers(state: Path) -> None:
    """A dying server still looks alive; one that lost a process lets nobody in until it has recovered."""
    with EmbeddedServer.start(state) as handle:
        for victim in ("server", "process") * 3:
            with connect(handle) as conn:
                pid = pid_of(state) if victim == "server" else conn.info.backend_pid
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
                handle.ensure()
            with connect(handle) as conn:
                assert conn.execute("select 1").fetchone() == (1,)


def test_the_server_of_a_killed_process_is_found_and_used(state: Path) -> None:
    user = user_of(state)
    pid = told_pid(user)
    user.kill()
    user.communicate()
    assert pid_of(state) == pid
    with EmbeddedServer.start(state):
        assert pid_of(state) == pid
    assert pid_of(state) is None


def test_a_pid_file_that_names_a_stranger_is_no_server(state: Path) -> None:
    EmbeddedServer.start(state).release()
    with subprocess.Popen(["sleep", "600"]) as stranger:
        stale = f"{stranger.pid}\n/proc/self/cwd\n1\n5432\n../socket\n\n 1 1\nready   \n"
        (state / "postgres" / "postmaster.pid").write_text(stale)
        (state / "socket" / ".s.PGSQL.5432.lock").write_text(stale)
        with EmbeddedServer.start(state) as handle, connect(handle) as conn:
            assert conn.execute("select 1").fetchone() == (1,)
        assert stranger.poll() is None, "the stranger was left alone"
        stranger.kill()


def test_a_kill_while_the_data_is_made_leaves_nothing_half(state: Path) -> None:
    user = user_of(state)
    deadline = time.monotonic() + 20
    while not (state / "postgres.new" / "base").exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    user.kill()
    user.communicate()
    assert not (state / "postgres").exists()
    with EmbeddedServer.start(state) as handle, connect(handle) as conn:
        assert conn.execute("select 1").fetchone() == (1,)


def test_a_kill_before_the_bootstrap_ended_is_made_good(state: Path) -> None:
    with EmbeddedServer.start(state) as handle:
        with psycopg.connect(handle.dsn(ADMIN, "postgres"), autocommit=True) as conn:
            conn.execute("drop database notewarden")
        with EmbeddedServer.start(state) as again, connect(again) as conn:
            assert conn.execute("select '[1]'::public.vector::text").fetchone() == ("[1]",)


def test_it_listens_on_no_network(state: Path) -> None:
    with EmbeddedServer.start(state) as handle:
        pid = pid_of(state)
        links = [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()]
        inodes = {link[8:-1] for link in links if link.startswith("socket:")}
        tables = [
            Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6", "udp", "udp6")
        ]
        on_network = {line.split()[9] for lines in tables for line in lines}
        assert inodes, "the Unix socket at least"
        assert not inodes & on_network
        with connect(handle) as conn:
            assert conn.execute("show listen_addresses").fetchone() == ("",)


def test_what_keeps_data_safe_and_texts_out_of_the_log_is_set(state: Path) -> None:
    wanted = {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "data_checksums": "on",
        "log_parameter_max_length_on_error": "0",
        "log_min_error_statement": "panic",
    }
    with EmbeddedServer.start(state) as handle, connect(handle) as conn:
        for name, value in wanted.items():
            assert conn.execute("select current_setting(%s)", [name]).fetchone() == (value,)
        with pytest.raises(psycopg.Error):
            conn.execute("select %s::text::int, 'in the statement'", ["secret salary"])
        conn.execute("create table public.t (x text primary key)")
        conn.execute("insert into public.t values ('secret key')")
        with pytest.raises(psycopg.Error):
            conn.execute("insert into public.t values ('secret key')")
    logs = [path.read_text() for path in (state / "server-log").iterdir()]
    assert any("ready to accept" in log for log in logs)
    assert not any("secret" in log or "in the statement" in log for log in logs)


@pytest.mark.parametrize(
    "statement",
    [
        "set role notewarden",
        "set role notewarden_admin",
        "set session authorization notewarden",
        "create table public.mine (x int)",
        "create temporary table mine (x int)",
        "create schema mine",
        "create role mine",
        "alter system set listen_addresses = '*'",
        "copy (select 1) to '/tmp/notewarden-copied'",
        "select pg_read_file('/etc/passwd')",
    ],
)
def test_the_reader_can_become_nobody_else(database_server: ServerHandle, statement: str) -> None:
    psql = [program("psql"), "-X", "-v", "ON_ERROR_STOP=1", database_server.dsn(READER)]
    assert subprocess.run([*psql, "-c", "select 1"], capture_output=True).returncode == 0
    refused = subprocess.run([*psql, "-c", statement], capture_output=True, text=True)
    assert refused.returncode != 0
    assert "permission denied" in refused.stderr or "not allowed" in refused.stderr


def test_a_folder_that_holds_something_else_is_not_touched(state: Path) -> None:
    state.mkdir()
    state.chmod(0o755)
    (state / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="chmod 700"):
        EmbeddedServer.start(state)
    assert state.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in state.iterdir()] == ["thesis.txt"]


def test_data_of_another_postgres_is_refused(state: Path) -> None:
    EmbeddedServer.start(state).release()
    (state / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(ConfigError, match="made by PostgreSQL 17"):
        EmbeddedServer.start(state)


@pytest.fixture
def odd_state() -> Iterator[Path]:
    """A state folder whose path is long and holds what shells and libpq give a meaning to."""
    base = Path(tempfile.mkdtemp(prefix="nw-test-"))
    state = base / ("long, $HOME '\" \\ `x` %s ü " + "n" * 90) / ("m" * 100) / "state"
    yield state
    postmaster.stop(state / "postgres", 30)
    if (state / "socket-folder").exists():
        shutil.rmtree((state / "socket-folder").read_text().strip(), ignore_errors=True)
    shutil.rmtree(base)


def test_any_path_will_do(odd_state: Path) -> None:
    with EmbeddedServer.start(odd_state) as handle, connect(handle) as conn:
        assert conn.execute("select 1").fetchone() == (1,)
    short = Path((odd_state / "socket-folder").read_text().strip())
    assert short.stat().st_mode & 0o777 == 0o700
    with EmbeddedServer.start(odd_state), EmbeddedServer.start(odd_state) as handle, connect(handle):
        assert Path((odd_state / "socket-folder").read_text().strip()) == short, "found again"


def test_a_short_folder_that_was_cleaned_away_is_made_again(odd_state: Path) -> None:
    with EmbeddedServer.start(odd_state):
        shutil.rmtree((odd_state / "socket-folder").read_text().strip())
        with EmbeddedServer.start(odd_state) as handle, connect(handle) as conn:
            assert conn.execute("select 1").fetchone() == (1,)


def test_a_link_in_place_of_the_short_folder_is_not_followed(odd_state: Path, tmp_path: Path) -> None:
    EmbeddedServer.start(odd_state).release()
    short = Path((odd_state / "socket-folder").read_text().strip())
    shutil.rmtree(short)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    short.symlink_to(elsewhere)
    try:
        with EmbeddedServer.start(odd_state):
            assert list(elsewhere.iterdir()) == []
            assert (odd_state / "socket-folder").read_text().strip() != str(short)
    finally:
        short.unlink()


def test_a_server_that_cannot_start_says_why(state: Path) -> None:
    EmbeddedServer.start(state).release()
    shutil.rmtree(state / "postgres" / "global")
    with pytest.raises(DatabaseUnavailable, match=r"did not start.*pg_control"):
        EmbeddedServer.start(state)
    assert pid_of(state) is None
