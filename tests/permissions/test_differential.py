"""What search shows against what a real Samba lets everybody open: exactly the same notes, person by person.

The verdict is that of the one decision in the database, after a real sync, under the rightly declared model.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.database import _created as created
from support.samba import KINDS, Samba
from support.smb_world import GIDS, SERVER_OPTIONS, World, cast

from acl.directory import make_directory
from acl.token import build_token
from db.pool import OWNER, READER, Database
from db.search import reading
from db.server import ServerHandle
from indexer.sync import Indexer
from notewarden.embedding.hashed import HashEmbedder
from notewarden.settings import Settings

Fresh = Callable[[], AbstractContextManager[Database]]

SEED = 20261129


def shown_by_index(
    world: World, folder: Path, fresh: Fresh, make: Callable[..., Settings], **acl: Any
) -> dict[str, set[str]]:
    """Index the world's share as configured; return what each person may read of it."""
    people, secret = folder / "people.toml", folder / "password"
    people.write_text(world.people_toml())
    secret.write_text("pw-svc")
    people.chmod(0o600)
    secret.chmod(0o600)
    rights = {key: value for key, value in world.acl_settings(secret, **acl).items() if value is not None}
    settings = make(
        share=[{"name": world.name, "path": world.root, "acl": rights}],
        directory={"source": "file", "file": people},
    )
    directory = make_directory(settings)
    with fresh() as database:
        report = Indexer(settings, database, directory=directory, embedder=HashEmbedder(16)).sync()
        assert report.shares[0].status == "ok", report.shares[0].reason
        return {name: _readable(database, directory, world.name, name) for name in world.people}


def _readable(database: Database, directory: Any, share: str, name: str) -> set[str]:
    token = build_token(directory, directory.user(name))
    with database.reader() as conn, reading(conn, token) as session:
        return {os.fsdecode(path) for _, of, path in session.notes() if of == share}


@pytest.fixture(scope="module")
def crowd(start_samba: Callable[..., Samba]) -> Callable[[int], Samba]:
    """A function that gives a server with so many people, started when first asked for."""
    servers: dict[int, Samba] = {}

    def give(count: int) -> Samba:
        if count not in servers:
            options = {key.replace(" ", "_"): value for key, value in SERVER_OPTIONS.items()}
            servers[count] = start_samba(cast(count), GIDS, **options)
        return servers[count]

    return give


@pytest.fixture
def fresh_database(database_server: ServerHandle, template_database: str) -> Fresh:
    """A function that opens an empty database, gone when it is left."""

    @contextmanager
    def open_one() -> Iterator[Database]:
        with (
            created(database_server, template_database) as name,
            Database.from_dsns(database_server.dsn(OWNER, name), database_server.dsn(READER, name)) as one,
        ):
            yield one

    return open_one


@pytest.fixture
def world_of(crowd: Callable[[int], Samba]) -> Iterator[Callable[..., World]]:
    """A function that builds a world of one kind from a seed; all are removed after the test."""
    made: list[World] = []

    def build(kind: str, seed: int, *, notes: int, people: int) -> World:
        dice = random.Random(f"{kind}/{seed}")
        made.append(World(crowd(people), f"{kind}-{seed}", kind, dice))
        return made[-1].build(notes)

    yield build
    for world in made:
        world.remove()


def compare(world: World, shown: dict[str, set[str]], seed: int) -> int:
    """Hold the two against each other; return how many pairs may be read."""
    truth = world.truth()
    over = {name: sorted(shown[name] - truth[name]) for name in truth if shown[name] - truth[name]}
    under = {name: sorted(truth[name] - shown[name]) for name in truth if truth[name] - shown[name]}
    assert not over, f"shown, though the server refuses (seed {seed}): {over}"
    assert not under, f"hidden, though the server opens (seed {seed}): {under}"
    return sum(map(len, truth.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_search_shows_what_the_server_opens(
    kind: str,
    world_of: Callable[..., World],
    tmp_path: Path,
    fresh_database: Fresh,
    settings_factory: Callable[..., Settings],
) -> None:
    opened = 0
    for seed in (SEED, SEED + 1):
        world = world_of(kind, seed, notes=120, people=8)
        shown = shown_by_index(world, tmp_path, fresh_database, settings_factory)
        opened += compare(world, shown, seed)
    assert opened, "nobody may read anything: the worlds prove nothing"


def test_a_plain_descriptor_never_opens_what_the_server_refuses(
    world_of: Callable[..., World],
    tmp_path: Path,
    fresh_database: Fresh,
    settings_factory: Callable[..., Settings],
) -> None:
    """Without posix_path a unix mode is known from the list alone: exact or narrower on a plain share."""
    world = world_of("plain", SEED + 7, notes=120, people=8)
    truth = world.truth()
    shown = shown_by_index(world, tmp_path, fresh_database, settings_factory, posix_path=None)
    assert all(shown[name] <= truth[name] for name in truth)
    hidden = sum(len(truth[name] - shown[name]) for name in truth)
    assert hidden <= sum(map(len, truth.values())) * 0.05


@pytest.mark.prove
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("kind", KINDS)
def test_many_worlds(
    kind: str,
    world_of: Callable[..., World],
    tmp_path: Path,
    fresh_database: Fresh,
    settings_factory: Callable[..., Settings],
) -> None:
    first = int(os.environ.get("WORLD_SEED") or random.SystemRandom().randrange(10**6))
    print(f"{kind}: worlds with the seeds {first} to {first + 19}")  # noqa: T201
    for seed in range(first, first + 20):
        world = world_of(kind, seed, notes=200, people=12)
        shown = shown_by_index(world, tmp_path, fresh_database, settings_factory)
        print(  # noqa: T201
            f"  {seed}: {compare(world, shown, seed)} of {200 * 12} pairs may be read, all agree", flush=True
        )
