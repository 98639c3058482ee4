"""Bytes to text: the encoding of a note, and which bytes each of its characters came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from indexer.encodings import Guess, guess

REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # Postgres holds neither NUL nor lone surrogates


@dataclass(frozen=True, slots=True)
class Decoded:
    """A note as text.

    `text` has no BOM, and one U+FFFD for each NUL, lone surrogate or undecodable byte (pair), so that it
    can be stored. `encoding` is a Python codec name. `size` is the length of the raw bytes, `bom` how
    many of them come before the first character.
    """

    text: str
    encoding: str
    size: int
    bom: int
    _guess: Guess = field(repr=False)

    def byte_offsets(self, places: Sequence[int]) -> list[int]:
        """Return the byte offset in the raw note of each character index in `places` (ascending).

        Index 0 is the first byte behind the BOM and len(text) is `size`.
        """
        original = self._guess.text
        offsets: list[int] = []
        at, offset = 0, self.bom
        for place in places:
            offset += self._guess.width_of(original[at:place])
            at = place
            offsets.append(self.size if place >= len(original) else offset)
        return offsets


def decode(raw: bytes) -> Decoded:
    """Return the text of a note and how its characters map to bytes.

    UTF-8, UTF-16 and UTF-32 with a BOM; without one UTF-8, UTF-16 by its pattern of NUL bytes, else
    cp1252 or what detection makes of it. Raises NoteSkipped if the bytes are not text at all.
    """
    found = guess(raw)
    return Decoded(_UNSTORABLE.sub(REPLACEMENT, found.text), found.encoding, len(raw), found.bom, found)
