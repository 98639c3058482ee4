"""A note cut at its headings, and its blocks as stretches of characters."""

from __future__ import annotations

from dataclasses import dataclass, field

from indexer.chunking.blocks import Block, parse_blocks
from indexer.chunking.headings import heading_text
from indexer.chunking.lines import Lines, with_line_feeds


@dataclass(slots=True)
class Span:
    """A block as the characters [start, end) of the text; blank lines behind it are part of it."""

    kind: str
    start: int
    end: int
    block: Block | None = None


@dataclass(slots=True)
class Section:
    """A heading with the text down to the next heading of any level.

    `heading` is the trail, outermost first; `parent` the index of the enclosing section, -1 for none, or
    None for what stands before the first heading. `body` is where the text behind the heading begins.
    """

    start: int
    end: int
    body: int
    level: int
    text: str
    heading: tuple[str, ...]
    parent: int | None
    blocks: list[Block] = field(default_factory=list)


class Outline:
    """The sections of a text whose note proper begins at the character index `begin`."""

    def __init__(self, text: str, begin: int) -> None:
        self.text = text
        self.lines = Lines(text)
        self._shift = self.lines.number(begin) - 1 if begin < len(text) else len(self.lines.starts)
        parsed = parse_blocks(with_line_feeds(text[begin:]))
        self.sections = self._sections(parsed.blocks, parsed.references, begin)
        self.title = next(
            (section.text for section in self.sections if section.level == 1 and section.text), ""
        )

    def spans(self, blocks: list[Block], start: int, end: int) -> list[Span]:
        """Return `blocks` as spans that tile [start, end). Text between them that is no block, such as link
        references, is a span of its own."""
        spans: list[Span] = []
        for block in blocks:
            first = self._at(block.first)
            self._close(spans, start, first)
            begin = spans[-1].end if spans else start
            spans.append(Span(block.kind, begin, max(begin, min(self._at(block.end), end)), block))
        self._close(spans, start, end)
        return [span for span in spans if span.start < span.end]

    def _close(self, spans: list[Span], start: int, end: int) -> None:
        """Bring `spans` up to `end`."""
        done = spans[-1].end if spans else start
        if done < end and self.text[done:end].strip():
            spans.append(Span("other", done, end))
        elif spans:
            spans[-1].end = end

    def _at(self, line: int) -> int:
        return self.lines.start(line + self._shift)

    def _sections(self, blocks: list[Block], references: dict[str, object], begin: int) -> list[Section]:
        sections = [Section(begin, begin, begin, 0, "", (), None)]
        open_sections: list[int] = []
        for block in blocks:
            if not block.level:
                sections[-1].blocks.append(block)
                continue
            start = self._at(block.first)
            sections[-1].end = start
            while open_sections and sections[open_sections[-1]].level >= block.level:
                open_sections.pop()
            parent = open_sections[-1] if open_sections else -1
            text = heading_text(block.content, references)
            outer = sections[parent].heading if open_sections else ()
            trail = (*outer, text) if text else outer
            open_sections.append(len(sections))
            body = self._at(block.end)
            sections.append(Section(start, start, body, block.level, text, trail, parent, [block]))
        sections[-1].end = len(self.text)
        return self._without_empty_start(sections)

    def _without_empty_start(self, sections: list[Section]) -> list[Section]:
        """White space before the first heading belongs to that heading."""
        first = sections[0]
        if len(sections) > 1 and not self.text[first.start : first.end].strip():
            sections[1].start = first.start
            first.end = first.start
        return sections
