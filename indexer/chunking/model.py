"""What chunking hands on: a note, read and cut."""

from __future__ import annotations

from dataclasses import dataclass

from indexer.chunking.lines import with_line_feeds


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a note.

    `heading` is the trail of heading texts as a reader sees them, outermost first; `headings_inside` the
    headings of short sections joined into this chunk. Lines are 1-based and inclusive. `start` and `end`
    are byte offsets into the raw note, half-open; the chunks of a note tile it in order. `text` is that
    slice decoded, without front matter and BOM; `embedded` the string that a vector is made from.
    """

    seq: int
    heading: tuple[str, ...]
    headings_inside: tuple[str, ...]
    first_line: int
    last_line: int
    start: int
    end: int
    text: str
    embedded: str

    @property
    def head(self) -> int:
        """How many characters of `embedded` stand before the chunk's own text."""
        return len(self.embedded) - len(with_line_feeds(self.text).strip())


@dataclass(frozen=True, slots=True)
class ChunkedNote:
    """A note's own data and its chunks. `path` is raw, relative to the share; `title` is never empty."""

    path: bytes
    encoding: str
    title: str
    date: str | None
    tags: tuple[str, ...]
    status: str | None
    language: str | None
    chunks: tuple[Chunk, ...]
