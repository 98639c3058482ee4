"""The embedded server is ours alone: no other account of the machine opens its socket or any of its files."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from support.accounts import opened, run_as

from db import postmaster
from db.binaries import program
from db.isolation import Isolation, borrowed_account, choose_runner, namespaces_work
from db.pool import OWNER, READER
from db.server import EmbeddedServer, ServerHandle
from notewarden.errors import ConfigError, DatabaseUnavailable

pytestmark = pytest.mark.usefixtures("as_root")

NOBODY = 65534
UNKNOWN = 12345  # an account that no file knows
LONG = "n" * 200


@pytest.fixture
def state(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A state folder below folders that everybody may enter, so that it alone keeps strangers out."""
    base = Path(tempfile.mkdtemp(prefix="nw-test-"))
    base.chmod(0o755)
    (base / "open").write_text("everybody's")
    name = getattr(request, "param", "short")
    (base / name).mkdir(mode=0o755)
    state = base / name / "state"
    yield state
    postmaster.stop(state / "postgres", 30)
    shutil.rmtree(socket_folder(state), ignore_errors=True)
    shutil.rmtree(base)


@pytest.fixture(params=[Isolation.NAMESPACE, Isolation.ACCOUNT])
def way(request: pytest.FixtureRequest, real_service: Callable[[str], str]) -> Isolation:
    """Each way in which root's server is set apart."""
    if request.param is Isolation.NAMESPACE:
        real_service("unshare")
    if request.param is Isolation.NAMESPACE and not namespaces_work():
        pytest.skip("user namespaces are refused here")
    if request.param is Isolation.ACCOUNT and not borrowed_can_run():
        pytest.skip("the server's programs lie where other accounts cannot read them")
    return Isolation(request.param)


def borrowed_can_run() -> bool:
    account = borrowed_account()
    return bool(run_as(account.pw_uid, account.pw_gid, os.access, program("postgres"), os.X_OK))


def socket_folder(state: Path) -> Path:
    record = state / "socket-folder"
    return Path(record.read_text().strip()) if record.exists() else state / "socket"


def everything(state: Path) -> list[Path]:
    """Each file and folder of the server, the state folder and a short socket folder included."""
    places = {state, socket_folder(state)}
    return [*places, *(path for place in places for path in place.rglob("*"))]


def strangers(way: Isolation) -> list[int]:
    """Accounts that must get nowhere. The borrowed one owns the data where there is no namespace."""
    borrowed = borrowed_account().pw_uid
    return [UNKNOWN, NOBODY] + ([borrowed] if way is Isolation.NAMESPACE else [])


def attempt(dsn: str) -> str:
    """Connect as whoever we are; return what the server or the kernel said."""
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError as error:
        return str(error)
    return "connected"


def without_check(handle: ServerHandle, role: str) -> str:
    """The connection string as a stranger would write it: it trusts whatever server answers."""
    return psycopg.conninfo.make_conninfo(handle.dsn(role), requirepeer="")


@pytest.mark.parametrize("state", ["short", LONG], ids=["short path", "200 characters"], indirect=True)
def test_no_other_account_opens_anything(state: Path, way: Isolation) -> None:
    with EmbeddedServer.start(state, way) as handle:
        paths = everything(state)
        assert any(path.name == ".s.PGSQL.5432" for path in paths)
        for uid in strangers(way):
            assert run_as(uid, uid, opened, [state.parent.parent / "open"]), "they can enter what is open"
            assert run_as(uid, uid, opened, paths) == []
            assert "Permission denied" in run_as(uid, uid, attempt, without_check(handle, READER))
        assert attempt(handle.dsn(OWNER)) == "connected"


def test_even_through_open_folders_the_kernel_tells_who_connects(state: Path, way: Isolation) -> None:
    with EmbeddedServer.start(state, way) as handle:
        folder = socket_folder(state)
        for path in (state, folder, folder / ".s.PGSQL.5432"):
            path.chmod(0o777)
        for uid in [*strangers(way), borrowed_account().pw_uid]:
            for role in (OWNER, READER, "notewarden_admin"):
                said = run_as(uid, uid, attempt, without_check(handle, role))
                assert "FATAL" in said, said
                assert "Peer authentication failed" in said or "could not look up local user" in said
        assert "requirepeer" in handle.dsn(READER)
        wrong = psycopg.conninfo.make_conninfo(handle.dsn(READER), requirepeer="nobody")
        assert "requirepeer" in attempt(wrong), "nor do we talk to a server that is not ours"


def test_it_says_how_it_is_set_apart(state: Path, way: Isolation) -> None:
    with EmbeddedServer.start(state, way) as handle:
        assert ("in a user namespace" in handle.describe()) == (way is Isolation.NAMESPACE)
        assert borrowed_account().pw_name in handle.describe()
        with EmbeddedServer.start(state) as other:
            assert other.describe() == handle.describe(), "what runs, not what would be chosen"
        pid = postmaster.running(state / "postgres")
        uid = Path(f"/proc/{pid}").stat().st_uid
        assert uid == (0 if way is Isolation.NAMESPACE else borrowed_account().pw_uid)


def test_data_move_from_one_way_to_the_other(state: Path) -> None:
    if not (namespaces_work() and borrowed_can_run()):
        pytest.skip("needs user namespaces and programs that other accounts can read")
    with (
        EmbeddedServer.start(state, Isolation.NAMESPACE) as handle,
        psycopg.connect(handle.dsn(OWNER)) as conn,
    ):
        conn.execute("create table public.kept as select 42 as n")
    for way in (Isolation.ACCOUNT, Isolation.NAMESPACE):
        with EmbeddedServer.start(state, way) as handle, psycopg.connect(handle.dsn(OWNER)) as conn:
            assert conn.execute("select n from public.kept").fetchone() == (42,)
        for uid in strangers(way):
            assert run_as(uid, uid, opened, everything(state)) == []


def test_closed_folders_above_do_not_matter_to_the_account(state: Path, way: Isolation) -> None:
    """root's home is 0700: the account that runs the server cannot walk there."""
    state.parent.parent.chmod(0o700)
    with EmbeddedServer.start(state, way) as handle:
        assert attempt(handle.dsn(OWNER)) == "connected"


@pytest.mark.parametrize("state", [LONG], ids=["200 characters"], indirect=True)
def test_a_foreign_folder_in_the_short_ones_place_is_not_used(state: Path, way: Isolation) -> None:
    EmbeddedServer.start(state, way).release()
    short = socket_folder(state)
    shutil.rmtree(short)
    short.mkdir(mode=0o700)
    os.chown(short, UNKNOWN, UNKNOWN)
    try:
        with EmbeddedServer.start(state, way) as handle:
            assert socket_folder(state) != short
            assert attempt(handle.dsn(OWNER)) == "connected"
            assert list(short.iterdir()) == []
    finally:
        shutil.rmtree(short)


def ordinary_life(state: Path) -> tuple[str, list[str], list[Path]]:
    with EmbeddedServer.start(state) as handle:
        said = [attempt(handle.dsn(OWNER)), attempt(handle.dsn(READER))]
        return handle.describe(), said, everything(state)


def test_an_ordinary_account_runs_it_as_itself(state: Path) -> None:
    if not borrowed_can_run():
        pytest.skip("the server's programs lie where other accounts cannot read them")
    account = borrowed_account()
    os.chown(state.parent, account.pw_uid, account.pw_gid)
    describe, said, paths = run_as(account.pw_uid, account.pw_gid, ordinary_life, state)
    assert f"runs as {account.pw_name}" in describe
    assert said == ["connected", "connected"]
    for uid in (UNKNOWN, NOBODY):
        assert run_as(uid, uid, opened, paths) == []
    with pytest.raises(ConfigError, match=f"belongs to {account.pw_name}"):
        EmbeddedServer.start(state)  # root keeps its hands off another account's folder


def test_an_account_without_a_name_uses_a_namespace_or_says_why_not(state: Path) -> None:
    if not borrowed_can_run():
        pytest.skip("the server's programs lie where other accounts cannot read them")
    with pytest.raises(KeyError):
        pwd.getpwuid(UNKNOWN)
    os.chown(state.parent, UNKNOWN, UNKNOWN)
    namespaces_work.cache_clear()
    try:
        describe, said, paths = run_as(UNKNOWN, UNKNOWN, ordinary_life, state)
    except DatabaseUnavailable as refused:
        assert "has no account here" in str(refused)
        return
    assert f"uid {UNKNOWN}" in describe
    assert said == ["connected", "connected"]
    assert run_as(NOBODY, NOBODY, opened, paths) == []


def test_the_borrowed_account_is_never_root_nor_the_one_that_stands_for_strangers() -> None:
    account = borrowed_account()
    assert account.pw_uid not in (0, NOBODY)
    assert account.pw_gid not in (0, NOBODY)
    assert choose_runner().peer == (account.pw_name if namespaces_work() else "root")
