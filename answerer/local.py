"""The in-process door: `ask` answers itself, with the same role, decision and late check as the service."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from acl.directory import make_directory
from answerer.door import Tell, Told, Wish
from answerer.engine import Engine, Thread
from answerer.identity import Asker, Doorkeeper
from answerer.shown import parse_lines
from answerer.visit import Reply, Where
from db.pool import Database
from db.search import last_poll
from notewarden.display import printable
from notewarden.embedding.factory import make_embedder
from notewarden.errors import DatabaseUnavailable, NotewardenError
from notewarden.log import configure_logging
from notewarden.settings import Settings, load_settings

QUICK_SYNC = "notewarden.quick_sync"


@contextmanager
def open_local(file: Path, *, sync: bool) -> Iterator[Tell]:
    """Yield the function that answers for the account of the effective uid.

    With `sync` a quick sync comes first when the last poll is older than the schedule's. Raises whatever
    configuration, directory, database and embedding model raise. Who may not ask hears that, and nothing of
    an index that belongs to another account: it is opened for the first who may.
    """
    settings = load_settings(file)
    configure_logging(settings.log)
    directory = make_directory(settings)
    doorkeeper = Doorkeeper(directory, settings, service=False)
    with ExitStack() as held:

        @cache
        def engine() -> Engine:
            database = held.enter_context(_open(settings, sync))
            return Engine(settings, database, directory, make_embedder(settings.embedding))

        def tell(wish: Wish) -> Told:
            asker = doorkeeper.asker(os.geteuid(), wish.fields.get("as"))
            reply = _reply(engine(), asker, wish)
            return Told(reply.result.to_json(), reply.notices)

        yield tell


def _reply(engine: Engine, asker: Asker, wish: Wish) -> Reply[Any]:
    fields = wish.fields
    where = Where(fields.get("share"), tuple(fields.get("folders", ())))
    if wish.action == "ask":
        thread = Thread(fields.get("continued", False), wish.show)
        return engine.ask(asker, fields["question"], where, fields["k"], thread=thread)
    if wish.action == "judge":
        return engine.judged(asker, fields["question"], fields["k"])
    if wish.action == "forget":
        return engine.forget(asker)
    if wish.action == "search":
        return engine.search(asker, fields["words"], where, fields["k"], explain=fields.get("explain", False))
    if wish.action == "show":
        lines = parse_lines(fields["lines"]) if "lines" in fields else None
        return engine.show(asker, fields["path"], fields.get("share"), lines)
    return engine.status(asker)


@contextmanager
def _open(settings: Settings, sync: bool) -> Iterator[Database]:
    """Open the reader's side, after a quick sync where one is due: also where nothing was ever indexed."""
    run = _quick_sync() if sync else None
    try:
        database = Database.open_reader(settings)
    except DatabaseUnavailable:
        if run is None or not _sync(run, settings):
            raise
        database, run = Database.open_reader(settings), None
    with database:
        if run is not None and _is_due(database, settings):
            _sync(run, settings)
        yield database


def _quick_sync() -> Callable[[Settings], None] | None:
    for found in entry_points(group=QUICK_SYNC):
        run: Callable[[Settings], None] = found.load()
        return run
    return None


def _is_due(database: Database, settings: Settings) -> bool:
    with database.reader() as conn:
        polled = last_poll(conn)
    return polled is None or datetime.now(UTC) - polled > settings.schedule.poll


def _sync(run: Callable[[Settings], None], settings: Settings) -> bool:
    """Run it and tell whether it worked; the index still answers where it did not."""
    try:
        run(settings)
    except NotewardenError as error:
        sentence = f"ask: The quick sync did not work: {printable(str(error))}"
        print(sentence, file=sys.stderr)  # noqa: T201
        return False
    return True
