"""Weeks of faults in a minute: nothing is lost, nothing gone shown, and the index is as if made anew."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from killing import victims
from share_world import MoodyEmbedder, ShareWorld
from storm import Storm, differences, picture
from test_poll_generations import serving

from db import bootstrap, migrate
from db.pool import OWNER, READER, Database
from db.server import EmbeddedServer, ServerHandle
from notewarden.errors import DatabaseUnavailable
from notewarden.settings import Settings


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


def start_again(server: ServerHandle) -> None:
    """Start a killed server as soon as what is left of it lets that be."""
    for _ in range(300):
        try:
            return server.ensure()
        except DatabaseUnavailable:
            time.sleep(0.1)
    raise AssertionError("the server does not come back")


def kill_midway(world: ShareWorld, server: ServerHandle, database: str, after_s: float) -> None:
    """Let another process poll the share, and kill it."""
    with victims(world, server, database) as processes:
        process = processes.start()
        time.sleep(after_s)
        processes.kill(process)


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
            lambda: start_again(server),
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


@pytest.mark.timeout(1_200)
def test_a_storm(tmp_path: Path, own_server: ServerHandle, settings_factory: Callable[..., Settings]) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    blow(tmp_path, own_server, settings_factory, seed, 2_000, 40)


@pytest.mark.prove
@pytest.mark.timeout(3_600)
def test_a_long_storm(
    tmp_path: Path, own_server: ServerHandle, settings_factory: Callable[..., Settings]
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    blow(tmp_path, own_server, settings_factory, seed, 2_000, 200)
