"""Faults that pass by themselves: what failed, since when, and how long to leave it alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime


@dataclass(frozen=True)
class Clock:
    """The two clocks of the daemon; tests set them."""

    monotonic: Callable[[], float]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass
class Fault:
    """Something that failed and is left alone until `until` (monotonic seconds)."""

    reason: str
    since: datetime
    until: float
    failures: int = 1
    quota: bool = False


@dataclass
class Faults:
    """Standing faults by what they hit: "database", "provider", "share NAME".

    The waits double from `first_s` to `longest_s`, each cut at random by up to half, so that many failures
    at once do not come back at once. A quota is no fault of ours: it is waited out as long as it asks.
    """

    clock: Clock
    first_s: float = 5.0
    longest_s: float = 300.0
    chance: Callable[[], float] = random.random
    standing: dict[str, Fault] = field(default_factory=dict)

    def failed(self, what: str, reason: str) -> float:
        """Record one more failure and return the seconds to wait."""
        before = self.standing.get(what)
        failures = before.failures + 1 if before and not before.quota else 1
        longest = min(self.first_s * 2.0 ** min(failures - 1, 20), self.longest_s)
        wait: float = longest * (1.0 - self.chance() / 2)
        self._stand(what, reason, wait, failures=failures, quota=False)
        return wait

    def wait(self, what: str, reason: str, seconds: float) -> None:
        """Record that a quota is used up for `seconds` more."""
        self._stand(what, reason, seconds, failures=1, quota=True)

    def passed(self, what: str) -> None:
        """Record that it works again."""
        self.standing.pop(what, None)

    def holds(self, what: str) -> bool:
        """Whether it is to be left alone now."""
        return self.left_s(what) > 0

    def left_s(self, what: str) -> float:
        """Return the seconds until it may be tried again, 0 for now."""
        fault = self.standing.get(what)
        return 0.0 if fault is None else max(0.0, fault.until - self.clock.monotonic())

    def as_json(self) -> dict[str, dict[str, object]]:
        """Return the standing faults for `status`."""
        return {
            what: {
                "reason": fault.reason,
                "since": fault.since.isoformat(timespec="seconds"),
                "failures": fault.failures,
                "quota": fault.quota,
                "left_s": round(self.left_s(what), 1),
            }
            for what, fault in self.standing.items()
        }

    def _stand(self, what: str, reason: str, wait: float, *, failures: int, quota: bool) -> None:
        before = self.standing.get(what)
        since = before.since if before else self.clock.now()
        self.standing[what] = Fault(reason, since, self.clock.monotonic() + wait, failures, quota)
