"""Passages that say the same: what a reader would call a copy is shown once, of what is templated a few."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from zlib import crc32

from db.search import Passage

TWINS = 0.85
"""The part of their runs of words that two passages must share to count as one."""

MOST_ALIKE = 3
"""So many passages are shown of those that differ in their numbers only, such as logs from one template."""

PAGE = 5
"""Among so many passages the cap for each note is kept."""

_Placed = tuple[int, Passage]

_RUN = 3  # words
_SKETCH = 8  # numbers
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _Shape:
    runs: frozenset[int]
    numbers: frozenset[str]

    @property
    def sketch(self) -> list[int]:
        """A few of the runs that a near-copy holds too: those whose checksums are least (Broder 1997)."""
        return nsmallest(_SKETCH, self.runs)


@dataclass
class _Texts:
    """What stands further up, to compare the next passage with."""

    _texts: set[str] = field(default_factory=set)
    _shapes: dict[int, list[_Shape]] = field(default_factory=dict)  # by each number of their sketches

    def takes(self, passage: Passage) -> bool:
        """Whether a passage says something new; one that does counts from then on."""
        key = normal_text(passage.content)
        if key in self._texts:
            return False
        shape = _shape(key)
        alike = self._alike(shape)
        if len(alike) >= MOST_ALIKE or any(other.numbers == shape.numbers for other in alike):
            return False
        self._texts.add(key)
        for number in shape.sketch:
            self._shapes.setdefault(number, []).append(shape)
        return True

    def _alike(self, shape: _Shape) -> list[_Shape]:
        """Return what nearly repeats `shape`; only what shares a part of its sketch is compared."""
        near = {id(other): other for number in shape.sketch for other in self._shapes.get(number, ())}
        return [other for other in near.values() if _likeness(shape.runs, other.runs) >= TWINS]


def cap_and_fold(
    passages: Sequence[Passage], per_note: int, enough: int | None = None
) -> tuple[list[Passage], list[Passage]]:
    """Part passages, in their order, into those shown first and those left out.

    Of a note at most `per_note` are among each five shown: those beyond wait for the next five. Left out are
    what nearly repeats something shown, all but the first three of those that differ from each other in their
    numbers only, and what still waits. After `enough` of the first the others are left without a look.
    """
    wanted = len(passages) if enough is None else enough
    first: list[Passage] = []
    copies: list[_Placed] = []
    texts, waiting = _Texts(), list(enumerate(passages))
    while len(first) < wanted:
        page, waiting, more = _page(texts, waiting, per_note, min(PAGE, wanted - len(first)))
        first += page
        copies += more
        if len(page) < PAGE:
            break
    return first, [passage for _, passage in sorted([*copies, *waiting], key=lambda one: one[0])]


def _page(
    texts: _Texts, candidates: Sequence[_Placed], per_note: int, size: int
) -> tuple[list[Passage], list[_Placed], list[_Placed]]:
    """Return up to `size` passages to show, the candidates that wait, and those that are copies."""
    taken: Counter[int] = Counter()
    page: list[Passage] = []
    waiting: list[_Placed] = []
    copies: list[_Placed] = []
    for at, (place, passage) in enumerate(candidates):
        if len(page) == size:
            waiting += candidates[at:]
            break
        if taken[passage.note_id] >= per_note:
            waiting.append((place, passage))
        elif texts.takes(passage):
            taken[passage.note_id] += 1
            page.append(passage)
        else:
            copies.append((place, passage))
    return page, waiting, copies


def normal_text(text: str) -> str:
    """Return `text` in NFC, case-folded, with single spaces: what two texts share that read the same."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _shape(text: str) -> _Shape:
    numbers = _NUMBER.findall(text)
    words = _WORD.findall(text)
    if 2 * len(numbers) < len(words):  # in a table of figures the numbers are what it says
        words = _WORD.findall(_NUMBER.sub(" 0 ", text))
    texts = (" ".join(words[at : at + _RUN]) for at in range(max(len(words) - _RUN + 1, 1)))
    runs = frozenset(crc32(text.encode("utf-8", "replace")) for text in texts)
    return _Shape(runs, frozenset(numbers))


def _likeness(some: frozenset[int], others: frozenset[int]) -> float:
    """Return the Jaccard index: the shared part of all runs (Broder 1997, resemblance of documents)."""
    small, large = sorted((len(some), len(others)))
    if small < TWINS * large:
        return 0.0
    shared = len(some & others)
    return shared / (small + large - shared)
