"""What the commands that use the index need besides it: directory and model, and patience."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from acl.directory import Directory, make_directory
from acl.source import make_source
from indexer.output import say
from indexer.patience import Patience
from indexer.sync import IndexerBusy, stands
from notewarden import patient
from notewarden.embedding.base import Embedder
from notewarden.embedding.factory import make_embedder
from notewarden.errors import ShareUnavailable
from notewarden.settings import Settings
from notewarden.settings_sections import ShareSettings

_PATIENCE_S = 60.0
_PAUSE_S = 0.5
_MOUNT_S = 10.0  # a share that is silent for longer is checked by the poll

T = TypeVar("T")


@dataclass(frozen=True)
class Equipment:
    """What a run of the indexer needs besides the database, already checked against the configuration."""

    directory: Directory
    embedder: Embedder


def equip(settings: Settings) -> Equipment:
    """Check everything that makes a run impossible, before the database is touched.

    Raises ConfigError, also for a share whose file system shows no real modes, and DirectoryUnreachable.
    """
    directory = make_directory(settings)
    for share in settings.shares:
        if not patient.answers(share.path, patient.FIRST_S):
            continue
        with closing(Patience(share.name, _MOUNT_S)) as patience:
            try:
                patience.call(partial(_check, share, directory))
            except (TimeoutError, ShareUnavailable):
                continue  # a dead mount: the poll says so of this share alone
    return Equipment(directory, make_embedder(settings.embedding))


def _check(share: ShareSettings, directory: Directory) -> None:
    if stands(share.path):
        make_source(share, directory).check()


def patiently(work: Callable[[], T], patience_s: float = _PATIENCE_S) -> T:
    """Do `work`, waiting while another indexer is at work on the database. Raises IndexerBusy after that."""
    deadline, told = time.monotonic() + patience_s, False
    while True:
        try:
            return work()
        except IndexerBusy:
            if time.monotonic() >= deadline:
                raise IndexerBusy(
                    f"Another indexer has been at work on this database for {patience_s:.0f} s; "
                    "try again when it has ended."
                ) from None
        if not told:
            say("another indexer is at work on this database; waiting for it to end")
            told = True
        time.sleep(_PAUSE_S)
