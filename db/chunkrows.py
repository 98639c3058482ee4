"""The rows of a note's chunks: the chunks, their vectors, their postings, and what their audience counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection, sql

from db import generations
from db.arrays import Int2s, Int4s, Int8s, register_integers
from db.queries import load

_SQL = load("chunkrows")

_MOST_TERMS = 100_000  # whose ids are kept in memory
_PART = 500  # chunks of one statement
_IDS = 256  # fetched at once
_MOST = 32_767  # of a smallint

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class NewChunk:
    """A chunk to store. `vector` is float32 of the generation's dimension; `terms` counts BM25 terms."""

    seq: int
    heading: tuple[str, ...]
    lines: tuple[int, int]
    span: tuple[int, int]
    content: str
    embed_key: bytes
    terms: Mapping[str, int]
    vector: Vector

    @property
    def length(self) -> int:
        """Terms in all: the document length of BM25."""
        return sum(self.terms.values())


class Place(NamedTuple):
    """Where chunks belong: ids of their generation, note and audience."""

    generation_id: int
    note_id: int
    audience_id: int


class Ids:
    """Ids for new rows of one table, fetched in blocks: a row's id is known before it is stored.

    Ids that are never used leave gaps, which mean nothing.
    """

    def __init__(self, conn: Connection[Any], table: str, column: str) -> None:
        self._conn = conn
        self._names = {"table": table, "column": column}
        self._left: list[int] = []

    def take(self) -> int:
        """Return an id that no other row has or will have."""
        return self.take_all(1)[0]

    def take_all(self, count: int) -> list[int]:
        """Return so many ids, ascending."""
        if len(self._left) < count:
            values = self._names | {"count": max(count, _IDS)}
            self._left = [row[0] for row in self._conn.execute(_SQL["ids"], values)]
        taken, self._left = self._left[:count], self._left[count:]
        return taken


class ChunkStore:
    """Stores the rows of chunks, always within the caller's transaction."""

    def __init__(self, conn: Connection[Any]) -> None:
        register_integers(conn)
        self._conn = conn
        self._terms: dict[str, int] = {}
        self._queries: dict[int, sql.Composed] = {}
        self._chunk_ids = Ids(conn, "nw.note_chunk", "chunk_id")
        self.note_ids = Ids(conn, "nw.note", "note_id")

    def learn(self, chunks: Sequence[NewChunk]) -> None:
        """Make sure that the terms of these chunks have ids."""
        if len(self._terms) > _MOST_TERMS:
            self._terms.clear()
        unknown = sorted({term for chunk in chunks for term in chunk.terms} - self._terms.keys())
        if unknown:
            self._terms.update(self._conn.execute(_SQL["terms"], {"words": unknown}).fetchall())

    def add(self, place: Place, chunks: Sequence[NewChunk]) -> None:
        """Store the rows of chunks whose terms were learnt."""
        ids = self._chunk_ids.take_all(len(chunks))
        for start in range(0, len(chunks), _PART):
            part = slice(start, start + _PART)
            self._conn.execute(
                self._query(place.generation_id), self._columns(place, ids[part], chunks[part])
            )

    def forget(self) -> None:
        """Drop what was learnt, as after a transaction that was rolled back."""
        self._terms.clear()

    def _query(self, generation_id: int) -> sql.Composed:
        if generation_id not in self._queries:
            self._queries[generation_id] = generations.on_vectors(_SQL["add_chunks"], generation_id)
        return self._queries[generation_id]

    def _columns(self, place: Place, ids: list[int], chunks: Sequence[NewChunk]) -> dict[str, Any]:
        return {
            **place._asdict(),
            "chunk_ids": Int8s(ids),
            "seqs": Int4s([one.seq for one in chunks]),
            "headings": [_array(one.heading) for one in chunks],
            "first_lines": Int4s([one.lines[0] for one in chunks]),
            "last_lines": Int4s([one.lines[1] for one in chunks]),
            "starts": Int8s([one.span[0] for one in chunks]),
            "ends": Int8s([one.span[1] for one in chunks]),
            "contents": [one.content for one in chunks],
            "embed_keys": [one.embed_key for one in chunks],
            "lengths": Int4s([one.length for one in chunks]),
            "vectors": [one.vector for one in chunks],
            **self._postings(ids, chunks),
        }

    def _postings(self, ids: list[int], chunks: Sequence[NewChunk]) -> dict[str, Any]:
        counts = [len(one.terms) for one in chunks]
        lengths = [min(one.length, _MOST) for one in chunks]
        return {
            "term_ids": Int4s([self._terms[term] for one in chunks for term in one.terms]),
            "in_chunks": Int8s(np.repeat(np.array(ids, dtype=np.int64), counts)),
            "tfs": Int2s(np.minimum([tf for one in chunks for tf in one.terms.values()], _MOST)),
            "in_lengths": Int2s(np.repeat(np.array(lengths, dtype=np.int64), counts)),
        }


def _array(texts: Sequence[str]) -> str:
    """Return texts as the literal of an array: arrays of different lengths cannot stand in one array."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
