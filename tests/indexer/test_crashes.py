"""Killed, cut off, full, read-only: whatever ends a sync, the next one leaves every note whole and once."""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest
from share_world import ShareWorld
from test_storm import kill_server, new_database, own_server, start_again  # noqa: F401

from db.pool import OWNER, Database
from db.server import ServerHandle
from notewarden.errors import DatabaseUnavailable, NotewardenError
from notewarden.settings import Settings

NOTES = 40


class Killer(threading.Thread):
    """Ends the backend of the indexer at random moments, which to the database is a client killed by -9."""

    def __init__(self, dsn: str, dice: random.Random) -> None:
        super().__init__(daemon=True)
        self._conn = psycopg.connect(dsn, autocommit=True)
        self._dice = dice
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(self._dice.uniform(0.01, 0.3)):
            self._conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
                " and pid <> pg_backend_pid() and backend_type = 'client backend'"
            )
        self._conn.close()


def rewrite(world: ShareWorld, dice: random.Random, version: int) -> None:
    for number in range(NOTES):
        if version == 0 or dice.random() < 0.3:
            parts = "\n\n".join(
                f"## Part {part}\n\nPart {part} of {number}, version {version}." for part in range(3)
            )
            world.write(f"f{number % 5}/{number}.md", f"# Note {number}\n\n{parts}\n")


def texts(world: ShareWorld) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in world.passages("alice"):
        path = os.fsdecode(one.path)
        found[path] = found.get(path, "") + one.content
    return found


def whole_and_once(world: ShareWorld, versions: dict[str, set[str]], *, some: bool = False) -> None:
    """Every note is whole, old or new; none is missing unless `some`."""
    found = texts(world)
    for path, content in found.items():
        assert content in versions[path], path
    if not some:
        assert found.keys() == versions.keys()
        world.whole()


def remember(world: ShareWorld, versions: dict[str, set[str]]) -> None:
    for file in world.root.rglob("*.md"):
        versions.setdefault(str(file.relative_to(world.root)), set()).add(file.read_text())


def break_after(world: ShareWorld, statements: int, end: Callable[[], None]) -> None:
    """Sync, and call `end` when about that many notes were read or embedded."""
    left = [statements]

    def count(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            end()

    world.files.before_read = count
    try:
        world.sync(progress=count)
    except NotewardenError as error:
        assert error.exit_code == 7, error
    world.files.heal()


def test_the_server_is_cut_off_and_started_again(
    tmp_path: Path,
    own_server: ServerHandle,  # noqa: F811
    settings_factory: Callable[..., Settings],
) -> None:
    """The indexer commits lazily: the newest commits may go, in their order, and nothing is ever half."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    dice, versions = random.Random(seed), {}
    with new_database(own_server, "cut") as database:
        world = ShareWorld(tmp_path, database, settings_factory)
        rewrite(world, dice, 0)
        remember(world, versions)
        world.sync()
        for version in range(1, 6):
            rewrite(world, dice, version)
            remember(world, versions)
            break_after(world, dice.randrange(1, NOTES), lambda: kill_server(tmp_path / "server"))
            start_again(own_server)
            whole_and_once(world, versions)
            world.sync()
            for path, content in texts(world).items():  # what a poll reported stays, whatever comes
                assert content == (world.root / path).read_text()
        assert world.sync_all().exit_code == 0
        assert texts(world) == {path: (world.root / path).read_text() for path in versions}
        world.whole()


def test_what_a_poll_reported_outlives_a_power_cut(
    tmp_path: Path,
    own_server: ServerHandle,  # noqa: F811
    settings_factory: Callable[..., Settings],
) -> None:
    with new_database(own_server, "cut") as database:
        world = ShareWorld(tmp_path, database, settings_factory)
        file = world.write("a.md")
        other = world.write("b.md")
        gone = world.write("c.md")
        world.sync()
        file.chmod(0o600)
        other.write_text("# B\n\nwithout the secret\n")
        gone.unlink()
        world.sync()
        kill_server(tmp_path / "server")
        start_again(own_server)
        assert world.readable("alice") == {"b.md"}
        assert texts(world) == {"b.md": "# B\n\nwithout the secret\n"}


def test_connections_lost_in_mid_transaction(world: ShareWorld, database_server: ServerHandle) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    dice, versions = random.Random(seed), {}
    dsn = database_server.dsn(OWNER, world.one("select current_database()"))
    broken = 0
    for version in range(8):
        rewrite(world, dice, version)
        remember(world, versions)
        killer = Killer(dsn, dice)
        killer.start()
        try:
            world.sync()
        except NotewardenError as error:
            assert error.exit_code == 7, error
            broken += 1
        finally:
            killer.over.set()
            killer.join()
        whole_and_once(world, versions, some=True)
    assert broken
    assert world.sync_all().exit_code == 0
    assert texts(world) == {path: (world.root / path).read_text() for path in versions}
    world.whole()


def test_a_database_that_takes_no_writes_loses_nothing(world: ShareWorld) -> None:
    world.write("a.md")
    world.sync()
    world.write("b.md")
    name = world.one("select current_database()")
    with world.database.owner() as conn:
        conn.execute(f"alter database {name} set default_transaction_read_only = on")
    with Database.from_dsns(*dsns_of(world)) as database:
        before, world.database = world.database, database
        world.restart()
        with pytest.raises(NotewardenError) as caught:
            world.sync()
        assert "Traceback" not in str(caught.value)
        world.database = before
    assert world.readable("alice") == {"a.md"}
    with world.database.owner() as conn:
        conn.execute(f"alter database {name} reset default_transaction_read_only")
    world.restart()
    assert world.sync().added == 1


def dsns_of(world: ShareWorld) -> tuple[str, str]:
    found = []
    for lend in (world.database.owner, world.database.reader):
        with lend() as conn:
            info = conn.info
            found.append(f"host={info.host} port={info.port} user={info.user} dbname={info.dbname}")
    return found[0], found[1]


def absent(reason: str) -> NoReturn:
    """Skip a test that cannot be had here, or fail it where everything is demanded."""
    if os.environ.get("NOTEWARDEN_REQUIRE_SERVICES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 150 MB on which a database may stand."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        absent("only root may mount a small disk")
    place = tmp_path / "small"
    place.mkdir(mode=0o700)
    if os.system(f"mount -t tmpfs -o size=150m,mode=0700 tmpfs {place} 2>/dev/null"):
        absent("mounting is not allowed here")
    try:
        yield place
    finally:
        os.system(f"umount -l {place}")


def test_a_full_disk_is_said_and_passes(
    small_disk: Path, tmp_path: Path, settings_factory: Callable[..., Settings]
) -> None:
    from db.server import EmbeddedServer

    with EmbeddedServer.start(small_disk / "state") as server, new_database(server, "small") as database:
        world = ShareWorld(tmp_path, database, settings_factory)
        for number in range(10):
            world.write(f"{number}.md")
        world.sync()
        free = shutil.disk_usage(small_disk).free
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"\0" * (free - 300_000))
        for number in range(10, 40):
            world.write(f"{number}.md", "# Large\n\n" + f"words of {number} and more\n" * 700)
        failed = None
        try:
            for _ in range(5):
                world.sync()
        except DatabaseUnavailable as error:
            failed = str(error)
        assert failed
        assert "disk is full" in failed or "cannot be reached" in failed
        ballast.unlink()
        start_again(server)
        for _ in range(20):
            try:
                report = world.sync_all()
                break
            except DatabaseUnavailable:
                time.sleep(0.2)
        assert report.exit_code == 0
        assert len(world.readable("alice")) == 40
        world.whole()


def test_the_share_s_own_disk_may_be_read_only(world: ShareWorld) -> None:
    """Nothing is ever written to a share."""
    for number in range(5):
        world.write(f"docs/{number}.md")
    before = seen(world)
    world.sync()
    world.sync(full=True)
    assert seen(world) == before


def seen(world: ShareWorld) -> dict[Path, tuple[int, ...]]:
    """What the files show of themselves, but for the time they were read."""
    found = {file: file.stat() for file in [world.root, *world.root.rglob("*")]}
    return {
        file: (info.st_mode, info.st_ino, info.st_mtime_ns, info.st_ctime_ns) for file, info in found.items()
    }
