"""The baseline everybody writes first: rank_bm25 as it comes, lower-cased words, sections cut at headings.

It knows no permissions, so it is given the notes that the asker may read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi

from answerer.door import Told, Wish

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*")


@dataclass(frozen=True)
class Section:
    """The lines from one heading to the next, with the headings above it."""

    path: str
    heading: tuple[str, ...]
    first_line: int
    last_line: int
    text: str


class Naive:
    """BM25Okapi with its defaults over the sections of some notes."""

    def __init__(self, notes: Mapping[str, str]) -> None:
        self._sections = [section for path, text in sorted(notes.items()) for section in sections(path, text)]
        self._bm25 = BM25Okapi([_words(section.text) for section in self._sections])

    def search(self, words: str, k: int) -> list[dict[str, Any]]:
        """Return the best `k` sections in the form of `ask search --json`."""
        order = np.argsort(-self._bm25.get_scores(_words(words)), kind="stable")[:k]
        return [
            {**vars(self._sections[at]), "heading": list(self._sections[at].heading), "share": "naive"}
            for at in order
        ]


def teller(notes_for: Callable[[str | None], Mapping[str, str]]) -> Callable[[Wish], Told]:
    """Return what `evaluate` asks; `notes_for` gives the notes that an `as` may read. It never refuses."""
    made: dict[str | None, Naive] = {}

    def tell(wish: Wish) -> Told:
        user = wish.fields.get("as")
        if user not in made:
            made[user] = Naive(notes_for(user))
        if wish.action == "search":
            return Told({"results": made[user].search(wish.fields["words"], wish.fields["k"])})
        return Told({"found": True, "answer": "", "citations": []})

    return tell


def sections(path: str, text: str) -> list[Section]:
    """Cut a note at every line that begins like a heading."""
    lines = text.splitlines()
    starts = [0, *(at for at, line in enumerate(lines) if at and _HEADING.fullmatch(line)), len(lines)]
    trail: list[tuple[int, str]] = []
    found = []
    for start, end in pairwise(starts):
        match = _HEADING.fullmatch(lines[start]) if lines else None
        if match:
            trail = [one for one in trail if one[0] < len(match[1])] + [(len(match[1]), match[2])]
        body = "\n".join(lines[start:end])
        if _words(body):
            found.append(Section(path, tuple(name for _, name in trail), start + 1, end, body))
    return found


def read_notes(root: Path) -> dict[str, str]:
    """Return every note below `root` by its path, bytes that are no UTF-8 replaced."""
    return {
        str(file.relative_to(root)): file.read_bytes().decode("utf-8", "replace")
        for file in sorted(root.rglob("*.md"))
    }


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
