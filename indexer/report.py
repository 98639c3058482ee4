"""What a poll did and what stands, in the words of `notewarden sync --json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass
class ShareReport:
    """One share. `held`, `unreadable`, `parked`, `pending`, `skipped` now stand; the rest count this run."""

    share: str
    status: Literal["ok", "unavailable"] = "ok"
    seen: int = 0
    hashed: int = 0
    added: int = 0
    changed: int = 0
    moved: int = 0
    deleted: int = 0
    held: int = 0
    acl_changed: int = 0
    unreadable: int = 0
    parked: int = 0
    pending: int = 0
    skipped: int = 0
    unread: int = field(default=0, repr=False)  # notes of which nothing could be learnt
    reason: str = field(default="", repr=False)

    @property
    def complete(self) -> bool:
        """Whether nothing of this share waits for anything."""
        return not (self.held or self.unreadable or self.parked or self.pending)


@dataclass
class SyncReport:
    """One run over all shares; `seconds` is the poll itself."""

    run: int
    shares: list[ShareReport] = field(default_factory=list)
    chunks_embedded: int = 0
    chunks_reused: int = 0
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """4 if a share is unavailable, 6 if something stands, else 0."""
        if any(share.status == "unavailable" for share in self.shares):
            return 4
        return 0 if all(share.complete for share in self.shares) else 6

    @classmethod
    def from_json(cls, made: Mapping[str, Any]) -> SyncReport:
        """Return the report that `as_json` made."""
        values = dict(made)
        values["shares"] = [ShareReport(**one) for one in values["shares"]]
        return cls(**values)

    def so_far(self, share: ShareReport) -> dict[str, Any]:
        """Return the report of a run that is still at work on `share`."""
        return SyncReport(self.run, [*self.shares, share]).as_json()

    def as_json(self) -> dict[str, Any]:
        """Return the report as the contract writes it."""
        made = asdict(self)
        for share in made["shares"]:
            del share["reason"], share["unread"]
        made["seconds"] = round(self.seconds, 3)
        return made
