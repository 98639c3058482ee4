"""The late check: before note text leaves, its permissions are read again from the share itself.

Whoever can read the live lists (the indexer's side) does so: over its private socket where one is configured,
else in this process, through the entry point group ``notewarden.late_check``, where the index is embedded.
Without either the check is unavailable, and `[answerer] late_check` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Literal, Protocol, TypeVar

from acl.directory import Directory
from acl.evaluate import readable
from acl.live import NoteNow
from acl.token import Token
from answerer.latesocket import over_socket
from db.latecheck import Indexed
from db.search import Reading
from notewarden.errors import IndexTooOld, ShareUnavailable
from notewarden.settings import Settings

GROUP = "notewarden.late_check"

Freshness = Literal["current", "changed"]
Mode = Literal["prefer", "require", "off"]


Look = Callable[[Sequence[int]], Mapping[int, NoteNow]]
"""Note ids in, their state now out. Raises ShareUnavailable only if nobody who could look can be reached;
trouble of one note or one share is that note's state."""

Watch = Callable[[Sequence[Indexed]], Mapping[int, NoteNow]]
"""The same for notes as they are indexed; whoever has an index of its own goes by their ids alone."""


class Sight:
    """A watch bound to one reading: it is asked about what that reading may see, and nothing else.

    `differing` are the notes found other than they are indexed: they are to be queued for a sync.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.reading: Reading | None = None
        self.differing: set[int] = set()

    def __call__(self, note_ids: Sequence[int]) -> Mapping[int, NoteNow]:
        """Return the state of these notes now. Raises ShareUnavailable, DirectoryUnreachable."""
        if self.reading is None:
            raise IndexTooOld("Permissions can be checked only while the index is read; nothing is shown.")
        found = self._watch(self.reading.indexed(note_ids))
        keys = self.reading.policy_keys(note_ids)
        self.differing |= {one for one in note_ids if _differs(found.get(one), keys.get(one, frozenset()))}
        return found


def _differs(now: NoteNow | None, keys: frozenset[bytes]) -> bool:
    """Whether a sync would change something: another text, no note, or a list the index does not have.

    A list that is only in the index, such as a kept narrower rule, makes the index the narrower one.
    """
    if now is None or now.state in ("gone", "error", "changed"):
        return True
    return now.state == "current" and not {one.key for one in now.lists} <= keys


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
        why = "no late check is set up here" if self._look is None else "the share could not be reached"
        return f"Permissions are those of the last sync: {why} to check them once more."

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
        if now is not None and now.state == "unreachable":
            return self._unreachable()
        if now is None or now.state not in ("current", "changed"):
            return None
        if not readable(now.lists, self._token, now.unresolvable):
            return None
        return "changed" if now.state == "changed" else "current"

    def _unreachable(self) -> Freshness:
        """Go by the index, which let the note through, unless the check is required."""
        if self._mode == "require":
            raise ShareUnavailable(
                "A share that holds such notes cannot be reached to check their permissions once more, and "
                "[answerer] late_check requires it; nothing is shown."
            )
        self.checked = False
        return "current"


def find_watch(settings: Settings, directory: Directory) -> Watch | None:
    """Return the late check that is configured: the indexer's socket, else in process; None for none."""
    if settings.answerer.late_check == "off":
        return None
    if settings.answerer.late_check_socket is not None:
        return over_socket(settings.answerer.late_check_socket)
    found = list(entry_points(group=GROUP))
    if not found or settings.database.url != "embedded":
        return None  # another process holds what is needed to read the share
    make: Callable[[Settings, Directory], Watch] = found[0].load()
    return make(settings, directory)
