"""`notewarden run`: polls, checks and tidies by the timetable, and serves the admin command."""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED
from apscheduler.executors.base import BaseExecutor

from db.pool import Database
from db.requests import Request
from indexer.faults import Clock, Faults
from indexer.gate import Stopped
from indexer.post import Post
from indexer.setup import Equipment
from indexer.timetable import POLL, RETRY, Timetable
from indexer.work import DATABASE, Flags, Outcome, Work
from notewarden import systemd
from notewarden.errors import ConfigError, DatabaseUnavailable, NotewardenError
from notewarden.log import get_logger
from notewarden.settings import Settings

_log = get_logger(__name__)

REQUEST = "request "

_LONGEST_TICK_S = 2.0
_BUSY_TICK_S = 0.5
_STOP_PATIENCE_S = 3.5  # for the worker, of the 5 s that a stop may take
_STALLED_S = 1800.0  # without a sign of life from the worker the manager is to start us anew
_CLOCK_STEP_S = 5.0
_SETTLE_S = 2.0  # after a change was told: whoever saves one note often saves another


@dataclass(frozen=True)
class Means:
    """What the daemon is given: how to read its configuration, and what that needs."""

    load: Callable[[], Settings]
    equip: Callable[[Settings], Equipment]
    clock: Clock = field(default_factory=lambda: Clock(time.monotonic))


class Daemon:
    """The loop of the main thread. The worker is another thread; they share flags and the activity."""

    def __init__(
        self, settings: Settings, database: Database, means: Means, executor: BaseExecutor | None = None
    ) -> None:
        self.settings = settings
        self.stopping = threading.Event()
        self.reload_wanted = threading.Event()
        self._yielding = threading.Event()
        self._change_told = threading.Event()
        self._means = means
        self._database = database
        self._post = Post(database)
        poll_s = settings.schedule.poll.total_seconds()
        self.faults = Faults(means.clock, first_s=min(5.0, poll_s), longest_s=max(60.0, min(poll_s, 600.0)))
        self._flags = Flags(self.stopping.is_set, self._yielding.is_set)
        self.work = Work(settings, database, means.equip(settings), self.faults, self._flags)
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.timetable = Timetable(self._do, means.clock, wake=self.wake, executor=executor)
        self._requests: dict[str, Request] = {}
        self._results: deque[tuple[Request, dict[str, Any], int | None]] = deque()
        self._configuration = "as loaded"
        self._told: tuple[float, dict[str, Any]] = (0.0, {})
        self._drift = self._wall_drift()
        self._idle = threading.Event()
        self._idle.set()
        self._current: Request | None = None
        self._outcomes: deque[Outcome] = deque()
        self._settled = threading.Event()
        self.timetable.add_listener(self._settle, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)
        self.ended_in_time = True

    @property
    def wake_fd(self) -> int:
        """The file descriptor to write a byte to from a signal."""
        return self._wake_w

    def change_told(self) -> None:
        """A share's server told of a change: poll soon, but not for each of many. Any thread may call it."""
        self._change_told.set()
        self.wake()

    def wake(self) -> None:
        """Let the loop look again at once."""
        with suppress(BlockingIOError):
            os.write(self._wake_w, b".")

    def start(self) -> None:
        """Become the daemon of the database. Raises SecondDaemon, DatabaseUnavailable."""
        self._post.mend()
        self.timetable.plan(self.settings.schedule)
        self.timetable.start()

    def run(self) -> None:
        """Work until `stopping` is set, then end at a note boundary within 5 s."""
        _log.info("daemon started", poll=str(self.settings.schedule.poll), shares=len(self.settings.shares))
        systemd.notify("READY=1", "STATUS=Started")
        try:
            while not self.stopping.is_set():
                self.wait(self.step())
        finally:
            self._end()

    def step(self) -> float:
        """Do what is due now; return how many seconds may pass until the next step."""
        if self.reload_wanted.is_set():
            self.reload_wanted.clear()
            self.reload()
        self._mend()
        if self._wall_drift() - self._drift < -_CLOCK_STEP_S:
            self.timetable.realign()
        self._drift = self._wall_drift()
        self._post.heard()
        self._take_requests()
        self._take_outcomes()
        if self._change_told.is_set():
            self._change_told.clear()
            self.timetable.within(POLL, _SETTLE_S)
        due = self.timetable.tick()
        self._settle_results()
        self._tell()
        return min(_LONGEST_TICK_S, due if due is not None else _LONGEST_TICK_S, self._watchdog_tick())

    def wait(self, seconds: float) -> None:
        """Sleep until something is rung in, a signal came, or `seconds` have passed."""
        doors = [self._wake_r] + [fd for fd in (self._post.fileno(),) if fd is not None]
        busy = not self._idle.is_set()
        select.select(doors, [], [], max(0.0, min(seconds, _BUSY_TICK_S) if busy else seconds))
        with suppress(BlockingIOError):
            while os.read(self._wake_r, 4096):
                pass

    def reload(self) -> None:
        """Take up the configuration as it stands now; one that is not sound is refused, and the old stays."""
        systemd.reloading()
        try:
            settings = self._means.load()
            _require_same_home(self.settings, settings)
            work = Work(settings, self._database, self._means.equip(settings), self.faults, self._flags)
        except NotewardenError as error:
            self._configuration = f"the new one was refused: {error}"
            _log.error("configuration refused; the old one stays", reason=str(error))
        else:
            work.totals, work.activity = self.work.totals, self.work.activity
            self.settings, self.work = settings, work
            self._configuration = "as loaded"
            self.faults.standing.pop("configuration", None)
            self.timetable.plan(settings.schedule)
            _log.info("configuration read again")
        systemd.notify("READY=1", "STATUS=" + self._words())

    def state(self) -> dict[str, Any]:
        """Return what the daemon does, for `status` and the metrics."""
        activity = self.work.activity
        due = self.timetable.due_in(POLL)
        return {
            "pid": os.getpid(),
            "doing": activity.name,
            "progress": activity.progress,
            "faults": self.faults.as_json(),
            "next_poll_s": None if due is None else round(max(0.0, due), 1),
            "configuration": self._configuration,
        }

    def _do(self, name: str) -> None:
        """In the worker: one job, or one request."""
        self._idle.clear()
        try:
            request = self._requests.pop(name, None)
            if self.stopping.is_set():
                if request is not None:
                    self._results.append((request, {}, None))
                return
            if request is None:
                self._outcomes.append(self.work.do(name))
                return
            self._yielding.clear()
            self._current = request
            outcome, result, code = self.work.serve(request)
            self._results.append((request, result, code))
            self._outcomes.append(outcome)
        finally:
            self._current = None
            self._idle.set()
            self.wake()

    def _settle(self, _: object) -> None:
        """In the worker, once the timetable knows that a job has ended: only now it may come due again."""
        self._settled.set()
        self.wake()

    def _take_outcomes(self) -> None:
        if self._settled.is_set():
            self._settled.clear()
            while self._outcomes:
                self._after(self._outcomes.popleft())

    def _after(self, outcome: Outcome) -> None:
        if outcome.retry_s is not None:
            self.timetable.once(RETRY, outcome.retry_s)
        if outcome.again_s is not None:
            self.timetable.within(POLL, outcome.again_s)
        if outcome.error is not None and not isinstance(outcome.error, Stopped) and outcome.again_s:
            self.timetable.not_before(POLL, outcome.again_s)

    def _take_requests(self) -> None:
        while (request := self._post.take()) is not None:
            if request.kind == "note":  # a reader found it changed: the next poll is not waited for
                self._post.finish(request, {}, 0)
                self.timetable.within(POLL, 0.0)
                continue
            name = f"{REQUEST}{request.request_id}"
            self._requests[name] = request
            self._yielding.set()
            _log.info("request taken up", request=request.request_id, kind=request.kind)
            self.timetable.at_once(name)

    def _settle_results(self) -> None:
        while self._results:
            request, result, code = self._results[0]
            done = self._post.give_back(request) if code is None else self._post.finish(request, result, code)
            if not done:
                return
            self._results.popleft()

    def _mend(self) -> None:
        if self._post.stands or self.faults.holds(DATABASE):
            return
        try:
            self._post.mend()
        except DatabaseUnavailable as error:
            self.faults.failed(DATABASE, str(error))
        else:
            self.faults.passed(DATABASE)
            self.timetable.within(POLL, 0.0)

    def _tell(self) -> None:
        self._ping()
        now, (before, old) = self._means.clock.monotonic(), self._told
        if self._current is not None:
            self._post.progress(self._current, self.work.activity.progress)
        state = self.state()
        compared = {**state, "next_poll_s": None, "faults": sorted(state["faults"])}
        if (compared != old and now - before >= _BUSY_TICK_S) or now - before > 30.0:
            self._post.tell(state)
            self._told = (now, compared)
            systemd.notify("STATUS=" + self._words())

    def _ping(self) -> None:
        activity = self.work.activity
        stalled = bool(activity.name) and self._means.clock.monotonic() - activity.heard > _STALLED_S
        if systemd.watchdog_s() is not None and not stalled:
            systemd.notify("WATCHDOG=1")

    def _watchdog_tick(self) -> float:
        asked = systemd.watchdog_s()
        return _LONGEST_TICK_S if asked is None else asked / 3

    def _words(self) -> str:
        state = self.state()
        parts = [f"{name}: {fault['reason']}" for name, fault in state["faults"].items()]
        if self._configuration != "as loaded":
            parts.append("configuration: " + self._configuration)
        progress = state["progress"]
        if progress:
            parts.insert(0, f"{progress['share']}: {progress['done']} of {progress['total']} notes")
        elif state["doing"]:
            parts.insert(0, f"At work: {state['doing']}")
        else:
            parts.insert(0, f"Waiting; next poll in {round(state['next_poll_s'] or 0)} s")
        return "; ".join(parts)

    def _wall_drift(self) -> float:
        return self._means.clock.now().timestamp() - self._means.clock.monotonic()

    def _end(self) -> None:
        systemd.notify("STOPPING=1", "STATUS=Ending at the next note")
        self.timetable.shutdown(wait=False)
        in_time = self._idle.wait(_STOP_PATIENCE_S)
        for request in [*self._requests.values(), *([self._current] if self._current else [])]:
            self._post.give_back(request)
        self._settle_results()
        self._post.end(self.state())
        self._post.close()
        _log.info("daemon ended", in_time=in_time)
        self.ended_in_time = in_time


def _require_same_home(old: Settings, new: Settings) -> None:
    if old.database != new.database or old.state_dir != new.state_dir:
        raise ConfigError("[database] and state_dir can only change with a restart of the daemon.")
