"""Notes and their chunks. One note is one transaction: old chunks out, new ones in, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from psycopg import Connection

from db import generations
from db.audiences import AudienceStore
from db.chunkrows import ChunkStore, NewChunk, Place, Vector
from db.errors import DatabaseFault, our_errors
from db.queries import load

_SQL = load("notes")


@dataclass(frozen=True)
class Guard:
    """Who may read a note: the ids of its parents' lists and of its own; `own` is never empty."""

    parents: tuple[int, ...]
    own: tuple[int, ...]

    @property
    def acl_ids(self) -> tuple[int, ...]:
        """All lists that must pass, sorted."""
        return tuple(sorted({*self.parents, *self.own}))


TRUSTED, ABSENT, STALE = 1, 2, 4

MOST_PATH = 2_600
"""Bytes of the longest path that is kept: a row of a B-tree takes 2,704, and each path stands in one."""


class Known(NamedTuple):
    """What a poll compares of an indexed note; a tuple, since a poll makes one of each note of the share.

    `flags`: TRUSTED, its hint counts; ABSENT, a poll missed it; STALE, its rows are to be made anew.
    """

    path: bytes
    note_id: int
    audience_id: int
    hint: bytes
    content_hash: bytes
    flags: int

    @property
    def absent(self) -> bool:
        """Whether a poll missed it."""
        return bool(self.flags & ABSENT)

    @property
    def stale(self) -> bool:
        """Whether its rows were made for another path, or an admin wants them made anew."""
        return bool(self.flags & STALE)


@dataclass(frozen=True)
class Narrowed:
    """A note kept narrow after a rename: ids of the lists it keeps, and of the new folder's beside them."""

    old: tuple[int, ...]
    beside: tuple[int, ...]


@dataclass(frozen=True)
class FileState:
    """A file as it was when its text was read: hash of the bytes, size, modification time, listing hint."""

    content_hash: bytes
    size: int
    modified_at: datetime
    hint: bytes
    hint_trusted: bool


@dataclass(frozen=True)
class About:
    """What a note says of itself."""

    title: str
    encoding: str
    language: str = ""
    written_on: date | None = None
    status: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class NewNote:
    """A note to store. It cannot be made without saying who may read it. `note_id` None: a new one."""

    path: bytes
    guard: Guard
    state: FileState
    about: About
    chunks: tuple[NewChunk, ...]
    note_id: int | None = None

    @property
    def folder(self) -> bytes:
        """The raw path of the folder it stands in, b"" for the root."""
        return self.path.rpartition(b"/")[0]


class NoteStore:
    """Saves, verifies, hides and deletes the notes of one share."""

    def __init__(self, conn: Connection[Any], share_id: int, audiences: AudienceStore) -> None:
        self._conn = conn
        self._share_id = share_id
        self._audiences = audiences
        self._chunks = ChunkStore(conn)

    def known(self) -> dict[bytes, Known]:
        """Return every indexed note of the share by path."""
        with self._conn.cursor(binary=True) as cursor:
            rows = cursor.execute(_SQL["known"], {"share_id": self._share_id}).fetchall()
        # As Known._make does, without a Python call for each note of the share.
        return {note.path: note for note in map(partial(tuple.__new__, Known), rows)}

    def own_lists(self) -> dict[int, tuple[int, ...]]:
        """Return by note id the ids of each note's own lists, as last read together with the indexed text."""
        rows = self._conn.execute(_SQL["own_lists"], {"share_id": self._share_id})
        return {row[0]: tuple(row[1]) for row in rows}

    def unindexed(self, generation_id: int) -> set[int]:
        """Return the ids of notes that have no chunk in this generation."""
        values = {"share_id": self._share_id, "generation_id": generation_id}
        return {row[0] for row in self._conn.execute(_SQL["unindexed"], values)}

    def expect(self, notes: Iterable[NewNote]) -> None:
        """Learn at once what each of these notes would ask for by itself when it is saved.

        If one of them lets that fail, each does ask by itself. Raises DatabaseUnavailable.
        """
        try:
            with our_errors():
                self._chunks.learn([chunk for note in notes for chunk in note.chunks])
        except (DatabaseFault, UnicodeError):
            self._chunks.forget()

    def save(self, generation_id: int, note: NewNote) -> int:
        """Store a note whole in one transaction and return its id; its trouble, if any, is over.

        Raises DatabaseFault for a note that the database refuses, DatabaseUnavailable.
        """
        # What needs no answer is sent together with what follows.
        with our_errors(), self._conn.pipeline(), self._conn.transaction():
            audience_id = self._audiences.id_for(note.folder, note.guard.acl_ids)
            self._chunks.learn(note.chunks)
            note_id = note.note_id if note.note_id is not None else self._chunks.note_ids.take()
            self._put(note, note_id, audience_id, generation_id)
            self._chunks.add(Place(generation_id, note_id, audience_id), note.chunks)
        return note_id

    def verified(self, note_id: int, state: FileState, own_acl_ids: Sequence[int]) -> None:
        """Record that the indexed text is what stands in the file, and with which lists it was read."""
        values = _state_columns(state) | {"note_id": note_id, "own_acl_ids": sorted(own_acl_ids)}
        self._conn.execute(_SQL["verified"], values)

    def found(self, note_ids: Sequence[int]) -> None:
        """Record that notes once missed are there."""
        if note_ids:
            self._conn.execute(_SQL["found"], {"note_ids": list(note_ids)})

    def rename(self, note_id: int, path: bytes) -> None:
        """Let a note's rows serve under another path, to be made anew for it."""
        self._conn.execute(_SQL["rename"], {"note_id": note_id, "path": path})

    def relist(self, note_ids: Sequence[int], own_acl_ids: Sequence[int]) -> None:
        """Record other lists of notes whose text is known to be the indexed one."""
        self._conn.execute(_SQL["relist"], {"note_ids": list(note_ids), "own_acl_ids": sorted(own_acl_ids)})

    def outdate(self, note_ids: Sequence[int]) -> None:
        """Let the next poll make these notes' rows anew, whatever their hash says."""
        self._conn.execute(_SQL["outdate"], {"note_ids": list(note_ids)})

    def hide(self, note_ids: Sequence[int]) -> None:
        """Count one more poll that proved these notes gone; who may read them is the audience's matter."""
        self._conn.execute(_SQL["hide"], {"note_ids": list(note_ids)})

    def held(self) -> list[tuple[int, bytes, int]]:
        """Return (id, path, polls missing) of every note proved gone whose rows still stand."""
        rows = self._conn.execute(_SQL["held"], {"share_id": self._share_id})
        return [(row[0], bytes(row[1]), row[2]) for row in rows]

    def delete(self, note_ids: Sequence[int]) -> None:
        """Delete notes with their chunks, postings and vectors."""
        with self._conn.transaction():
            rows = self._conn.execute(_SQL["delete"], {"note_ids": list(note_ids)}).fetchall()
            self._audiences.resize({row[0] for row in rows})

    def vectors(self, generation_id: int, keys: Iterable[bytes]) -> dict[bytes, Vector]:
        """Return the vectors that already stand for exactly these embedded strings."""
        query = generations.on_vectors(_SQL["vectors_of"], generation_id)
        rows = self._conn.execute(query, {"generation_id": generation_id, "keys": list(keys)})
        return {bytes(key): vector.to_numpy().astype(np.float32) for key, vector in rows}

    def keep_narrow(self, note_id: int, kept: Narrowed) -> None:
        """Record that a note stays under a narrower declared rule than its new folder has."""
        values = {"note_id": note_id, "old": list(kept.old), "beside": list(kept.beside)}
        self._conn.execute(_SQL["keep_narrow"], values)

    def narrowed(self) -> dict[int, Narrowed]:
        """Return what each note keeps that a rename would have opened."""
        rows = self._conn.execute(_SQL["narrowed"], {"share_id": self._share_id})
        return {row[0]: Narrowed(tuple(row[1]), tuple(row[2])) for row in rows}

    def release_narrow(self, note_ids: Sequence[int]) -> None:
        """Let notes follow the rule of the folder they stand in."""
        self._conn.execute(_SQL["release_narrow"], {"note_ids": list(note_ids)})

    def _put(self, note: NewNote, note_id: int, audience_id: int, generation_id: int) -> None:
        values = _state_columns(note.state) | _about_columns(note.about)
        values |= {"share_id": self._share_id, "path": note.path, "audience_id": audience_id}
        values |= {"own_acl_ids": sorted(note.guard.own), "note_id": note_id}
        if note.note_id is None:
            self._conn.execute(_SQL["add"], values)
            return
        self._make_room(note_id, generation_id, note.state.content_hash, audience_id)
        self._conn.execute(_SQL["replace"], values)

    def _make_room(self, note_id: int, generation_id: int, content_hash: bytes, audience_id: int) -> None:
        """Drop the generation's old chunks; of other generations keep only rows of this very text."""
        values = {"note_id": note_id, "generation_id": generation_id, "content_hash": content_hash}
        row = self._conn.execute(_SQL["make_room"], values).fetchone()
        assert row is not None
        if row[1] and row[0] != audience_id:
            self._audiences.move([note_id], audience_id, [row[0]])

    def forget(self) -> None:
        """Drop what was learnt of ids, as after a rolled-back save: they may never have come to be."""
        self._chunks.forget()
        self._audiences.forget()


def _state_columns(state: FileState) -> dict[str, Any]:
    return vars(state).copy()


def _about_columns(about: About) -> dict[str, Any]:
    return vars(about) | {"tags": list(about.tags)}


@dataclass(frozen=True)
class Policy:
    """What guards one note, for `why`: ids of the share's and the audience's lists; `readers` for people."""

    note_id: int
    share: str
    path: bytes
    share_acl_ids: list[int]
    acl_ids: list[int]
    readers: list[str]
    hidden: bool


def policy(conn: Connection[Any], share: str, path: bytes) -> Policy | None:
    """Return what guards a note, None if no such note is indexed."""
    row = conn.execute(_SQL["policy"], {"share": share, "path": path}).fetchone()
    return None if row is None else Policy(row[0], row[1], bytes(row[2]), *row[3:])


def paths(conn: Connection[Any], shares: Sequence[str]) -> list[tuple[str, bytes]]:
    """Return (share, path) of every indexed note of these shares."""
    return [(row[0], bytes(row[1])) for row in conn.execute(_SQL["paths"], {"shares": list(shares)})]
