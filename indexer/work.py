"""What the daemon's one worker does: polls, verification, housekeeping, and the admin's requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from acl.directory import Directory
from db import housekeeping
from db.pool import Database
from db.requests import Request
from indexer.confirm import Confirmation, confirm_shares, wanted_shares
from indexer.context import Progress
from indexer.faults import Clock, Faults
from indexer.gate import PROVIDER, Stopped, gate
from indexer.reindex import outdate
from indexer.report import SyncReport
from indexer.setup import Equipment
from indexer.sync import Indexer, IndexerBusy, Options
from indexer.timetable import HOUSEKEEPING, POLL, RETRY, VERIFY
from notewarden.errors import DatabaseUnavailable, NotewardenError, ShareUnavailable
from notewarden.log import get_logger
from notewarden.settings import Settings

_log = get_logger(__name__)

DATABASE = "database"
BUSY_S = 2.0

_LOCAL_SLICE, _REMOTE_SLICE = 8, 128  # texts of one call: a stop must be heard within 5 s


@dataclass
class Activity:
    """What the worker does now, read by the daemon's loop."""

    name: str = ""
    began: float = 0.0
    heard: float = 0.0  # when it last showed a sign of life
    progress: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a piece of work ended.

    `again_s`: poll again within so many seconds; `retry_s`: try the shares in trouble again then.
    """

    name: str
    report: SyncReport | None = None
    error: Exception | None = None
    again_s: float | None = None
    retry_s: float | None = None


@dataclass(frozen=True)
class Flags:
    """What the loop tells the worker: end altogether, or end this poll since an admin waits."""

    stopping: Callable[[], bool]
    yielding: Callable[[], bool]


class Work:
    """Does one thing at a time, and never raises: an outcome says what came of it."""

    def __init__(
        self, settings: Settings, database: Database, equipment: Equipment, faults: Faults, flags: Flags
    ) -> None:
        self.settings = settings
        self.activity = Activity()
        self.totals: dict[str, int] = {}
        self._database = database
        self._equipment = equipment
        self._faults = faults
        self._flags = flags
        remote = settings.embedding.provider == "voyage"
        size = _REMOTE_SLICE if remote else _LOCAL_SLICE
        embedder = gate(equipment.embedder, faults, flags.stopping, slice_texts=size)
        self._indexer = Indexer(settings, database, directory=equipment.directory, embedder=embedder)

    @property
    def directory(self) -> Directory:
        """The directory this work looks people up in."""
        return self._equipment.directory

    @property
    def clock(self) -> Clock:
        """The daemon's clocks."""
        return self._faults.clock

    def do(self, name: str) -> Outcome:
        """Do the job `name` of the timetable."""
        self._begin(name)
        try:
            return self._done(name, *self._job(name))
        except Exception as error:  # the one place where no fault may end the daemon
            return self._failed(name, error)
        finally:
            self.activity = Activity()

    def serve(self, request: Request) -> tuple[Outcome, dict[str, Any], int | None]:
        """Do what an admin asked for; returns the outcome, the result and the exit code.

        The exit code is None where the work was stopped or the database failed: the request is not done.
        """
        self._begin(request.kind)
        try:
            result, code, report = self._wish(request)
            return self._done(request.kind, report, None), result, code
        except Exception as error:
            outcome = self._failed(request.kind, error)
            if isinstance(error, Stopped | DatabaseUnavailable | IndexerBusy):
                return outcome, {}, None
            sentence = str(error) if isinstance(error, NotewardenError) else "Unexpected fault; see the log."
            return outcome, {"error": sentence}, getattr(error, "exit_code", 1)
        finally:
            self.activity = Activity()

    def _job(self, name: str) -> tuple[SyncReport | None, float | None]:
        if self._faults.holds(DATABASE):
            return None, self._faults.left_s(DATABASE)
        if name == HOUSEKEEPING:
            self._tidy()
            return None, None
        return self._poll(name)

    def _poll(self, name: str) -> tuple[SyncReport | None, float | None]:
        shares = self._due_shares(only_faulty=name == RETRY)
        if not shares:
            return None, None
        every = len(shares) == len(self.settings.shares)
        sweeping = name != POLL or self.settings.schedule.acl == "poll"
        report = self._indexer.sync(
            Options(
                full=name == VERIFY,
                only=None if every else frozenset(shares),
                permissions=sweeping,
                progress=self._tell,
                stopped=self._stopped_or_asked,
                daemon=True,
            )
        )
        if name == VERIFY:
            self._verify_rows()
        cut_short = self._flags.yielding() and not self._flags.stopping()
        return report, 0.0 if cut_short else None

    def _due_shares(self, *, only_faulty: bool) -> list[str]:
        names = [one.name for one in self.settings.shares if not self._faults.holds(_share(one.name))]
        return [name for name in names if not only_faulty or _share(name) in self._faults.standing]

    def _retry_s(self) -> float | None:
        waits = [self._faults.left_s(_share(one.name)) for one in self.settings.shares]
        return min((wait for wait in waits if wait), default=None)

    def _wish(self, request: Request) -> tuple[dict[str, Any], int, SyncReport | None]:
        arguments = request.arguments
        if request.kind == "confirm-deletes":
            shares = wanted_shares(self.settings, arguments.get("share"))
            confirmation = Confirmation(self._database, self.directory, actor=arguments.get("actor"))
            done = confirm_shares(confirmation, shares, emptied=bool(arguments.get("emptied")))
            return done.as_json(), ShareUnavailable.exit_code if done.trouble else 0, None
        result: dict[str, Any] = {}
        if request.kind == "reindex":
            paths, share = arguments.get("paths"), arguments.get("share")
            result["outdated"] = outdate(self._database, self.settings, paths, share)
        options = Options(
            full=bool(arguments.get("full")), progress=self._tell, stopped=self._stopped, daemon=True
        )
        report = self._indexer.sync(options)
        if self._flags.stopping():
            raise Stopped
        reasons = {one.share: one.reason for one in report.shares if one.status != "ok"}
        return {**result, "report": report.as_json(), "reasons": reasons}, report.exit_code, report

    def _tidy(self) -> None:
        schedule = self.settings.schedule
        keep = housekeeping.Keep(schedule.keep_runs, schedule.keep_audit, schedule.keep_usage)
        with self._database.owner() as conn:
            done = housekeeping.tidy(conn, keep)
        _log.info("housekeeping done", **done)

    def _verify_rows(self) -> None:
        with self._database.owner() as conn:
            found = housekeeping.verify(conn)
        if any(found.values()):
            _log.error("the index had faults; what they hit is made again", **found)
        else:
            _log.info("verified", **found)

    def _done(self, name: str, report: SyncReport | None, again_s: float | None) -> Outcome:
        if not self._faults.holds(DATABASE):
            self._faults.passed(DATABASE)
        if report is None:
            return Outcome(name, again_s=again_s)
        self._faults.passed("configuration")
        self._faults.passed("directory")
        self._faults.passed("work")
        for share in report.shares:
            if share.status == "ok":
                self._faults.passed(_share(share.share))
            else:
                self._faults.failed(_share(share.share), share.reason)
        waiting = any(share.pending for share in report.shares) and self._faults.holds(PROVIDER)
        if waiting:
            left = self._faults.left_s(PROVIDER)
            again_s = left if again_s is None else min(again_s, left)
        self._count(report)
        about = {"run": report.run, "job": name, "exit": report.exit_code}
        _log.info("polled", **about, seconds=round(report.seconds, 3), **_counts(report))
        return Outcome(name, report, again_s=again_s, retry_s=self._retry_s())

    def _failed(self, name: str, error: Exception) -> Outcome:
        if isinstance(error, Stopped):
            return Outcome(name, error=error)
        if isinstance(error, IndexerBusy):
            return Outcome(name, error=error, again_s=BUSY_S)
        what = _what_failed(error)
        if isinstance(error, NotewardenError):
            wait = self._faults.failed(what, str(error))
            _log.error("work failed", job=name, what=what, reason=str(error), again_s=round(wait, 1))
        else:
            wait = self._faults.failed(what, f"Unexpected fault ({type(error).__name__}); see the log.")
            _log.error("unexpected fault", job=name, again_s=round(wait, 1), exc_info=error)
        return Outcome(name, error=error, again_s=wait)

    def _count(self, report: SyncReport) -> None:
        made = {"embedded": report.chunks_embedded, "reused": report.chunks_reused}
        for key, value in {**made, **_counts(report)}.items():
            self.totals[key] = self.totals.get(key, 0) + value

    def _begin(self, name: str) -> None:
        now = self.clock.monotonic()
        self.activity = Activity(name, now, now)

    def _tell(self, progress: Progress) -> None:
        self.activity.progress = {**vars(progress), "elapsed_s": time.monotonic() - self.activity.began}
        self.activity.heard = self.clock.monotonic()

    def _stopped(self) -> bool:
        self.activity.heard = self.clock.monotonic()
        return self._flags.stopping()

    def _stopped_or_asked(self) -> bool:
        return self._stopped() or self._flags.yielding()


def _share(name: str) -> str:
    return f"share {name}"


def _what_failed(error: Exception) -> str:
    kinds = {2: "configuration", 5: "directory", 7: DATABASE, 8: PROVIDER}
    return kinds.get(getattr(error, "exit_code", 1), "work")


def _counts(report: SyncReport) -> dict[str, int]:
    names = ("hashed", "added", "changed", "moved", "deleted", "acl_changed")
    return {name: sum(getattr(share, name) for share in report.shares) for name in names}
