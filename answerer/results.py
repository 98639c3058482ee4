"""What leaves: frozen results whose JSON is exactly the documented one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_from_bytes

from answerer.latecheck import Freshness


class Jsonable:
    """A result that becomes a JSON object with its fields' names."""

    def to_json(self) -> dict[str, Any]:
        """Return plain dicts, lists and values."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True)
class Citation:
    """Where one cited sentence stands."""

    n: int
    share: str
    path: str
    heading: list[str]
    first_line: int
    last_line: int
    quote: str
    link: str | None
    modified: str
    freshness: Freshness


@dataclass(frozen=True)
class Answer(Jsonable):
    """An answer, or `found` False."""

    question: str
    found: bool
    answer: str
    citations: list[Citation]
    model: str
    usage: dict[str, int] | None
    as_of: str | None


@dataclass(frozen=True)
class Result:
    """One passage of a search."""

    share: str
    path: str
    heading: list[str]
    first_line: int
    last_line: int
    text: str


@dataclass(frozen=True)
class ExplainedResult(Result):
    """A passage with its rank in each leg, None where the leg did not find it."""

    vector_rank: int | None
    keyword_rank: int | None


@dataclass(frozen=True)
class Results(Jsonable):
    """Passages, best first."""

    results: list[Result]
    as_of: str | None


@dataclass(frozen=True)
class Shown(Jsonable):
    """A note, or some of its lines."""

    share: str
    path: str
    modified: str
    text: str


@dataclass(frozen=True)
class State(Jsonable):
    """Who asks and what they have. `notes` None: this account has no question of its own."""

    user: str
    sid: str
    groups: list[str]
    notes: int | None
    as_of: str | None


@dataclass(frozen=True)
class Forgotten(Jsonable):
    """How many conversations were deleted."""

    conversations: int


def iso(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC, to the second."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def iso_or_none(moment: datetime | None) -> str | None:
    """Return a time as `iso` does, None for none."""
    return None if moment is None else iso(moment)


def link_to(template: str | None, path: bytes) -> str | None:
    """Return the share's link template with the raw path percent-encoded in it, None without a template."""
    return None if template is None else template.replace("{path}", quote_from_bytes(path, safe="/"))
