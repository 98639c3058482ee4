"""Cutting what is over the budget: at blocks, then sentences, words, characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from indexer.chunking.measure import CHARACTERS_PER_TOKEN, Measure, shorten
from indexer.chunking.sections import Outline, Section, Span
from notewarden.wordpiece import count_tokens

HEADER_TOKENS = 64
_SENTENCE_END = re.compile(r"""[.!?…]+["'”’»)\]*_]*(?=[ \t\r\n]+[^a-zß-öø-ÿ])|[。！？]+[」』”]?""")
_LINE_END = re.compile(r".*(?:\r\n|\n|\r(?!\n))", re.DOTALL)
_WORD_END = re.compile(r".*[ \t\r\n]", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_NOT_SPACE = re.compile(r"\S")
_JOINERS = "\u200d\ufe0e\ufe0f"
_LAST_WORD = re.compile(r"\w+$")
# fmt: off
_ABBREVIATIONS = frozenset({
    "abs", "art", "bzw", "ca", "ch", "dr", "etc", "evtl", "ggf", "inkl", "jr", "mr", "mrs", "ms", "nr",
    "prof", "resp", "sr", "st", "usw", "vgl", "vs",
})
# fmt: on
_TEXT_KINDS = ("paragraph", "heading")
_CODE_KINDS = ("fence", "code_block")


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters [start, end) and the table header row that belongs above them, if they begin in a table."""

    start: int
    end: int
    header: str = ""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table being cut: its header row, and where its rows begin and end."""

    header: str
    tokens: int
    rows: int
    end: int


class Splitter:
    """Cuts one section into pieces of at most `budget` tokens that tile it."""

    def __init__(self, outline: Outline, measure: Measure, budget: int) -> None:
        self._outline = outline
        self._text = outline.text
        self._measure = measure
        self._budget = budget
        self._pieces: list[Piece] = []
        self._start = self._end = self._keep = 0
        self._table: _Table | None = None
        self._header: _Table | None = None

    def split(self, section: Section) -> list[Piece]:
        """Return the pieces of `section`: its heading is never left without the text that follows it."""
        self._start = self._end = section.start
        for span in self._outline.spans(section.blocks, section.start, section.end):
            self._add(span)
            if span.kind == "heading" and self._start == section.start:
                self._keep = self._end
        self._end = section.end
        if self._end > self._start:
            self._flush()
        return self._pieces

    def _add(self, span: Span) -> None:
        if self._fits(span.end):
            self._end = span.end
        elif self._may_flush() and self._measure.fits(span.start, span.end, self._room(span.start)):
            self._flush()
            self._end = span.end
        else:
            self._open(span)

    def _open(self, span: Span) -> None:
        """Add what is in `span` part by part."""
        if span.block is None or not span.block.children:
            self._fill(span)
            return
        outer = self._table
        parts = self._outline.spans(span.block.children, span.start, span.end)
        if span.kind == "table":
            self._table = self._table_of(span, parts)
        for part in parts:
            self._add(part)
        self._table = outer

    def _table_of(self, span: Span, rows: list[Span]) -> _Table:
        """Read the header row, and tie it to the first row so that it does not stand alone."""
        lines = self._outline.lines
        row = self._text[span.start : lines.start(lines.number(span.start))]
        header = shorten(row, min(HEADER_TOKENS, max(self._budget // 3, 3)))
        begin = rows[0].end
        if len(rows) > 1:
            rows[0].end = rows[1].end
            del rows[1]
        return _Table(header, count_tokens(header), begin, span.end)

    def _fill(self, span: Span) -> None:
        """Add `span`, which has no parts, cut as often as needed."""
        while self._end < span.end:
            if self._fits(span.end):
                self._end = span.end
                return
            cut = self._cut(span)
            if cut > self._end:
                self._end = cut
            self._flush()

    def _cut(self, span: Span) -> int:
        """Return where to cut `span` behind the open piece's end, or that end where nothing good fits.

        A piece that holds text already is not filled up with half a sentence.
        """
        far = self._furthest(span.end)
        if far <= self._end and self._end > self._start:
            return self._end
        grades = list(_grades(span.kind))
        if not self._may_flush():
            grades.append(_last_word)
        for grade in grades:
            cut = grade(self._text, self._end, far)
            if cut > self._end:
                return self._over_space(cut, span.end)
        return self._end if self._may_flush() else self._mid_word(far, span.end)

    def _furthest(self, end: int) -> int:
        """Return how far the open piece reaches at most, going by tokens and characters."""
        tokens = self._room(self._start)
        first = _NOT_SPACE.search(self._text, self._start, end)
        begin = first.start() if first else self._start
        limit = min(end, begin + tokens * CHARACTERS_PER_TOKEN)
        left = tokens - self._measure.count(self._start, self._end)
        return self._measure.reach(self._end, limit, left) if limit > self._end else self._end

    def _mid_word(self, far: int, end: int) -> int:
        """Return a cut between two characters, at least one behind the open piece's end."""
        least = self._end + 1
        cut = max(far, least)
        while cut > least and not self._measure.fits(self._start, cut, self._room(self._start)):
            cut = self._end + max((cut - self._end) * 3 // 4, 1)
        if self._end > self._start and not self._measure.fits(self._start, cut, self._room(self._start)):
            return self._end
        return _before_joined(self._text, self._end, cut, end)

    def _over_space(self, cut: int, end: int) -> int:
        """Take the white space behind a cut along, but not the indent of the line that follows."""
        found = _SPACE.match(self._text, cut, end)
        stop = found.end() if found else cut
        line = _LINE_END.match(self._text, cut, stop)
        return line.end() if line else (cut if self._text[cut - 1] in "\r\n" else stop)

    def _fits(self, end: int) -> bool:
        return self._measure.fits(self._start, end, self._room(self._start))

    def _room(self, start: int) -> int:
        """Return the tokens a piece that begins at `start` may have."""
        header = self._header if start == self._start else self._header_at(start)
        return self._budget - (header.tokens if header else 0)

    def _header_at(self, start: int) -> _Table | None:
        table = self._table
        return table if table is not None and table.rows <= start < table.end else None

    def _may_flush(self) -> bool:
        return self._end > max(self._start, self._keep)

    def _flush(self) -> None:
        self._pieces.append(Piece(self._start, self._end, self._header.header if self._header else ""))
        self._start = self._end
        self._header = self._header_at(self._start)


_Grade = Callable[[str, int, int], int]


def _grades(kind: str) -> tuple[_Grade, ...]:
    """Return the places to look for in order: code has lines but no sentences."""
    if kind in _CODE_KINDS:
        return (_last_line,)
    return (_last_sentence, _last_line) if kind in _TEXT_KINDS else (_last_line, _last_sentence)


def _last_line(text: str, start: int, far: int) -> int:
    found = _LINE_END.match(text, start, far)
    return found.end() if found and found.group().strip() else start


def _last_sentence(text: str, start: int, far: int) -> int:
    end = start
    for found in _SENTENCE_END.finditer(text, start, far + 2):
        if found.end() <= far and not _is_abbreviation(text, start, found):
            end = found.end()
    return end


def _is_abbreviation(text: str, start: int, found: re.Match[str]) -> bool:
    word = _LAST_WORD.search(text, max(start, found.start() - 8), found.start())
    if word is None or not found.group().startswith("."):
        return False
    return (len(word.group()) == 1 and word.group().isalpha()) or word.group().lower() in _ABBREVIATIONS


def _last_word(text: str, start: int, far: int) -> int:
    if far < len(text) and text[far] in " \t\r\n" and text[start:far].strip():
        return far
    found = _WORD_END.match(text, start, far)
    return found.end() if found and found.group().strip() else start


def _before_joined(text: str, start: int, cut: int, end: int) -> int:
    """Move a cut back to where no combining mark, joiner or line feed belongs to the character before it."""
    place = cut
    while place < end and place > start + 1 and cut - place < 32 and _belongs_together(text, place):
        place -= 1
    return place if place == end or not _belongs_together(text, place) else cut


def _belongs_together(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    if unicodedata.combining(after) or after in _JOINERS or before == "\u200d":
        return True
    return before == "\r" and after == "\n"
