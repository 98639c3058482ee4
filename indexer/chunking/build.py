"""From the bytes of a note to its chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from indexer.chunking.measure import Measure
from indexer.chunking.model import Chunk, ChunkedNote
from indexer.chunking.sections import Outline, Section
from indexer.chunking.split import Splitter
from indexer.chunking.template import PREFIX_TOKENS, embedded, prefix
from indexer.decode import Decoded, decode
from indexer.frontmatter import FrontMatter, read_front_matter
from notewarden.display import show_path
from notewarden.errors import NoteSkipped
from notewarden.terms import known_language
from notewarden.wordpiece import count_tokens

CHUNKER_VERSION = "1"
JOINED_BELOW = 20  # tokens of a section's own text
LEAST_TOKENS = 32  # a smaller budget leaves no room for text behind the prefix


@dataclass(slots=True)
class _Draft:
    """A chunk in the making: characters [start, end) and what its embedded string needs."""

    start: int
    end: int
    heading: tuple[str, ...]
    parent: int | None
    prefix: str
    header: str
    room: int
    inside: list[str] = field(default_factory=list)


def chunk(raw: bytes, path: bytes, *, max_tokens: int = 240, max_chunks: int | None = None) -> ChunkedNote:
    """Cut the note `raw`, whose path within its share is `path`, into chunks that tile it.

    No chunk's embedded string has more than `max_tokens` tokens of the shipped vocabulary. Raises
    NoteSkipped for a binary and for a note of more than `max_chunks` chunks, ValueError for a budget
    below 32 tokens.
    """
    if max_tokens < LEAST_TOKENS:
        raise ValueError(f"max_tokens is {max_tokens}; at least {LEAST_TOKENS} are needed")
    decoded = decode(raw)
    measure = Measure(decoded.text)
    _refuse_beyond(max_chunks, -(-measure.total // max_tokens))  # before any work that grows faster
    front = read_front_matter(decoded.text)
    outline = Outline(decoded.text, front.end)
    shown = show_path(path)
    title = front.title or outline.title or _stem(shown)
    drafts = _Drafts(outline, measure, max_tokens).of(shown, title)
    _refuse_beyond(max_chunks, len(drafts))
    chunks = tuple(_chunks(drafts, decoded, outline)) if raw else ()
    return _note(path, decoded, title, front, chunks)


def as_json(note: ChunkedNote) -> dict[str, Any]:
    """Return `note` in the shape that `chunks FILE --json` prints."""
    return {
        "path": show_path(note.path),
        "encoding": note.encoding,
        "chunks": [
            {
                "seq": piece.seq,
                "heading": list(piece.heading),
                "first_line": piece.first_line,
                "last_line": piece.last_line,
                "start": piece.start,
                "end": piece.end,
                "text": piece.text,
            }
            for piece in note.chunks
        ],
    }


class _Drafts:
    """Goes through the sections of a note, joining the short ones and cutting the long ones."""

    def __init__(self, outline: Outline, measure: Measure, max_tokens: int) -> None:
        self._outline = outline
        self._measure = measure
        self._max = max_tokens
        self._drafts: list[_Draft] = []

    def of(self, path: str, title: str) -> list[_Draft]:
        """Return the drafts of all sections in order; at least one."""
        for section in self._outline.sections:
            if section.end == section.start and len(self._outline.sections) > 1:
                continue
            if not self._joined(section):
                self._cut(section, prefix(path, title, section.heading, min(PREFIX_TOKENS, self._max // 2)))
        return self._drafts

    def _joined(self, section: Section) -> bool:
        """Join a section of little text to the chunk before it, if that is of the same parent."""
        last = self._drafts[-1] if self._drafts else None
        if last is None or section.parent is None or section.parent != last.parent:
            return False
        if self._measure.count(section.body, section.end) >= JOINED_BELOW:
            return False
        if not self._measure.fits(last.start, section.end, last.room):
            return False
        last.end = section.end
        if section.text:
            last.inside.append(section.text)
        return True

    def _cut(self, section: Section, before: str) -> None:
        budget = self._max - count_tokens(before)
        pieces = Splitter(self._outline, self._measure, budget).split(section)
        for piece in pieces:
            room = budget - count_tokens(piece.header) if piece.header else budget
            self._drafts.append(
                _Draft(piece.start, piece.end, section.heading, section.parent, before, piece.header, room)
            )
        if not pieces:  # nothing but front matter or a BOM: its bytes still need a chunk
            self._drafts.append(
                _Draft(section.start, section.end, section.heading, section.parent, before, "", budget)
            )


def _chunks(drafts: Sequence[_Draft], decoded: Decoded, outline: Outline) -> list[Chunk]:
    """Turn characters into bytes and lines; the first chunk takes BOM and front matter into its range."""
    offsets = [0, *decoded.byte_offsets([draft.end for draft in drafts])]
    offsets[-1] = decoded.size
    made: list[Chunk] = []
    for seq, (draft, (start, end)) in enumerate(zip(drafts, pairwise(offsets), strict=True)):
        text = decoded.text[draft.start : draft.end]
        made.append(
            Chunk(
                seq=seq,
                heading=draft.heading,
                headings_inside=tuple(draft.inside),
                first_line=outline.lines.number(draft.start if seq else 0),
                last_line=outline.lines.number(max(draft.end - 1, 0)),
                start=start,
                end=end,
                text=text,
                embedded=embedded(draft.prefix, draft.header, text),
            )
        )
    return made


def _note(
    path: bytes, decoded: Decoded, title: str, front: FrontMatter, chunks: tuple[Chunk, ...]
) -> ChunkedNote:
    language = known_language(front.language)
    return ChunkedNote(path, decoded.encoding, title, front.date, front.tags, front.status, language, chunks)


def _refuse_beyond(max_chunks: int | None, chunks: int) -> None:
    if max_chunks is not None and chunks > max_chunks:
        raise NoteSkipped(
            f"too large: the note gives {chunks} chunks or more and max_chunks is {max_chunks}; "
            "split it, or raise max_chunks for its share"
        )


def _stem(path: str) -> str:
    """Return the file name without its extension; a name that is only an extension stays."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0].strip() or name.strip() or "untitled"
