"""A daemon in the test's own process under a clock that stands until it is moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import apscheduler.schedulers.base as scheduler_base
import pytest
from apscheduler.executors.base import BaseExecutor
from apscheduler.executors.debug import DebugExecutor
from apscheduler.executors.pool import ThreadPoolExecutor
from share_world import ShareWorld

from indexer.daemon import Daemon, Means
from indexer.faults import Clock
from indexer.setup import Equipment
from notewarden.settings import Settings, load_settings

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class FakeClock:
    """Both clocks of the daemon; APScheduler reads the same one."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.stepped = timedelta()

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds) + self.stepped

    def advance(self, seconds: float) -> None:
        self.seconds += seconds

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let APScheduler read this clock: its loop looks at the time in one place."""
        clock = self

        class At(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
                return clock.now().astimezone(tz)

        monkeypatch.setattr(scheduler_base, "datetime", At)


class DaemonWorld:
    """A share and the daemon that keeps its index; `polls` are the times at which polls ended."""

    def __init__(self, world: ShareWorld, clock: FakeClock) -> None:
        self.world = world
        self.clock = clock
        self.polls: list[float] = []
        self.before_poll: Callable[[], None] = lambda: None
        self.equips = 0

    def equip(self, settings: Settings) -> Equipment:
        self.equips += 1
        return Equipment(self.world.directory, self.world.embedder)

    def schedule(self, **keys: str) -> None:
        """Write the configuration with this [schedule]."""
        tables: dict[str, Any] = {
            "share": [{"name": "notes", "path": self.world.root, "acl": {"source": "posix"}}],
            "directory": {"source": "file", "file": self.world.people},
            "schedule": {"poll": "60s", "verify": "off", **keys},
        }
        self.world.settings = self.world._make(**tables)

    @contextmanager
    def daemon(self, *, threads: bool = False) -> Iterator[Daemon]:
        """A started daemon, its worker inline unless `threads`."""
        executor: BaseExecutor = ThreadPoolExecutor(1) if threads else DebugExecutor()
        settings = self.world.settings
        means = Means(
            lambda: load_settings(settings.file), self.equip, Clock(self.clock.monotonic, self.clock.now)
        )
        daemon = Daemon(settings, self.world.database, means, executor)
        daemon.faults.chance = lambda: 0.0  # no jitter where a test counts seconds
        self._count_polls(daemon)
        daemon.start()
        try:
            yield daemon
        finally:
            daemon.stopping.set()
            daemon._end()

    def _count_polls(self, daemon: Daemon) -> None:
        do = daemon._do

        def counted(name: str) -> None:
            self.before_poll()
            do(name)
            self.polls.append(self.clock.seconds)

        daemon.timetable._do = counted

    def live(self, daemon: Daemon, seconds: float, step: float = 1.0) -> None:
        """Let `seconds` pass, a step at a time."""
        for _ in range(round(seconds / step)):
            daemon.step()
            self.clock.advance(step)
        daemon.step()
