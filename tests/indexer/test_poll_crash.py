"""Killed at any moment, the next sync leaves every note whole, once, and nothing besides."""

from __future__ import annotations

import random
import time

import psycopg
import pytest
from killing import victims
from share_world import MoodyEmbedder, ShareWorld
from test_crashes import remember, rewrite, texts, whole_and_once

from db.pool import OWNER
from db.runs import indexer_lock
from db.server import ServerHandle
from indexer.sync import IndexerBusy

KILLS = 50


def test_killed_at_any_moment(world: ShareWorld, database_server: ServerHandle) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    dice = random.Random(seed)
    versions: dict[str, set[str]] = {}
    world.embedder = MoodyEmbedder(24)
    world.restart()
    rewrite(world, dice, 0)
    remember(world, versions)
    world.sync()
    amid = 0
    with victims(world, database_server, world.one("select current_database()")) as processes:
        for version in range(1, KILLS + 1):
            process = processes.start()
            time.sleep(dice.uniform(0.0, 0.05))
            rewrite(world, dice, version)
            remember(world, versions)
            time.sleep(dice.uniform(0.0, 0.25))
            processes.kill(process)
            amid += bool(world.one("select count(*) from nw.run where ended_at is null"))
            with world.database.owner() as conn:
                conn.execute("update nw.run set ended_at = now() where ended_at is null")
            whole_and_once(world, versions)
    assert amid > KILLS / 4
    report = world.sync_all()
    assert report.exit_code == 0
    assert texts(world) == {path: (world.root / path).read_text() for path in versions}
    world.whole()
    time.sleep(0.1)
    assert world.sync_all().shares[0].hashed == 0


def test_a_killed_first_index_goes_on_and_embeds_nothing_twice(
    world: ShareWorld, database_server: ServerHandle
) -> None:
    world.embedder = MoodyEmbedder(24)
    world.restart()
    for number in range(200):
        world.write(f"f{number % 9}/{number}.md")
    with victims(world, database_server, world.one("select current_database()")) as processes:
        for _ in range(3):
            process = processes.start()
            before = len(world.paths())
            while len(world.paths()) < before + 20:
                time.sleep(0.01)
            processes.kill(process)
    done = world.one("select count(*) from nw.note_chunk")
    assert done >= 60
    report = world.sync_all()
    assert report.chunks_embedded == 200 - done
    assert len(world.readable("alice")) == 200
    world.whole()


def test_a_second_indexer_is_kept_off(world: ShareWorld, database_server: ServerHandle) -> None:
    world.write("a.md")
    dsn = database_server.dsn(OWNER, world.one("select current_database()"))
    with psycopg.connect(dsn) as other, indexer_lock(other) as held, pytest.raises(IndexerBusy):
        assert held
        world.sync()
    assert world.sync().added == 1
