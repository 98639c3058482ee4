"""The share that the indexer's tests act on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from share_world import ShareWorld

from db.pool import Database
from notewarden.settings import Settings


@pytest.fixture
def make_world(
    tmp_path: Path, database: Database, settings_factory: Callable[..., Settings]
) -> Callable[..., ShareWorld]:
    """Return a function that makes the test's share; it takes the keys of [[share]]."""
    return lambda **share: ShareWorld(tmp_path, database, settings_factory, **share)


@pytest.fixture
def world(make_world: Callable[..., ShareWorld]) -> ShareWorld:
    """A share whose files' own modes say who may read."""
    return make_world()
