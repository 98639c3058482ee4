"""The text of a note that is shown whole or by its lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from db.search import NotePiece
from notewarden.errors import NotInNotes, UsageError

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def parse_lines(text: str) -> tuple[int, int]:
    """Return (first, last) of "A-B" or "A". Raises UsageError for anything else."""
    found = _RANGE.fullmatch(text.strip())
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if first < 1 or last < first:
        raise UsageError(f'--lines must be a range such as "10-20", not "{text}".')
    return first, last


def cut_lines(pieces: Sequence[NotePiece], lines: tuple[int, int] | None) -> str:
    """Return the note's text, or the lines wanted of it.

    Front matter is not text: the first piece may begin below line 1, and what lies above is empty. Raises
    NotInNotes where the note has none of the lines.
    """
    text = "".join(piece.content for piece in pieces)
    if lines is None:
        return text
    last = pieces[-1].last_line if pieces else 0
    cut = [found.group() for found in _LINE.finditer(text) if found.group()]
    first = last - len(cut) + 1
    wanted = cut[max(lines[0] - first, 0) : max(lines[1] - first + 1, 0)]
    if not cut:
        raise NotInNotes("The note has no text.")
    if not wanted:
        where = f"line {last}" if first == last else f"lines {first} to {last}"
        raise NotInNotes(f"The note has no text in these lines; its text stands in {where}.")
    return "".join(wanted)
