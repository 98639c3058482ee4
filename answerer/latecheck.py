"""The late check: before note text leaves, its permissions are read again from the share itself.

Whoever can read the live lists (the indexer's side) offers a function `look` under the entry point group
``notewarden.late_check``. Without one the check is unavailable, and `[answerer] late_check` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Literal, Protocol, TypeVar

from acl.evaluate import readable
from acl.model import AccessList
from acl.sid import Sid
from acl.token import Token
from notewarden.errors import IndexTooOld, ShareUnavailable
from notewarden.settings import Settings

GROUP = "notewarden.late_check"

Freshness = Literal["current", "changed"]
Mode = Literal["prefer", "require", "off"]


@dataclass(frozen=True)
class NoteNow:
    """One note as the share shows it at this moment: every layer's compiled list, and what its text does.

    `state` "gone" and "error" drop the note; `unresolvable` are denied SIDs that match everybody.
    """

    state: Literal["current", "changed", "gone", "error"]
    lists: tuple[AccessList, ...] = ()
    unresolvable: frozenset[Sid] = frozenset()


Look = Callable[[Sequence[int]], Mapping[int, NoteNow]]
"""Note ids in, their state now out. Raises ShareUnavailable only if no connection to the share can be made,
or its root is missing, emptied or another; trouble of one note is that note's state."""


class OfNote(Protocol):
    """Something that belongs to a note."""

    @property
    def note_id(self) -> int:
        """The note it belongs to."""


_Some = TypeVar("_Some", bound=OfNote)


class Gate:
    """The late check of one question. Every note passes it before its text leaves; verdicts are kept."""

    def __init__(self, mode: Mode, look: Look | None, token: Token) -> None:
        self._mode = mode
        self._look = None if mode == "off" else look
        self._token = token
        self._verdicts: dict[int, Freshness | None] = {}
        self.checked = mode != "off" and look is not None

    def passed(self, parts: Sequence[_Some]) -> list[_Some]:
        """Return those parts whose notes the asker may read at this moment, in their order.

        Raises IndexTooOld or ShareUnavailable where the check is required and cannot be made.
        """
        self._check(sorted({part.note_id for part in parts} - self._verdicts.keys()))
        return [part for part in parts if self._verdicts[part.note_id] is not None]

    def lets(self, note_id: int) -> bool:
        """Whether the asker may read this one note at this moment. Raises as `passed`."""
        self._check([] if note_id in self._verdicts else [note_id])
        return self._verdicts[note_id] is not None

    def freshness(self, note_id: int) -> Freshness:
        """Whether the note still has the text that is indexed; "current" where nothing says otherwise."""
        return self._verdicts.get(note_id) or "current"

    @property
    def notice(self) -> str | None:
        """What the asker must be told when text left unchecked although a check was preferred."""
        if self._mode != "prefer" or self.checked or not self._verdicts:
            return None
        return "Permissions are those of the last sync; they could not be checked again on the share itself."

    def _check(self, note_ids: Sequence[int]) -> None:
        if not note_ids:
            return
        now = self._ask(note_ids)
        for note_id in note_ids:
            self._verdicts[note_id] = "current" if now is None else self._verdict(now.get(note_id))

    def _ask(self, note_ids: Sequence[int]) -> Mapping[int, NoteNow] | None:
        """Return what the share shows, None for "go by the index"."""
        if self._mode == "require" and self._look is None:
            raise IndexTooOld(
                "The permissions cannot be checked on the share now, and [answerer] late_check requires it; "
                "nothing is shown."
            )
        if self._look is None:
            return None
        try:
            return self._look(note_ids)
        except ShareUnavailable:
            if self._mode == "require":
                raise
            self.checked = False
            return None

    def _verdict(self, now: NoteNow | None) -> Freshness | None:
        if now is None or now.state not in ("current", "changed"):
            return None
        if not readable(now.lists, self._token, now.unresolvable):
            return None
        return "changed" if now.state == "changed" else "current"


def find_look(settings: Settings) -> Look | None:
    """Return the installed late check, made for this configuration; None where there is none."""
    found = list(entry_points(group=GROUP))
    if not found or settings.answerer.late_check == "off":
        return None
    make: Callable[[Settings], Look] = found[0].load()
    return make(settings)
