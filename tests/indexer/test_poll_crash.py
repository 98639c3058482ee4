"""Killed at any moment, the next sync leaves every note whole, once, and nothing besides."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from share_world import MoodyEmbedder, ShareWorld

from db.pool import OWNER, READER
from db.runs import indexer_lock
from db.server import ServerHandle
from indexer.sync import IndexerBusy

HERE = Path(__file__).parent
NOTES = 300


def rewrite(world: ShareWorld, numbers: range, version: int) -> None:
    for number in numbers:
        sections = "\n\n".join(
            f"## Part {part}\n\nPart {part} of {number}, version {version}." for part in range(3)
        )
        world.write(f"f{number % 7}/{number}.md", f"# Note {number}\n\n{sections}\n")


def start(world: ShareWorld, server: ServerHandle, database: str) -> subprocess.Popen[bytes]:
    dsns = server.dsn(OWNER, database), server.dsn(READER, database)
    process = subprocess.Popen(
        [sys.executable, str(HERE / "sync_forever.py"), str(world.settings.file), *dsns, "384"],
        stdout=subprocess.PIPE,
        cwd=HERE.parent.parent,
        env={**os.environ, "PYTHONPATH": str(HERE.parent.parent)},
    )
    assert process.stdout is not None
    assert b"ready" in process.stdout.readline()
    return process


def await_quiet(server: ServerHandle, database: str) -> None:
    """Wait until the server has noticed that its client is dead: until then the lock is held."""
    with psycopg.connect(server.dsn(OWNER, database), autocommit=True) as conn:
        for _ in range(200):
            row = conn.execute(
                "select count(*) from pg_stat_activity where datname = current_database()"
                " and backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid()"
            ).fetchone()
            locks = conn.execute("select count(*) from pg_locks where locktype = 'advisory'").fetchone()
            if row == (0,) and locks == (0,):
                return
            time.sleep(0.05)
    raise AssertionError("the dead indexer's connection is still there")


def test_killed_at_any_moment(world: ShareWorld, database_server: ServerHandle) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    world.embedder = MoodyEmbedder(384)  # the same model as the program's
    world.restart()
    dice = random.Random(seed)
    database = world.one("select current_database()")
    rewrite(world, range(NOTES), 0)
    for version in range(1, 6):
        process = start(world, database_server, database)
        time.sleep(dice.uniform(0.02, 1.2))
        rewrite(world, range(0, NOTES, dice.randrange(1, 9)), version)
        for number in dice.sample(range(NOTES), 5):
            (world.root / f"f{number % 7}/{number}.md").rename(world.root / f"f{number % 7}/{number}.md.txt")
            (world.root / f"f{number % 7}/{number}.md.txt").rename(world.root / f"f{number % 7}/{number}.md")
        time.sleep(dice.uniform(0.02, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        await_quiet(database_server, database)
    report = world.sync_all()
    assert report.exit_code == 0
    assert report.chunks_embedded < 3 * NOTES  # not built from nothing
    assert world.paths() == {f"f{n % 7}/{n}.md" for n in range(NOTES)}
    texts: dict[str, str] = {}
    for one in world.passages("alice"):
        path = os.fsdecode(one.path)
        texts[path] = texts.get(path, "") + one.content
    assert texts == {name: (world.root / name).read_text() for name in world.paths()}
    world.whole()
    time.sleep(0.1)
    assert world.sync_all().shares[0].hashed == 0


def test_a_second_indexer_is_kept_off(world: ShareWorld, database_server: ServerHandle) -> None:
    world.write("a.md")
    dsn = database_server.dsn(OWNER, world.one("select current_database()"))
    with psycopg.connect(dsn) as other, indexer_lock(other) as held, pytest.raises(IndexerBusy):
        assert held
        world.sync()
    assert world.sync().added == 1
