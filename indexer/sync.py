"""One run over all shares: `notewarden sync`, the daemon's poll, the quick sync before a question."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

from acl.directory import Directory, make_directory
from acl.source import Source, make_source
from db import conversations, generations, latecheck, runs, shares, usage
from db.lists import ListStore
from db.pool import Connection, Database
from indexer.context import Progress, Run, Tries, recipe
from indexer.files import Files
from indexer.patience import LIMIT_S, Patience
from indexer.poll import SharePoll
from indexer.report import SyncReport
from indexer.takeover import take_over
from indexer.vectortending import tend
from notewarden import patient
from notewarden.embedding.base import Embedder, Metered
from notewarden.embedding.factory import make_embedder
from notewarden.errors import NotewardenError, ShareUnavailable
from notewarden.log import get_logger, naming
from notewarden.settings import Settings
from notewarden.settings_sections import ShareSettings

_log = get_logger(__name__)


class IndexerBusy(NotewardenError):
    """Another indexer is at work on this database; wait for it to end."""


@dataclass(frozen=True)
class Options:
    """How a run differs from a plain poll. `emptied` names a share whose empty root is meant.

    `only`: the shares to poll, None for all; `permissions`: read every access list again, also where that
    means asking for each note; `patience_s`: how long a file system may take over one read.
    """

    full: bool = False
    only: frozenset[str] | None = None
    permissions: bool = True
    kind: str = "sync"
    emptied: str | None = None
    progress: Callable[[Progress], None] = lambda progress: None
    stopped: Callable[[], bool] = lambda: False
    files: Files | None = None
    patience_s: float = LIMIT_S
    daemon: bool = False


class Indexer:
    """The indexer on one database. Sources are made once: their first check is the load."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        *,
        directory: Directory | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        """Raises ConfigError for a share whose rights cannot be had as configured, ShareUnavailable."""
        self.settings = settings
        self.database = database
        self.directory = directory or make_directory(settings)
        self.embedder = embedder or make_embedder(settings.embedding)
        self._sources: dict[str, Source] = {}
        self._patience: dict[str, Patience] = {}

    def sync(self, options: Options = Options()) -> SyncReport:
        """Poll every share once.

        Raises ConfigError before anything is touched, DatabaseUnavailable, IndexerBusy.
        """
        for share in self.settings.shares:
            patience = self._patience.setdefault(share.name, Patience(share.name))
            patience.limit_s, patience.stopped = options.patience_s, options.stopped
        self._check_sources()
        with self.database.owner() as conn, sole_indexer(conn):
            return self._run(conn, options)

    def _check_sources(self) -> None:
        for share in self.settings.shares:
            patience = self._patience.setdefault(share.name, Patience(share.name))
            if not patient.answers(share.path, min(patient.FIRST_S, patience.limit_s)):
                continue
            try:
                patience.call(partial(self._check_source, share))
            except (TimeoutError, ShareUnavailable):
                continue  # the poll says so of this share alone

    def _check_source(self, share: ShareSettings) -> None:
        if stands(share.path):
            if share.name not in self._sources:
                self._sources[share.name] = make_source(share, self.directory)
            self._sources[share.name].check()

    def _run(self, conn: Connection, options: Options) -> SyncReport:
        began = time.monotonic()
        runs.commit_lazily(conn)
        run_id, started = runs.begin(conn, options.kind, daemon=options.daemon)
        report = SyncReport(run_id)
        try:
            with naming(run=run_id):
                self._poll_all(self._prepare(conn, report, options), options)
        except BaseException as error:
            if not conn.closed:
                runs.end(conn, run_id, report.as_json(), getattr(error, "exit_code", 1), type(error).__name__)
            raise
        report.seconds = time.monotonic() - began
        self._book(conn)
        conversations.drop_old(conn, self.settings.answer.history or timedelta())
        runs.end(conn, run_id, report.as_json(), report.exit_code)
        if options.only is None:
            latecheck.settle(conn, started, report.exit_code)
        return report

    def _book(self, conn: Connection) -> None:
        """Write what the embedding provider bills for this run."""
        tokens = self.embedder.take_tokens() if isinstance(self.embedder, Metered) else 0
        if tokens:
            cost = Decimal(tokens) * Decimal(str(self.settings.embedding.price)) / 1_000_000
            usage.add(conn, usage.Used("", self.settings.embedding.model, tokens, 0, cost))

    def _prepare(self, conn: Connection, report: SyncReport, options: Options) -> Run:
        shares.close_after_step(conn)
        shares.close_undeclared(conn, [share.name for share in self.settings.shares])
        generation_id, serving = generations.target(conn, recipe(self.settings, self.embedder))
        generations.abandon(conn, generation_id)
        return Run(
            settings=self.settings,
            conn=conn,
            directory=self.directory,
            embedder=self.embedder,
            generation_id=generation_id,
            serving=serving,
            report=report,
            files=options.files or Files(),
            full=options.full,
            permissions=options.permissions,
            progress=options.progress,
            stopped=options.stopped,
            tries=Tries(generations.fruitless(conn, generation_id)),
        )

    def _poll_all(self, run: Run, options: Options) -> None:
        for share in self.settings.shares:
            if options.only is not None and share.name not in options.only:
                continue
            poll = SharePoll(
                run,
                share,
                self._sources.get(share.name),
                patience=self._patience[share.name],
                accept_emptied=options.emptied == share.name,
            )
            run.report.shares.append(poll.run())
        # A note that could not be seen has no rows in the new generation: it must not lose those it has.
        lacking = any(one.pending or one.unread or one.status != "ok" for one in run.report.shares)
        lacking = lacking or options.only is not None
        if not run.serving:
            take_over(run, ready=not lacking and not run.stopped())
        tried = run.tries.after(run.report.chunks_embedded)
        generations.set_fruitless(run.conn, run.generation_id, tried)
        generations.drop_retired(run.conn)
        ListStore(run.conn, self.directory).drop_unused()
        if not run.stopped():
            tend(run.conn, self.settings.search)


def stands(root: Path) -> bool:
    """Whether the share's folder is there, as far as its file system says."""
    try:
        return root.is_dir()
    except OSError:  # a mount whose server is gone; the poll says so of this share alone
        return False


@contextmanager
def sole_indexer(conn: Connection) -> Iterator[None]:
    """Be the only indexer of this database. Raises IndexerBusy."""
    with runs.indexer_lock(conn) as held:
        if not held:
            raise IndexerBusy
        yield


def totals(report: SyncReport) -> Mapping[str, int]:
    """Return the run's counts over all shares, for a line on a terminal."""
    names = (
        "seen",
        "added",
        "changed",
        "moved",
        "deleted",
        "held",
        "pending",
        "parked",
        "unreadable",
        "skipped",
    )
    return {name: sum(getattr(share, name) for share in report.shares) for name in names}
