"""What holds for the chunks of every note."""

from __future__ import annotations

import re

from indexer.chunking import Chunk, ChunkedNote, chunk
from notewarden.wordpiece import count_tokens

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check(raw: bytes, path: bytes = b"mill/boiler.md", max_tokens: int = 240) -> ChunkedNote:
    """Cut `raw`, assert every law, and return the note."""
    note = chunk(raw, path, max_tokens=max_tokens)
    tiles(note.chunks, len(raw))
    for piece in note.chunks:
        assert count_tokens(piece.embedded) <= max_tokens, piece.embedded
        assert len(piece.text.strip()) <= 16 * max_tokens
        text_is_the_slice(piece, raw, note.encoding)
        lines_are_right(piece, raw, note.encoding)
    assert [piece.seq for piece in note.chunks] == list(range(len(note.chunks)))
    return note


def tiles(chunks: tuple[Chunk, ...], size: int) -> None:
    """The ranges follow one another from 0 to the size of the file, and none is empty."""
    borders = [0, *(piece.end for piece in chunks)]
    assert borders[-1] == size
    assert [piece.start for piece in chunks] == borders[:-1]
    assert all(piece.start < piece.end for piece in chunks)


def text_is_the_slice(piece: Chunk, raw: bytes, encoding: str) -> None:
    """The text is what the bytes say; only the first chunk leaves something out, at its start."""
    expected = _UNSTORABLE.sub("\ufffd", _decoded(raw[piece.start : piece.end], encoding))
    if piece.seq == 0:
        assert expected.endswith(piece.text), (expected, piece.text)
    else:
        assert expected == piece.text


def lines_are_right(piece: Chunk, raw: bytes, encoding: str) -> None:
    """Lines are counted by LF, CRLF and CR in the file itself."""
    assert piece.first_line == 1 + _line_ends(raw[: piece.start], encoding)
    inside = _line_ends(raw[piece.start : piece.end], encoding)
    ends_a_line = _decoded(raw[: piece.end], encoding).endswith(("\n", "\r"))
    assert piece.last_line == piece.first_line + inside - (1 if ends_a_line else 0)


def _line_ends(raw: bytes, encoding: str) -> int:
    text = _decoded(raw, encoding).replace("\r\n", "\n")
    return text.count("\n") + text.count("\r")


def _decoded(raw: bytes, encoding: str) -> str:
    """Decode as Python does; the odd byte of a UTF-16 file that was cut off is one unreadable character."""
    if not encoding.startswith(("utf-16", "utf-32")):
        return raw.decode("utf-8" if encoding == "utf-8-sig" else encoding, "surrogateescape")
    odd = len(raw) % 2
    return raw[: len(raw) - odd].decode(encoding, "surrogatepass") + "\ufffd" * odd
