"""The lines of a note that `ask show` cuts out, and what is said where there are none."""

from __future__ import annotations

import pytest

from answerer.shown import cut_lines
from db.search import NotePiece
from notewarden.errors import NotInNotes


def piece(content: str, first: int, last: int) -> NotePiece:
    values = {"share": "notes", "path": b"a.md", "modified_at": None}
    return NotePiece(**values, content=content, first_line=first, last_line=last)  # type: ignore[arg-type]


def test_lines_are_counted_in_the_file() -> None:
    pieces = [piece("# A\n\n", 4, 5), piece("one\ntwo\n", 6, 7)]
    assert cut_lines(pieces, None) == "# A\n\none\ntwo\n"
    assert cut_lines(pieces, (6, 6)) == "one\n"
    assert cut_lines(pieces, (1, 4)) == "# A\n"


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([], "The note has no text."),
        ([piece("", 1, 3)], "The note has no text."),
        ([piece("one\n", 4, 4)], "The note has no text in these lines; its text stands in line 4."),
        (
            [piece("one\ntwo\n", 4, 5)],
            "The note has no text in these lines; its text stands in lines 4 to 5.",
        ),
    ],
)
def test_lines_that_are_not_there_are_told_truly(pieces: list[NotePiece], said: str) -> None:
    with pytest.raises(NotInNotes) as told:
        cut_lines(pieces, (8, 9))
    assert str(told.value) == said
