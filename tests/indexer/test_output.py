"""Words beside numbers."""

from __future__ import annotations

import pytest

from indexer.output import counted


@pytest.mark.parametrize(
    ("number", "verb", "words"),
    [
        (0, "", "0 notes"),
        (1, "", "1 note"),
        (2, "", "2 notes"),
        (1, "is", "1 note is"),
        (2, "is", "2 notes are"),
        (1, "keeps", "1 note keeps"),
        (0, "keeps", "0 notes keep"),
    ],
)
def test_one_is_not_many(number: int, verb: str, words: str) -> None:
    assert counted(number, "note", verb) == words
