"""`notewarden status`: how the index stands, and everything about it that needs a look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from db import ledger, requests, runs, shares
from db import status as facts
from db.pool import Connection
from indexer.output import counted, moment, shown
from indexer.searchstate import read_search
from notewarden import patient
from notewarden.display import show_path
from notewarden.settings import Settings

_AS_LOADED = "as loaded"
_NAMED = 3  # notes named in one reason


@dataclass(frozen=True)
class ShareState:
    """One share. Times are the database's; `coverage` is the indexed part of what should be, 0 to 1."""

    share: str
    available: bool
    reason: str
    notes: int
    chunks: int
    coverage: float
    oldest_pending_s: float | None
    last_poll: datetime | None
    last_acl_sweep: datetime | None
    last_embedded: datetime | None
    max_age: timedelta
    held: int
    under_way: str = ""  # how many notes are indexed, where that is not all of them

    def as_json(self) -> dict[str, Any]:
        """Return the share as the contract writes it."""
        return {
            "share": self.share,
            "notes": self.notes,
            "chunks": self.chunks,
            "coverage": self.coverage,
            "oldest_pending_s": self.oldest_pending_s,
            "last_poll": moment(self.last_poll),
            "last_acl_sweep": moment(self.last_acl_sweep),
            "last_embedded": moment(self.last_embedded),
            "held": self.held,
        }


@dataclass(frozen=True)
class Status:
    """The whole picture at `now`, the database's time."""

    now: datetime
    shares: list[ShareState]
    notes: list[ledger.Standing]
    narrowed: list[tuple[str, bytes]]
    cost: facts.Usage
    daemon_ever: bool
    poll: timedelta
    daemon: str | None = None
    search: dict[str, Any] = field(default_factory=dict)

    @property
    def reasons(self) -> list[str]:
        """Everything that makes the index unhealthy, one sentence each."""
        return [*self._of_shares(), *self._of_notes()]

    @property
    def healthy(self) -> bool:
        """Whether nothing needs a look."""
        return not self.reasons

    def as_json(self) -> dict[str, Any]:
        """Return the status as the contract writes it, and what is known of the index where one stands."""
        by_index = {"search": self.search} if self.search.get("leg") == "index" else {}
        return by_index | {
            "healthy": self.healthy,
            "reasons": self.reasons,
            "shares": [share.as_json() for share in self.shares],
            "notes": [_note(one) for one in self.notes],
            "cost": {
                "currency": "USD",
                "month": self.cost.cost,
                "input_tokens": self.cost.input_tokens,
                "output_tokens": self.cost.output_tokens,
            },
        }

    def _of_shares(self) -> Iterator[str]:
        if not self.shares:
            yield "the configuration names no share"
        for share in self.shares:
            yield from self._of_share(share)

    def _of_share(self, share: ShareState) -> Iterator[str]:
        name, swept, polled = share.share, share.last_acl_sweep, share.last_poll
        if not share.available:
            yield f"{name}: the share is unavailable: {share.reason}"
        if polled is None and swept is None:
            yield f"{name}: never synced yet; run `notewarden sync`"
            return
        if self.daemon_ever and (polled is None or self.now - polled > 3 * self.poll):
            why = "does the daemon run?" if self.daemon is None else "the daemon is still at it"
            what = "is older than three times [schedule] poll" if polled else "has not come to its end yet"
            which = "last" if polled else "first"
            yield f"{name}: the {which} poll {what}; {why}"
        if swept is None or self.now - swept > share.max_age / 2:
            yield (
                f"{name}: permissions were last read completely {_ago(self.now, swept)}, and from "
                f"{_length(share.max_age)} on nothing is answered; run `notewarden sync`"
            )
        if share.held:
            yield (
                f"{name}: {counted(share.held, 'note', 'is')} gone but held; if really deleted, run "
                "`notewarden confirm-deletes`"
            )

    def _of_notes(self) -> Iterator[str]:
        for state in ("parked", "unreadable"):
            found = [(one.share, one.path) for one in self.notes if one.state == state]
            if found:
                yield f"{counted(len(found), 'note', 'is')} {state}: {_named(found)}"
        if self.narrowed:
            kept = counted(len(self.narrowed), "note", "keeps")
            yield (
                f"{kept} a narrower rule than the new folder has, until the rule changes or "
                f"`notewarden reindex` is told so: {_named(self.narrowed)}"
            )


def read_status(conn: Connection, settings: Settings) -> Status:
    """Return how the index stands for the shares of the configuration. `conn` is the owner's."""
    names = [share.name for share in settings.shares]
    rows = {row["name"]: row for row in shares.overview(conn, names)}
    covered = facts.coverage(conn, names)
    states = []
    for share in settings.shares:
        row = rows.get(share.name)
        state = _share_state(share.name, row, covered.get(share.name), share.acl.max_age)
        states.append(_as_it_answers(state, share.path))
    return Status(
        now=shares.clock(conn),
        shares=sorted(states, key=lambda state: state.share),
        notes=_standing(conn, names),
        narrowed=facts.narrowed(conn, names),
        cost=facts.usage(conn),
        daemon_ever=runs.daemon_ever(conn),
        poll=settings.schedule.poll,
        daemon=_daemon(conn),
        search=read_search(conn),
    )


def _as_it_answers(state: ShareState, root: Path) -> ShareState:
    """A share that was silent to this process is unavailable, whatever its last poll found."""
    if not state.available or not patient.is_silent(root):
        return state
    reason = f"The file system of the share's folder {root} does not answer; check the mount and its server."
    return replace(state, available=False, reason=reason)


def _daemon(conn: Connection) -> str | None:
    """What the daemon does, in its own words a moment ago; None where none runs."""
    holder = requests.daemon(conn)
    if holder is None:
        return None
    told = runs.current_daemon(conn) or {}
    since = moment(holder.since)
    lines = [f"{holder.name}, since {since}: {_doing(told)}"]
    for what, fault in (told.get("faults") or {}).items():
        times = "" if fault["quota"] else f" ({fault['failures']} times since {fault['since']})"
        lines.append(f"{what}: {fault['reason']}{times}; tries again in {_seconds(fault['left_s'])}")
    if told.get("configuration", _AS_LOADED) != _AS_LOADED:
        lines.append(f"configuration: {told['configuration']}")
    return "\n".join(lines)


def _doing(told: dict[str, Any]) -> str:
    progress = told.get("progress")
    if progress:
        return f"{progress['share']}: {progress['done']} of {progress['total']} notes in work"
    if told.get("doing"):
        return f"at work ({told['doing']})"
    return "waiting for the next poll"


def _seconds(seconds: float) -> str:
    return f"{round(seconds)} s" if seconds < 90 else f"{round(seconds / 60)} min"


def _standing(conn: Connection, names: Sequence[str]) -> list[ledger.Standing]:
    """The ledger, and beside it the notes whose access lists cannot be understood."""
    told = ledger.standing(conn, names)
    there = {(one.share, one.path) for one in told}
    for closed in facts.quarantined(conn, names):
        if (closed.share, closed.path) not in there:
            told.append(
                ledger.Standing(closed.share, closed.path, "unreadable", closed.reason, 1, closed.since)
            )
    return sorted(told, key=lambda one: (one.share, one.path))


def _share_state(
    name: str, row: dict[str, Any] | None, covered: facts.Coverage | None, max_age: timedelta
) -> ShareState:
    known = row or {}
    pending = known.get("oldest_pending_s")
    return ShareState(
        share=name,
        available=bool(known.get("available", True)),
        reason=str(known.get("reason", "")),
        notes=int(known.get("notes", 0)),
        chunks=int(known.get("chunks", 0)),
        coverage=_coverage(covered, row),
        oldest_pending_s=None if pending is None else round(float(pending), 1),
        last_poll=known.get("polled_at"),
        last_acl_sweep=known.get("swept_at"),
        last_embedded=known.get("embedded_at"),
        max_age=max_age,
        held=int(known.get("held", 0)),
        under_way=_under_way(covered),
    )


def _under_way(covered: facts.Coverage | None) -> str:
    if covered is None or covered.indexed >= covered.expected:
        return ""
    again = " again, another way; until all are, the old rows serve" if covered.anew else ""
    return f"{covered.indexed:,} of {covered.expected:,} notes are indexed{again}"


def _coverage(covered: facts.Coverage | None, row: dict[str, Any] | None) -> float:
    if covered is not None and covered.expected > 0:
        return int(min(covered.indexed / covered.expected, 1) * 10_000) / 10_000  # 1 means all
    return 1.0 if row is not None and row["polled_at"] is not None else 0.0


def _note(one: ledger.Standing) -> dict[str, Any]:
    return {
        "share": one.share,
        "path": show_path(one.path),
        "state": one.state,
        "reason": one.reason,
        "attempts": one.attempts,
        "since": moment(one.since),
    }


def _named(places: Sequence[tuple[str, bytes]]) -> str:
    first = ", ".join(f"{share}:{shown(path)}" for share, path in places[:_NAMED])
    rest = len(places) - _NAMED
    return f"{first} and {rest} more" if rest > 0 else first


def _ago(now: datetime, then: datetime | None) -> str:
    return "never" if then is None else f"{_length(now - then)} ago"


def _length(time: timedelta) -> str:
    minutes = max(int(time.total_seconds() // 60), 0)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
