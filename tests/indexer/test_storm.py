"""Weeks of faults in a minute: nothing is lost, nothing gone shown, and the index is as if made anew."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from share_world import MoodyEmbedder, ShareWorld
from storm import Storm, differences, picture
from test_poll_generations import serving

from db import bootstrap, migrate
from db.pool import OWNER, READER, Database
from db.server import EmbeddedServer, ServerHandle
from notewarden.settings import Settings

HERE = Path(__file__).parent


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ServerHandle]:
    """A server that only this test breaks."""
    with EmbeddedServer.start(tmp_path / "server") as server:
        yield server


def new_database(server: ServerHandle, name: str) -> Database:
    with psycopg.connect(server.dsn(bootstrap.ADMIN, "postgres"), autocommit=True) as conn:
        conn.execute(f"create database {name} owner {OWNER}")
    bootstrap.furnish(server.dsn(bootstrap.ADMIN, name))
    with psycopg.connect(server.dsn(OWNER, name), autocommit=True) as owner:
        migrate.migrate(owner)
    return Database.from_dsns(server.dsn(OWNER, name), server.dsn(READER, name))


def kill_server(state: Path) -> None:
    """End the server as a power cut does."""
    pid = int((state / "postgres" / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGKILL)


def kill_midway(world: ShareWorld, server: ServerHandle, database: str, after_s: float) -> None:
    """Let another process poll the share, and kill it."""
    dsns = server.dsn(OWNER, database), server.dsn(READER, database)
    process = subprocess.Popen(
        [
            sys.executable,
            str(HERE / "sync_forever.py"),
            str(world.settings.file),
            *dsns,
            str(world.embedder.dimension),
        ],
        stdout=subprocess.PIPE,
        cwd=HERE.parent.parent,
        env={**os.environ, "PYTHONPATH": str(HERE.parent.parent)},
    )
    assert process.stdout is not None
    assert b"ready" in process.stdout.readline()
    time.sleep(after_s)
    process.kill()
    process.wait()
    process.stdout.close()
    with psycopg.connect(dsns[0], autocommit=True) as conn:
        while conn.execute("select from pg_locks where locktype = 'advisory'").fetchone():
            time.sleep(0.02)


def blow(
    tmp_path: Path, server: ServerHandle, make: Callable[..., Settings], seed: int, notes: int, polls: int
) -> None:
    with new_database(server, "storm") as database, new_database(server, "anew") as other:
        world = ShareWorld(tmp_path, database, make)
        storm = Storm(
            world,
            seed,
            notes,
            lambda: kill_server(tmp_path / "server"),
            server.ensure,
            lambda after_s: kill_midway(world, server, "storm", after_s),
        )
        storm.run(polls)
        world.whole()
        assert serving(world) == world.embedder.identity
        assert storm.witness.looks > polls
        anew = ShareWorld(tmp_path, other, make)
        anew.embedder = MoodyEmbedder(world.embedder.dimension)
        anew.restart()
        assert anew.sync_all().exit_code == 0
        assert differences(picture(world), picture(anew)) == {}


def test_a_storm(tmp_path: Path, own_server: ServerHandle, settings_factory: Callable[..., Settings]) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    blow(
        tmp_path,
        own_server,
        settings_factory,
        seed,
        int(os.environ.get("I4_NOTES", 2_000)),
        int(os.environ.get("I4_POLLS", 40)),
    )


@pytest.mark.prove
@pytest.mark.timeout(3_600)
def test_a_long_storm(
    tmp_path: Path, own_server: ServerHandle, settings_factory: Callable[..., Settings]
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    blow(tmp_path, own_server, settings_factory, seed, 2_000, 200)
