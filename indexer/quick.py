"""The quick sync before a question in embedded mode, found by the other side through an entry point."""

from __future__ import annotations

from contextlib import suppress

from db import requests
from db.pool import Database
from indexer.progress import ProgressLine
from indexer.setup import equip
from indexer.sync import Indexer, IndexerBusy, Options
from notewarden.settings import Settings


def quick_sync(settings: Settings) -> None:
    """Poll every share once; return at once if another indexer or a daemon is at work.

    Raises as Indexer.sync does.
    """
    equipment = equip(settings)
    progress = ProgressLine(terminal_only=True)
    with Database.open(settings) as database, suppress(IndexerBusy):
        with database.owner() as conn:
            if requests.daemon(conn) is not None:
                return
        indexer = Indexer(settings, database, directory=equipment.directory, embedder=equipment.embedder)
        try:
            indexer.sync(Options(progress=progress))
        finally:
            progress.close()
