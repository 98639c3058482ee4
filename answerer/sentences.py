"""Cutting a passage into sentences that can be quoted: where each begins and ends in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]
"""Half-open character offsets into a passage."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_END = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"[\s>]*(```+|~~~+)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*$")
_RULER = re.compile(r"[\s|:+*_=-]+$")
_MARKER = re.compile(r"\s*(?:>\s?)*\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTED = re.compile(r"\s*(?:>\s?)+")
_STOP = re.compile(r"[.!?…]+[\"'”’)\]*_]*\s+(?=[\"'“„(\[*_`]*[^\W_a-zß-öø-ÿ])")
# What ends in a full stop without ending a sentence, lower case.
_SHORT = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|nr|dr|mr|mrs|ms|st|fig|z\.\s?b|d\.\s?h|u\.\s?a|bzw|ca|ggf|inkl|vgl|abs|[a-z]|\d{1,2})\.$"
)
_LONG = 600  # characters: what is longer is quoted in pieces


def spans(text: str) -> list[Span]:
    """Return the sentences of a passage in Markdown, in order.

    Headings, column heads, rulers, fences and HTML comments are none; a list item, a table row and a line
    of code are units of their own.
    """
    sentences = (span for block in _blocks(text) for span in _split(text, block))
    return [piece for sentence in sentences for piece in _pieces(text, sentence)]


def line_range(text: str, span: Span, last_line: int) -> tuple[int, int]:
    """Return the first and last line of a span, 1-based, where `text` ends in `last_line` of its note.

    Counted from the end, as the beginning of a note may stand before the text. Only CR LF, LF and CR end a
    line.
    """
    return _line_at(text, span[0], last_line), _line_at(text, max(span[0], span[1] - 1), last_line)


def _line_at(text: str, offset: int, last_line: int) -> int:
    rest = text[offset:]
    ends = len(_END.findall(rest))
    return last_line - ends + (1 if rest.endswith(("\n", "\r")) else 0)


class _Cutter:
    """Walks over the lines of a passage and gathers blocks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks: list[Span] = []
        self.open: Span | None = None
        self.fence: str | None = None
        self.comment = False

    def flush(self) -> None:
        if self.open is not None:
            self.blocks.append(self.open)
        self.open = None

    def feed(self, start: int, end: int) -> None:
        line = self.text[start:end]
        if self.comment or line.lstrip().startswith("<!--"):
            self.flush()
            self.comment = "-->" not in line
        elif not self._code(line, start, end) and not self._structure(line, start, end):
            begin = start if self.open is None else self.open[0]
            self.open = (begin, end)

    def _code(self, line: str, start: int, end: int) -> bool:
        found = _FENCE.match(line)
        if self.fence is None and found is None:
            return False
        if found and self.fence is None:
            self.flush()
            self.fence = found.group(1)
        elif found and found.group(1).startswith(self.fence or "") and not line.strip(" \t\r\n>`~"):
            self.fence = None
        else:
            self.blocks.append((start, end))
        return True

    def _structure(self, line: str, start: int, end: int) -> bool:
        if not line.strip(" \t\r\n>") or _HEADING.match(line):
            self.flush()
            return True
        if _UNDERLINE.match(line) and self.open is not None:
            self.open = None  # what stood above was a heading
            return True
        if _RULER.fullmatch(line):
            self.flush()
            self._drop_table_head(line, start)
            return True
        if line.lstrip().startswith("|"):
            self.flush()
            self.blocks.append((start, end))
            return True
        marker = _MARKER.match(line) or (_QUOTED.match(line) if self.open is None else None)
        if marker:
            self.flush()
            self.open = (start + marker.end(), end)
        return marker is not None

    def _drop_table_head(self, line: str, start: int) -> None:
        """The row above a table's ruler names the columns and says nothing itself."""
        if line.lstrip().startswith("|") and self.blocks and self.blocks[-1][1] == start:
            self.blocks.pop()


def _blocks(text: str) -> list[Span]:
    cutter = _Cutter(text)
    for line in _LINE.finditer(text):
        if line.end() > line.start():
            cutter.feed(line.start(), line.end())
    cutter.flush()
    return cutter.blocks


def _split(text: str, block: Span) -> Iterator[Span]:
    start, end = block
    for stop in _STOP.finditer(text, start, end):
        head = text[start : stop.start() + 1]
        if _SHORT.search(head.casefold()[-12:]):
            continue
        yield from _trimmed(text, start, stop.end())
        start = stop.end()
    yield from _trimmed(text, start, end)


def _pieces(text: str, sentence: Span) -> Iterator[Span]:
    """Cut what is too long to quote, between words where there are any."""
    start, end = sentence
    while end - start > _LONG:
        cut = max(text.rfind(" ", start + 1, start + _LONG), text.rfind("\n", start + 1, start + _LONG))
        cut = cut if cut > start else start + _LONG
        yield from _trimmed(text, start, cut)
        start = cut
    yield from _trimmed(text, start, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    if re.search(r"\w", text[start:end]):
        yield start, end
