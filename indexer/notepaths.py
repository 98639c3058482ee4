"""From an argument of the admin command to a note or a folder of the index."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from notewarden.display import path_candidates, printable
from notewarden.errors import NotInNotes, UsageError
from notewarden.patient import real_path
from notewarden.settings_sections import ShareSettings


@dataclass(frozen=True, order=True)
class Place:
    """A note: its share's name and its raw path."""

    share: str
    path: bytes


class NotePaths:
    """The notes that an argument can name: exactly first, else as the only one that is NFC-equal."""

    def __init__(
        self, places: Iterable[Place], shares: Sequence[ShareSettings], share: str | None = None
    ) -> None:
        """`share` keeps to one share; raises UsageError if the configuration has none of that name."""
        if share is not None and share not in {one.name for one in shares}:
            raise UsageError(f"The configuration has no share {share!r}.")
        self._shares = [one for one in shares if share in (None, one.name)]
        names = {one.name for one in self._shares}
        self._places = sorted({place for place in places if place.share in names})

    def all(self) -> set[Place]:
        """Return every note there is to name."""
        return set(self._places)

    def note(self, argument: str) -> Place:
        """Return the one note of this name. Raises NotInNotes, or UsageError if two shares have it."""
        return _only(self._notes(argument), argument)

    def below(self, argument: str) -> list[Place]:
        """Return the note of this name, or all in and below the folder of this name; raises as `note`."""
        found = self._notes(argument)
        if found:
            return [_only(found, argument)]
        for form in (bytes, _nfc):
            for meaning in self._meanings(argument):
                folder = b"" if meaning.path in (b".", b"") else form(meaning.path.strip(b"/")) + b"/"
                inside = [one for one in self._of(meaning) if form(one.path).startswith(folder)]
                if folder and len({one.share for one in inside}) > 1:
                    raise _ambiguous(inside, argument)
                if inside:
                    return inside
        raise _missing(argument)

    def _notes(self, argument: str) -> list[Place]:
        meanings = list(self._meanings(argument))
        for meaning in meanings:
            exact = [one for one in self._of(meaning) if one.path == meaning.path]
            if exact:
                return exact
        for meaning in meanings:
            form = _nfc(meaning.path)
            equal = [one for one in self._of(meaning) if _nfc(one.path) == form]
            if equal and len({one.share for one in equal}) == len(equal):
                return equal
        return []

    def _of(self, meaning: Place) -> list[Place]:
        return [one for one in self._places if meaning.share in ("", one.share)]

    def _meanings(self, argument: str) -> Iterator[Place]:
        """Yield what the text can mean; the share "" is any of them."""
        for path in path_candidates(argument):
            yield Place("", path[2:] if path.startswith(b"./") else path)
        for share in self._shares:
            if argument.startswith(share.name + ":"):
                for path in path_candidates(argument.removeprefix(share.name + ":")):
                    yield Place(share.name, path)
            for path in path_candidates(argument):
                yield from _below_root(share, path)


def _below_root(share: ShareSettings, path: bytes) -> Iterator[Place]:
    if not path.startswith(b"/"):
        return
    flat = os.path.normpath(path)
    for root in dict.fromkeys((os.fsencode(share.path), os.fsencode(real_path(share.path)))):
        if flat == root:
            yield Place(share.name, b"")
        elif flat.startswith(root.rstrip(b"/") + b"/"):
            yield Place(share.name, flat[len(root.rstrip(b"/")) + 1 :])


def _only(found: Sequence[Place], argument: str) -> Place:
    if not found:
        raise _missing(argument)
    if len(found) > 1:
        raise _ambiguous(found, argument)
    return found[0]


def _missing(argument: str) -> NotInNotes:
    return NotInNotes(f"There is no note or folder {printable(argument)} in the index.")


def _ambiguous(found: Iterable[Place], argument: str) -> UsageError:
    names = ", ".join(sorted({one.share for one in found}))
    return UsageError(
        f"Several shares have {printable(argument)} ({names}); name one with --share or SHARE:PATH."
    )


def _nfc(path: bytes) -> bytes:
    try:
        return unicodedata.normalize("NFC", path.decode("utf-8")).encode("utf-8")
    except UnicodeDecodeError:
        return path
