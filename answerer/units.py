"""Cutting a passage into what can be cited: a paragraph, a list, a table, a code block, a heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from answerer.sentences import line_range

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])\s+\S")
_TABLE = re.compile(r"[ \t>]*\|")
_INDENTED = re.compile(r"(?: {2,}|\t)\S")
_LONGEST = 4_000  # characters: what is longer is cut between its lines


@dataclass(frozen=True)
class Unit:
    """Half-open character offsets into a passage's content, and the 1-based lines of the note."""

    start: int
    end: int
    first_line: int
    last_line: int


def cut_units(content: str, last_line: int) -> list[Unit]:
    """Return the units of a passage whose text ends in `last_line` of its note, in order."""
    units = []
    for first, last in _spans(content):
        text = content[first:last]
        start = first + len(text) - len(text.lstrip("\r\n"))
        end = first + len(text.rstrip())
        if start < end and text.strip():
            units.append(Unit(start, end, *line_range(content, (start, end), last_line)))
    return units


class _Cutter:
    """Walks over lines; `kind` is that of the open unit."""

    def __init__(self) -> None:
        self.start = 0
        self.kind = ""
        self.fence = ""
        self.blank = False

    def begins(self, line: str) -> bool:
        """Take one line and tell whether a new unit begins with it."""
        if self.kind == "code":
            self._maybe_close(line)
            return False
        if not line.strip(" \t\r\n>"):
            self.blank = True
            return False
        kind = self._kind_of(line)
        goes_on = kind == self.kind and not (self.blank and kind == "text") and kind != "heading"
        goes_on = goes_on or (self.kind == "list" and self._in_list(line, kind))
        self.blank = False
        if goes_on:
            return False
        self.kind = kind
        return True

    def _kind_of(self, line: str) -> str:
        fence = _FENCE.match(line)
        if fence:
            self.fence = fence[1]
            return "code"
        if _HEADING.match(line):
            return "heading"
        if _TABLE.match(line):
            return "table"
        return "list" if _ITEM.match(line) else "text"

    def _in_list(self, line: str, kind: str) -> bool:
        """A list goes on with its lazy lines, and after a blank line with what is indented."""
        if kind == "code":
            return False
        return bool(_INDENTED.match(line)) or (kind == "text" and not self.blank)

    def _maybe_close(self, line: str) -> None:
        found = _FENCE.match(line)
        if found and found[1].startswith(self.fence) and not line.strip(" \t\r\n>`~"):
            self.kind, self.fence = "closed", ""


def _spans(content: str) -> Iterator[tuple[int, int]]:
    cutter = _Cutter()
    start = 0
    for match in _LINE.finditer(content):
        if match.end() == match.start():
            continue
        if cutter.begins(match.group()) and match.start() > start:
            yield from _bounded(content, start, match.start())
            start = match.start()
    yield from _bounded(content, start, len(content))


def _bounded(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > _LONGEST:
        cut = content.rfind("\n", start + 1, start + _LONGEST) + 1
        cut = cut if cut > start else start + _LONGEST
        yield start, cut
        start = cut
    yield start, end
