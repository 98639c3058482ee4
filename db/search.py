"""What an asker may see: every read of note text goes through one Reading, as the reader role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection, IsolationLevel
from psycopg.rows import class_row

from acl.sid import Sid
from acl.token import Token, require_token
from db import generations, latecheck, tokenvectors, vectorindex
from db.arrays import array_cursor
from db.queries import load
from notewarden.embedding.tokens import FORM

_SQL = load("search")
_FEW_CHUNKS = 12_000  # up to which the postings of single chunks are looked up, instead of a word's all
_LEAST_FETCH = 40  # rows of the index before they are sorted anew: its own order is only nearly right


@dataclass(frozen=True)
class Scope:
    """Where to look: share names and folders (raw bytes, all below included); None leaves that side open.

    A scope narrows what may be read; it never widens it.
    """

    shares: tuple[str, ...] | None = None
    folders: tuple[bytes, ...] | None = None


@dataclass(frozen=True)
class Passage:
    """A chunk as it may leave: lines are 1-based and inclusive, `content` ends where `last_line` ends."""

    chunk_id: int
    note_id: int
    seq: int
    share: str
    path: bytes
    link: str | None
    title: str
    heading: list[str]
    first_line: int
    last_line: int
    content: str
    modified_at: datetime
    language: str
    written_on: date | None
    status: str


@dataclass(frozen=True)
class Postings:
    """Where terms stand among the readable chunks: parallel arrays, one run of elements for each term.

    `runs` gives a term's half-open range of elements; within a run no chunk stands twice.
    """

    runs: dict[int, tuple[int, int]]
    chunk_ids: NDArray[np.int64]
    tfs: NDArray[np.float64]
    lengths: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Sequence[tuple[int, NDArray[np.int64]]]) -> Postings:
        """Join one row a term: its id and, packed in one number each, chunk ids, tfs and lengths."""
        nothing: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        packed = np.concatenate([nothing, *(row[1] for row in rows)])
        ends = np.cumsum([len(row[1]) for row in rows]).tolist()
        runs = {int(row[0]): (start, end) for row, start, end in zip(rows, [0, *ends], ends, strict=False)}
        tfs, lengths = (packed >> 16) & 0x7FFF, packed & 0xFFFF
        return cls(runs, packed >> 31, tfs.astype(np.float64), lengths.astype(np.float64))

    def holders(self, term_id: int) -> NDArray[np.int64]:
        """Return the chunks that hold a term."""
        start, end = self.runs.get(term_id, (0, 0))
        return self.chunk_ids[start:end]


@dataclass(frozen=True)
class NoteHead:
    """Where a note stands and when its file was last written."""

    share: str
    path: bytes
    modified_at: datetime


@dataclass(frozen=True)
class NotePiece:
    """One chunk of a note that is shown whole."""

    share: str
    path: bytes
    modified_at: datetime
    content: str
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Serving:
    """The generation that answers: its embedding model's identity and dimension."""

    generation_id: int
    embedder: str
    dimension: int


class Reading:
    """One REPEATABLE READ READ ONLY transaction under one token. Made by `reading`."""

    def __init__(self, conn: Connection[Any]) -> None:
        self._conn = conn
        self._sizes: tuple[int, int] | None = None
        self._whole: datetime | None = None
        self.serving = self._find_serving()

    def narrow(self, scope: Scope) -> None:
        """Take away every audience outside the scope."""
        whole = self.as_of()
        self._sizes = None
        folders = None if scope.folders is None else list(scope.folders)
        shares = None if scope.shares is None else list(scope.shares)
        kept = self._conn.execute(_SQL["narrow"], {"shares": shares, "folders": folders}).fetchone()
        self._whole = None if kept and kept[0] else whole

    def sizes(self) -> tuple[int, int]:
        """Return how many chunks may be read, and the sum of their lengths in terms."""
        if self.serving is None:
            return 0, 0
        if self._sizes is None:
            values = {"generation_id": self.serving.generation_id}
            row = self._conn.execute(_SQL["sizes"], values).fetchone()
            assert row is not None
            self._sizes = int(row[0]), int(row[1])
        return self._sizes

    def nearest(
        self, vector: NDArray[np.float32], limit: int, exact_limit: int | None = None
    ) -> list[tuple[int, float]]:
        """Return (chunk id, cosine distance) of the nearest readable chunks, nearest first.

        Up to `exact_limit` readable chunks, and for None always, every one is compared. Beyond, the index is
        asked, if there is one; should it give fewer rows than there are, every one is compared after all.
        """
        if self.serving is None:
            return []
        readable = self.sizes()[0]
        if exact_limit is not None and readable > exact_limit and self._has_vector_index():
            found = self._nearest_by_index(vector, limit)
            if len(found) >= min(limit, readable):
                return found
        query = generations.on_vectors(_SQL["nearest_exact"], self.serving.generation_id)
        rows = self._conn.execute(query, {"vector": vector, "limit": limit})
        return [(int(row[0]), float(row[1])) for row in rows]

    def _nearest_by_index(self, vector: NDArray[np.float32], limit: int) -> list[tuple[int, float]]:
        assert self.serving is not None
        query = generations.on_vectors(_SQL["nearest_by_index"], self.serving.generation_id)
        values = {"vector": vector, "limit": limit, "fetch": max(limit, _LEAST_FETCH)}
        self._conn.execute(_SQL["tune_nearest"], vectorindex.tuning())
        rows = self._conn.execute(query, values).fetchall()
        self._conn.execute(_SQL["untune_nearest"])
        return [(int(row[0]), float(row[1])) for row in rows]

    def _has_vector_index(self) -> bool:
        assert self.serving is not None
        name = generations.vectors_name(self.serving.generation_id)
        row = self._conn.execute(_SQL["has_vector_index"], {"name": name}).fetchone()
        return row is not None and bool(row[0])

    def nearest_among(
        self, vector: NDArray[np.float32], among: Sequence[int], limit: int
    ) -> list[tuple[int, float]]:
        """Return the same as `nearest`, of these chunks only."""
        if self.serving is None:
            return []
        query = generations.on_vectors(_SQL["nearest_among"], self.serving.generation_id)
        rows = self._conn.execute(query, {"vector": vector, "limit": limit, "among": list(among)})
        return [(int(row[0]), float(row[1])) for row in rows]

    def matching(
        self,
        phrases: Sequence[str],
        without: Sequence[str],
        days: tuple[date | None, date | None] = (None, None),
    ) -> list[int]:
        """Return the readable chunks that hold every phrase and none of the words, in the notes' order.

        `days`, first and last, narrow by the date a note gives itself, else by its file's last change.
        """
        if self.serving is None:
            return []
        values = {
            "generation_id": self.serving.generation_id,
            "phrases": list(phrases),
            "without": list(without),
            "since": days[0],
            "until": days[1],
        }
        return [int(row[0]) for row in self._conn.execute(_SQL["matching"], values)]

    def vectors(self, chunk_ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """Return the vectors of these chunks, as far as they may be read."""
        if self.serving is None:
            return {}
        query = generations.on_vectors(_SQL["chunk_vectors"], self.serving.generation_id)
        rows = self._conn.execute(query, {"chunk_ids": list(chunk_ids)})
        return {int(row[0]): row[1].to_numpy().astype(np.float32) for row in rows}

    def token_vectors(self, chunk_ids: Sequence[int]) -> dict[int, bytes]:
        """Return the packed token vectors of these chunks, as far as they have some and may be read."""
        return tokenvectors.stored(self._conn, FORM, chunk_ids)

    def term_ids(self, words: Sequence[str]) -> dict[str, int]:
        """Return the ids of those words that any note holds; what may be read of them the postings tell."""
        return dict(self._conn.execute(_SQL["term_ids"], {"words": list(words)}).fetchall())

    def postings(self, term_ids: Sequence[int]) -> Postings:
        """Return where the terms stand among the readable chunks."""
        if self.serving is None or not term_ids:
            return Postings.of([])
        values = {"term_ids": list(term_ids), "generation_id": self.serving.generation_id}
        with array_cursor(self._conn) as cursor:
            if self.sizes()[0] <= _FEW_CHUNKS:
                (found,) = cursor.execute(_SQL["readable_chunks"], values).fetchone() or (None,)
                values["chunk_ids"] = [] if found is None else found.tolist()
                return Postings.of(cursor.execute(_SQL["postings_of_chunks"], values).fetchall())
            sole = self._conn.execute(_SQL["sole_generation"]).fetchone()
            query = _SQL["postings" if sole and sole[0] else "postings_of_generation"]
            return Postings.of(cursor.execute(query, values).fetchall())

    def notes_of(self, chunk_ids: Sequence[int]) -> dict[int, int]:
        """Return the note id of each of these chunks that may be read."""
        rows = self._conn.execute(_SQL["chunk_notes"], {"chunk_ids": list(chunk_ids)})
        return {int(row[0]): int(row[1]) for row in rows}

    def neighbours(self, chunk_ids: Sequence[int]) -> dict[int, list[int]]:
        """Return, for each of these chunks, the readable ones before and after it in the same section."""
        found: dict[int, list[int]] = {}
        for chunk_id, beside in self._conn.execute(_SQL["neighbours"], {"chunk_ids": list(chunk_ids)}):
            found.setdefault(int(chunk_id), []).append(int(beside))
        return found

    def any_chunks(self, limit: int) -> list[int]:
        """Return up to `limit` readable chunks in the notes' own order, to fill up a short result."""
        if self.serving is None:
            return []
        values = {"generation_id": self.serving.generation_id, "limit": limit}
        return [int(row[0]) for row in self._conn.execute(_SQL["all_chunks"], values)]

    def passages(self, chunk_ids: Sequence[int]) -> list[Passage]:
        """Return the text of these chunks in the order asked for; what may not be read is left out."""
        with self._conn.cursor(row_factory=class_row(Passage)) as cursor:
            rows = cursor.execute(_SQL["passages"], {"chunk_ids": list(chunk_ids)}).fetchall()
        by_id = {row.chunk_id: row for row in rows}
        return [by_id[chunk_id] for chunk_id in chunk_ids if chunk_id in by_id]

    def notes(self) -> list[tuple[int, str, bytes]]:
        """Return (note id, share, path) of every readable note, sorted."""
        return [(row[0], row[1], bytes(row[2])) for row in self._conn.execute(_SQL["notes"])]

    def count_notes(self) -> int:
        """Return how many notes may be read."""
        row = self._conn.execute(_SQL["count_notes"]).fetchone()
        assert row is not None
        return int(row[0])

    def folders(self) -> list[bytes]:
        """Return the raw folders in which a readable note may stand, without those only passed on the way."""
        return [bytes(row[0]) for row in self._conn.execute(_SQL["folders"])]

    def notes_at(self, paths: Sequence[bytes]) -> list[tuple[int, str, bytes]]:
        """Return (note id, share, path) of the readable notes at exactly these raw paths, sorted."""
        rows = self._conn.execute(_SQL["notes_at"], {"paths": list(paths)})
        return [(row[0], row[1], bytes(row[2])) for row in rows]

    def head(self, note_id: int) -> NoteHead | None:
        """Return what stands above a note's text; None when it may not be read or is gone."""
        with self._conn.cursor(row_factory=class_row(NoteHead)) as cursor:
            return cursor.execute(_SQL["note_head"], {"note_id": note_id}).fetchone()

    def pieces(self, note_id: int) -> list[NotePiece]:
        """Return the chunks of one note in order; empty when it may not be read or is gone."""
        if self.serving is None:
            return []
        values = {"note_id": note_id, "generation_id": self.serving.generation_id}
        with self._conn.cursor(row_factory=class_row(NotePiece)) as cursor:
            return cursor.execute(_SQL["note_text"], values).fetchall()

    def indexed(self, note_ids: Sequence[int]) -> list[latecheck.Indexed]:
        """Return what a late check compares of these notes, as far as they may be read."""
        return latecheck.indexed(self._conn, note_ids)

    def policy_keys(self, note_ids: Sequence[int]) -> dict[int, frozenset[bytes]]:
        """Return the keys of all lists that guard each of these notes, as far as they may be read."""
        return latecheck.policy_keys(self._conn, note_ids)

    def shares(self) -> list[str]:
        """Return the shares in which this reading holds a note."""
        return [row[0] for row in self._conn.execute(_SQL["shares"])]

    def too_old(self) -> bool:
        """Tell whether no share has permissions young enough to count."""
        row = self._conn.execute(_SQL["too_old"]).fetchone()
        return bool(row and row[0])

    def as_of(self) -> datetime | None:
        """Return the start of the oldest last good poll among the shares read.

        Where a scope left nothing it is that of all that may be read: a share that the asker cannot see must
        not show by its age.
        """
        if self._whole is not None:
            return self._whole
        row = self._conn.execute(_SQL["as_of"]).fetchone()
        return None if row is None else row[0]

    def _find_serving(self) -> Serving | None:
        row = self._conn.execute(_SQL["serving"]).fetchone()
        return None if row is None else Serving(*row)


def last_poll(conn: Connection[Any]) -> datetime | None:
    """Return the start of the oldest last good poll of all shares; `conn` is outside any reading."""
    row = conn.execute(_SQL["as_of"]).fetchone()
    return None if row is None else row[0]


@contextmanager
def reading(conn: Connection[Any], token: Token | None, scope: Scope | None = None) -> Iterator[Reading]:
    """Open the one transaction in which a question is answered.

    `conn` is the reader role's. Decision, both legs, neighbours and text come from one snapshot. Raises
    AskerUnknown for no token; an empty one is refused by the database too.
    """
    held = require_token(token)
    conn.isolation_level = IsolationLevel.REPEATABLE_READ
    conn.read_only = True
    try:
        with conn.transaction():
            conn.execute(_SQL["begin"], _token_columns(held))
            found = Reading(conn)
            if scope is not None:
                found.narrow(scope)
            yield found
    finally:
        if not conn.closed:
            conn.isolation_level = None
            conn.read_only = None


def _token_columns(token: Token) -> dict[str, list[Sid] | None]:
    listed = None if token.listed is None else sorted(token.listed)
    return {"allow": sorted(token.allow), "deny": sorted(token.deny), "listed": listed}
