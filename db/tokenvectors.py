"""Token vectors of chunks, packed as the embedding model's side packs them: stored, reused and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import Connection

from db.errors import our_errors
from db.queries import load

_SQL = load("tokenvectors")

_PART = 100  # chunks of one statement: of a long one they take some 25 kB each


class TokenStore:
    """The token vectors of one generation's chunks in one form; `conn` is the owner's."""

    def __init__(self, conn: Connection[Any], generation_id: int, form: int) -> None:
        self._conn = conn
        self._values = {"generation_id": generation_id, "form": form}

    def known(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return those that already stand for exactly these embedded strings."""
        rows = self._conn.execute(_SQL["known"], self._values | {"keys": list(keys)})
        return {bytes(key): bytes(vectors) for key, vectors in rows}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Store what is stored inside whole or not at all. Raises DatabaseFault, DatabaseUnavailable."""
        with our_errors(), self._conn.transaction():
            yield

    def add(self, note_id: int, made: Mapping[bytes, bytes]) -> None:
        """Store those of a note whose chunks were just stored, by embed key.

        Must run inside that transaction. Raises DatabaseFault, DatabaseUnavailable.
        """
        keys = list(made)
        with our_errors():
            for first in range(0, len(keys), _PART):
                part = keys[first : first + _PART]
                values = {"note_id": note_id, "keys": part, "vectors": [made[key] for key in part]}
                self._conn.execute(_SQL["add"], self._values | values)

    def lacking(self, share_id: int) -> dict[int, int]:
        """Return the share's notes of which a chunk has none, with the number of all their chunks."""
        rows = self._conn.execute(_SQL["lacking"], self._values | {"share_id": share_id})
        return {row[0]: row[1] for row in rows}


def stored(conn: Connection[Any], form: int, chunk_ids: Sequence[int]) -> dict[int, bytes]:
    """Return the token vectors of these chunks in this form, as far as there are any and they may be read."""
    rows = conn.execute(_SQL["stored"], {"chunk_ids": list(chunk_ids), "form": form})
    return {row[0]: bytes(row[1]) for row in rows}
