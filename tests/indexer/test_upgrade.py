"""Upgrades: an index made with the first schema is carried to the newest one without indexing again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from share_world import MoodyEmbedder, ShareWorld

from db import migrate
from db.pool import OWNER, READER, Database
from db.server import ServerHandle
from indexer.context import recipe
from notewarden.settings import Settings

# What stood in the share when the rows of first_schema.sql were made.
NOTES = {
    "team/plan.md": "# Plan\n\nThe move to the new hall is in May.\n",
    "team/hr/pay.md": "# Pay\n\nBands are reviewed each year.\n",
    "readme.md": "---\ntags: [start]\n---\n# Start here\n\nWhere to find what.\n",
}


@pytest.fixture
def old(database_server: ServerHandle, empty_database: str) -> str:
    """The name of a database as the first schema left it."""
    with psycopg.connect(database_server.dsn(OWNER, empty_database), autocommit=True) as conn:
        migrate.migrate(conn, migrate.migrations()[:1])
        conn.execute(Path(__file__).with_name("first_schema.sql").read_bytes())
    return empty_database


@pytest.fixture
def world(
    tmp_path: Path, database_server: ServerHandle, old: str, settings_factory: Callable[..., Settings]
) -> Iterator[ShareWorld]:
    with Database.from_dsns(database_server.dsn(OWNER, old), database_server.dsn(READER, old)) as database:
        world = ShareWorld(tmp_path, database, settings_factory)
        world.embedder = MoodyEmbedder(8)
        world.restart()
        for path, text in NOTES.items():
            world.write(path, text)
        with database.owner() as conn:
            assert migrate.migrate(conn) == len(migrate.migrations()) - 1
        yield world


def test_everything_is_there_and_closed_until_a_sweep(world: ShareWorld) -> None:
    assert world.paths() == set(NOTES)
    assert world.readable("alice") == set(), "the rows may be older than a right that was taken away"
    report = world.sync()
    assert (report.status, report.added, report.deleted) == ("ok", 0, 0)
    assert world.readable("alice") == set(NOTES)
    assert "new hall" in world.text("alice")
    world.whole()


def test_nothing_is_embedded_again_where_the_way_of_indexing_is_the_same(world: ShareWorld) -> None:
    before = world.rows("select chunker, template, embedder from nw.generation where state = 'serving'")[0]
    now = recipe(world.settings, world.embedder)
    world.sync()
    again = len(world.embedder.texts)
    assert again == (0 if before == (now.chunker, now.template, now.embedder) else len(NOTES))


def test_it_works_on_after_the_upgrade(world: ShareWorld) -> None:
    world.sync()
    world.write("team/plan.md", "# Plan\n\nThe move was put off to June.\n")
    (world.root / "readme.md").unlink()
    world.write("new.md")
    world.sync()
    world.sync()
    assert world.paths() == {"team/plan.md", "team/hr/pay.md", "new.md"}
    assert "June" in world.text("alice")
    assert "in May" not in world.text("alice")
    world.whole()
