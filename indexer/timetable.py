"""When what is done: APScheduler's triggers and bookkeeping, driven by the daemon's own loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Any

from apscheduler.executors.base import BaseExecutor
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.base import BaseScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from indexer.faults import Clock
from notewarden.settings_sections import ScheduleSettings

POLL, PERMISSIONS, VERIFY, HOUSEKEEPING = "poll", "permissions", "verify", "housekeeping"
RETRY = "retry"  # of the shares that could not be polled

_JITTER = 0.1  # of an interval: many hosts started together must not stay together
_MOST_JITTER_S = 30.0
_VERIFY_JITTER_S = 600
_TIDY_AFTER = timedelta(hours=1)
_TIDY_AT = "03:30"

Do = Callable[[str], None]


class Timetable(BaseScheduler):  # type: ignore[misc]
    """The jobs by name. One worker does them one after the other, whatever comes due meanwhile.

    A job that is still at work when it comes due again is left out, and however many times were missed (a
    machine asleep, a clock set forward) it is done once.
    """

    def __init__(
        self,
        do: Do,
        clock: Clock,
        *,
        wake: Callable[[], None] = lambda: None,
        executor: BaseExecutor | None = None,
        zone: tzinfo | None = None,
    ) -> None:
        """`do` is called in the worker with a job's name; `wake` tells the loop that something is due."""
        logging.getLogger("apscheduler").setLevel(logging.CRITICAL)  # what runs and fails is told by us
        super().__init__(**({"timezone": zone} if zone else {}))
        self.add_executor(executor or ThreadPoolExecutor(1), "default")
        self._do, self._clock, self._wake = do, clock, wake

    def plan(self, schedule: ScheduleSettings) -> None:
        """Set or replace all jobs by `[schedule]`. The next poll is due at once."""
        self._set(POLL, self._every(schedule.poll), self._clock.now())
        if isinstance(schedule.acl, timedelta):
            self._set(PERMISSIONS, self._every(schedule.acl), self._clock.now())
        else:
            self._drop(PERMISSIONS)
        if schedule.verify is None:
            self._drop(VERIFY)
            hour, minute = map(int, _TIDY_AT.split(":"))
        else:
            self._set(VERIFY, self._daily(schedule.verify.hour, schedule.verify.minute))
            later = datetime.combine(datetime.min, schedule.verify) + _TIDY_AFTER
            hour, minute = later.hour, later.minute
        self._set(HOUSEKEEPING, self._daily(hour, minute))

    def tick(self) -> float | None:
        """Hand what is due to the worker; return the seconds until something is due again."""
        wait: float | None = self._process_jobs()
        return wait

    def at_once(self, name: str) -> None:
        """Do something once, as soon as the worker is free."""
        self.add_job(
            self._do, args=[name], id=name, replace_existing=True, misfire_grace_time=None,
            next_run_time=self._clock.now(),
        )  # fmt: skip

    def once(self, name: str, seconds: float) -> None:
        """Do something once in `seconds`, instead of what was so planned under this name before."""
        at = self._clock.now() + timedelta(seconds=seconds)
        self.add_job(
            self._do, args=[name], id=name, replace_existing=True, misfire_grace_time=None, next_run_time=at,
            trigger=DateTrigger(at),
        )  # fmt: skip

    def within(self, name: str, seconds: float) -> None:
        """Let a job come due in `seconds` at the latest."""
        self._move(name, seconds, only_sooner=True)

    def not_before(self, name: str, seconds: float) -> None:
        """Let a job come due in `seconds` at the earliest."""
        self._move(name, seconds, only_sooner=False)

    def due_in(self, name: str) -> float | None:
        """Return the seconds until a job is due, None for no such job."""
        job = self.get_job(name)
        if job is None or job.next_run_time is None:
            return None
        return float((job.next_run_time - self._clock.now()).total_seconds())

    def realign(self) -> None:
        """After the wall clock was set back, let nothing wait for the old future."""
        for name in (POLL, PERMISSIONS):
            self.within(name, 0.0)

    def shutdown(self, wait: bool = True) -> None:
        """Take no more jobs; with `wait` until the running one has ended."""
        super().shutdown(wait)

    def wakeup(self) -> None:
        """Called by APScheduler when a job was added or moved."""
        self._wake()

    def _move(self, name: str, seconds: float, *, only_sooner: bool) -> None:
        job, at = self.get_job(name), self._clock.now() + timedelta(seconds=seconds)
        if job is None or job.next_run_time is None or (at < job.next_run_time) != only_sooner:
            return
        job.modify(next_run_time=at)

    def _set(self, name: str, trigger: Any, first: datetime | None = None) -> None:
        given = {} if first is None else {"next_run_time": first}
        self.add_job(
            self._do, trigger, args=[name], id=name, replace_existing=True, max_instances=1, coalesce=True,
            misfire_grace_time=None, **given,
        )  # fmt: skip

    def _drop(self, name: str) -> None:
        if self.get_job(name) is not None:
            self.remove_job(name)

    def _every(self, length: timedelta) -> IntervalTrigger:
        seconds = length.total_seconds()
        jitter = min(seconds * _JITTER, _MOST_JITTER_S)
        start = self._clock.now() + length
        return IntervalTrigger(seconds=seconds, start_date=start, jitter=jitter, timezone=self.timezone)

    def _daily(self, hour: int, minute: int) -> CronTrigger:
        return CronTrigger(hour=hour, minute=minute, jitter=_VERIFY_JITTER_S, timezone=self.timezone)
