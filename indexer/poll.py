"""One poll of one share: is it the share, what is there, who may read it, and only then its text."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from acl.compile import COMPILER
from acl.source import Source
from db import ledger, runs, shares, status
from db.audiences import AudienceStore
from db.ledger import Trouble
from db.lists import ListStore
from db.notes import Known, NoteStore
from db.shares import Share
from indexer.applying import Applier
from indexer.context import Run
from indexer.hint import Clock
from indexer.identity import Identity, opened_share
from indexer.indexing import Indexing
from indexer.patience import Patience
from indexer.patterns import Patterns
from indexer.policies import Guards
from indexer.reading import NoteReader
from indexer.report import ShareReport
from indexer.survey import Survey, Surveyor, nameable
from indexer.sweep import Job, OpenShare, Stores, Sweep, Verdicts, asks_each
from indexer.vectors import token_store
from indexer.walk import Outcome, Walk
from notewarden.errors import ShareUnavailable
from notewarden.log import get_logger
from notewarden.settings_sections import ShareAclSettings, ShareSettings

_log = get_logger(__name__)
_T = TypeVar("_T")

_AGEING = 0.75  # of max_age

# Chunks whose missing token vectors one poll makes up for: the poll before a question is waited for.
_TOKEN_CHUNKS = 256


@dataclass(frozen=True)
class _Poll:
    """What one poll works on: the share's row, its repositories, its open folder, and what was indexed."""

    row: Share
    started: datetime
    stores: Stores
    opened: OpenShare
    known: dict[bytes, Known]
    troubles: dict[bytes, Trouble]
    walk: Iterator[Outcome]


class SharePoll:
    """Polls one share within a run."""

    def __init__(
        self,
        run: Run,
        share: ShareSettings,
        source: Source | None,
        *,
        patience: Patience | None = None,
        accept_emptied: bool = False,
    ) -> None:
        """`source` was checked, or is None where the share's folder was missing then.

        `accept_emptied`: an admin said that an empty root is meant.
        """
        self._run = run
        self._settings = share
        self._source = source
        self._patience = patience or Patience(share.name)
        self._accept_emptied = accept_emptied
        self.report = ShareReport(share.name)

    def run(self) -> ShareReport:
        """Poll and return what was done; a share that cannot be polled is reported, not raised."""
        settings, conn = self._settings, self._run.conn
        row = shares.declare(conn, settings.name, str(settings.path), settings.link, settings.acl.max_age)
        try:
            with self._opened(row) as poll:
                self._poll(poll)
        except ShareUnavailable as error:
            _log.warning("share unavailable", share=settings.name, reason=str(error))
            shares.unavailable(conn, row.share_id, str(error))
            self.report.status, self.report.reason = "unavailable", str(error)
        finally:
            self._patience.close()
        self._count_standing(row.share_id)
        return self.report

    def _poll(self, poll: _Poll) -> None:
        conn, share_id = self._run.conn, poll.row.share_id
        policy, recorded = _fingerprint(self._settings.acl), poll.row.identity or {}
        identity, root = Identity(poll.opened.files, self._settings, recorded.get("root")), poll.opened.root
        seen = self._answered(lambda: identity.check(root, poll.known.values()))
        # Without a sweep that counts, as after a clock was set back, times say nothing.
        trust_hints = recorded.get("policy") == policy and poll.row.swept_at is not None
        survey = self._survey(poll, trust_hints=trust_hints)
        asked = {"full": self._run.full, "permissions": self._run.permissions}
        asked["close_unseen"] = self._is_ageing(poll)
        found = Sweep(poll.stores, poll.opened, self._run.directory, **asked).run(survey)
        found.jobs += self._to_make_anew(poll, survey, found)
        self._answered(lambda: identity.still(root))
        self._apply(poll, survey, found)
        self.report.unread = found.unread
        if not found.unread and (self._run.permissions or not asks_each(poll.opened.source)):
            shares.swept(conn, share_id, poll.started)
        self._index(poll, survey, found)
        if self._run.stopped():
            return  # notes were left out: what is known is not what stands
        with conn.transaction():
            if found.jobs or found.wanted or found.verified:
                # And with it all that this poll committed: what it reports, it has done.
                runs.commit_now(conn)
            shares.polled(conn, share_id, poll.started, {"root": seen, "policy": policy})

    def _answered(self, look: Callable[[], _T]) -> _T:
        try:
            return self._patience.call(look)
        except TimeoutError as error:
            raise ShareUnavailable(
                f"The file system of share {self._settings.name!r} does not answer; check the mount and its "
                "server. Nothing was deleted."
            ) from error

    def _is_ageing(self, poll: _Poll) -> bool:
        """Whether what cannot be read now must be hidden, lest the whole share closes by its age."""
        swept = poll.row.swept_at
        return swept is not None and poll.started - swept > _AGEING * self._settings.acl.max_age

    @contextmanager
    def _opened(self, row: Share) -> Iterator[_Poll]:
        settings, files, conn = self._settings, self._run.files, self._run.conn
        started = shares.clock(conn)
        with opened_share(files, settings.path, self._patience) as root:
            source = self._source or self._answered(
                lambda: self._run.make_source(settings, self._run.directory)
            )
            clock = Clock.of(self._answered(lambda: files.kind(settings.path)))
            self._patience.direct = clock.local and not files.may_hang
            reader = NoteReader(files, source, clock, settings.max_bytes, self._patience)
            patterns = Patterns(settings.include, settings.exclude)
            opened = OpenShare(source, reader, files, patterns, root, self._patience)
            audiences = AudienceStore(conn, row.share_id)
            notes = NoteStore(conn, row.share_id, audiences)
            stores = Stores(
                conn, row.share_id, ListStore(conn, self._run.directory), audiences, notes, notes.narrowed()
            )
            troubles = ledger.of_share(conn, row.share_id)
            with closing(Walk(files, source, patterns, self._patience).run(root)) as walk:
                with collector_paused():
                    ahead, known = _walk_while(walk, notes.known)
                yield _Poll(row, started, stores, opened, known, troubles, chain(ahead, walk))

    def _survey(self, poll: _Poll, *, trust_hints: bool) -> Survey:
        with collector_paused():
            survey = Surveyor(poll.known, poll.troubles, trust_hints=trust_hints).run(poll.walk)
        self.report.seen = survey.seen
        for failure in survey.failures:
            if not failure.folder:
                raise ShareUnavailable(
                    f"The root of share {self._settings.name!r} cannot be listed ({failure.error.strerror}); "
                    "check the mount and this service's account. Nothing was deleted."
                )
        if poll.known and not survey.root_entries and not self._accept_emptied:
            raise ShareUnavailable(
                f"The folder of share {self._settings.name!r} is empty although notes are indexed; check the "
                f"mount, or run `notewarden confirm-deletes --share {self._settings.name} --emptied` if it "
                "was really emptied. Nothing was deleted."
            )
        return survey

    def _apply(self, poll: _Poll, survey: Survey, found: Verdicts) -> None:
        """Bring permissions, deletes and the ledger to what was read, all in one transaction."""
        stores = poll.stores
        with stores.conn.transaction():
            stores.lists.refresh_principals()
            shares.set_lists(stores.conn, stores.share_id, stores.lists.ids(poll.opened.source.share_lists()))
            self._forget_old_trouble(poll, survey)
            Applier(stores, self._run.settings.deletes, self.report).apply(found, len(poll.known))
            for failure in survey.failures:
                folder = nameable(failure.folder)
                ledger.record(stores.conn, stores.share_id, folder, ("unreadable", failure.reason))
            for path, reason in survey.odd:
                ledger.record(stores.conn, stores.share_id, path, ("skipped", reason))
        self.report.hashed = len(found.hashed)

    def _forget_old_trouble(self, poll: _Poll, survey: Survey) -> None:
        if not poll.troubles:
            return
        standing = {path for path, _ in [*survey.fresh, *survey.odd]} | set(survey.idle)
        standing |= {note.path for note in [*survey.suspects, *survey.unseen]}
        ended = [path for path in poll.troubles if path not in standing and not survey.hides(path)]
        ledger.clear(poll.stores.conn, poll.stores.share_id, ended)

    def _index(self, poll: _Poll, survey: Survey, found: Verdicts) -> None:
        guards = Guards(poll.stores.lists, survey.guards)
        jobs = sorted(found.jobs, key=partial(_turn, poll.troubles, self._run.report.run))
        if jobs:  # what lies ahead may take hours: `status` tells how far it is by what was seen
            told = self._run.report
            runs.tell(self._run.conn, told.run, told.so_far(self.report))
        work = Indexing(self._run, self._settings, poll.opened, poll.stores, self.report)
        work.work(jobs, guards)
        if jobs:
            poll.stores.audiences.drop_empty()
        self.report.hashed = len(found.hashed | work.hashed)

    def _to_make_anew(self, poll: _Poll, survey: Survey, found: Verdicts) -> list[Job]:
        """Jobs for unchanged notes that the generation being built does not have yet.

        Where one serves, for those that lack token vectors, a part of them in each poll.
        """
        if not self._run.serving:
            lacking = poll.stores.notes.unindexed(self._run.generation_id)
            return _jobs(survey, found, lacking)
        store = token_store(self._run)
        chunks = {} if store is None else store.lacking(poll.row.share_id)
        jobs, room = [], _TOKEN_CHUNKS
        for job in _jobs(survey, found, chunks.keys()) if chunks else []:
            if room > 0 and job.note is not None:
                jobs.append(job)
                room -= chunks[job.note.note_id]
        return jobs

    def _count_standing(self, share_id: int) -> None:
        troubles = ledger.of_share(self._run.conn, share_id)
        held = {one.path for one in self._run.waiting if one.share == self._settings.name}
        states = [trouble.state for trouble in troubles.values() if trouble.path not in held]
        closed = {one.path for one in status.quarantined(self._run.conn, [self._settings.name])}
        self.report.pending = states.count("pending")
        self.report.parked = states.count("parked")
        self.report.unreadable = states.count("unreadable") + len(closed - troubles.keys())
        self.report.skipped = states.count("skipped")
        self.report.held = shares.held(self._run.conn, share_id)


def _jobs(survey: Survey, found: Verdicts, lacking: Set[int]) -> list[Job]:
    """Jobs for those of the notes `lacking` that are there and that nothing else is to be done with."""
    wanted = lacking - {job.note.note_id for job in found.jobs if job.note is not None}
    there = [note for notes in survey.unchanged.values() for note in notes]
    there += [note for note, _, _ in found.verified]
    return [
        Job(note.path, note) for note in there if note.note_id in wanted and note.path not in survey.settled
    ]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Make many small objects that hold no cycles without the collector searching them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _walk_while(walk: Iterator[Outcome], work: Callable[[], _T]) -> tuple[list[Outcome], _T]:
    """Walk on while `work` waits for the database in a thread; return what was walked, and its result."""
    ahead: list[Outcome] = []
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(work)
        while not waiting.done() and (outcome := next(walk, None)) is not None:
            ahead.append(outcome)
        return ahead, waiting.result()


def _turn(troubles: Mapping[bytes, Trouble], run: int, job: Job) -> tuple[int, bytes, bytes]:
    """Those tried least come first, those tried as often in another order each run: a note on which the model
    breaks down keeps no other back for long.
    """
    tried = troubles[job.path].attempts if job.path in troubles else 0
    return tried, hashlib.sha256(b"%d" % run + job.path).digest() if tried else b"", job.path


def _fingerprint(acl: ShareAclSettings) -> str:
    """What stored lists were made with: when it changes, every note is read again."""
    made_with: tuple[Any, ...] = (COMPILER, acl.source, acl.model, acl.guards, acl.read_mask)
    made_with += (acl.null_dacl, acl.same_ids)
    return hashlib.sha256(repr(made_with).encode()).hexdigest()[:16]
