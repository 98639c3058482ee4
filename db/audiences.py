"""Audiences: the notes of one folder that the same people may read.

A changed folder ACL edits one row here; chunks, vectors and postings carry only the audience's id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from db import generations
from db.queries import load

_SQL = load("audiences")


@dataclass(frozen=True)
class Audience:
    """One row: its folder (raw bytes) and the sorted ids of its lists."""

    audience_id: int
    folder: bytes
    acl_ids: tuple[int, ...]


class AudienceStore:
    """Finds, makes, edits and empties the audiences of one share."""

    def __init__(self, conn: Connection[Any], share_id: int) -> None:
        self._conn = conn
        self._share_id = share_id
        self._ids: dict[tuple[bytes, tuple[int, ...]], int] = {}

    def all(self) -> dict[int, Audience]:
        """Return every audience of the share by id."""
        rows = self._conn.execute(_SQL["of_share"], {"share_id": self._share_id})
        return {row[0]: Audience(row[0], bytes(row[1]), tuple(row[2])) for row in rows}

    def notes(self, audience_id: int) -> int:
        """Return how many notes an audience has."""
        row = self._conn.execute(_SQL["notes"], {"audience_id": audience_id}).fetchone()
        assert row is not None
        return int(row[0])

    def id_for(self, folder: bytes, acl_ids: Iterable[int]) -> int:
        """Return the audience of `folder` guarded by exactly these lists, making it when it is new."""
        key = (folder, tuple(sorted(set(acl_ids))))
        if key not in self._ids:
            self._ids[key] = self._find_or_add(key)
        return self._ids[key]

    def edit(self, audience_id: int, acl_ids: Iterable[int]) -> None:
        """Give an audience other lists. Only right when every member was read and agrees."""
        self._ids.clear()
        self._conn.execute(_SQL["edit"], {"audience_id": audience_id, "acl_ids": sorted(set(acl_ids))})

    def move(self, note_ids: Sequence[int], audience_id: int, left: Iterable[int]) -> None:
        """Move notes with their chunks, postings and vectors; `left` are the audiences they stood in."""
        ids = {"note_ids": list(note_ids), "audience_id": audience_id}
        for name in ("move_notes", "move_chunks", "move_postings", "move_token_vectors"):
            self._conn.execute(_SQL[name], ids)
        for generation_id in generations.all_ids(self._conn):
            self._conn.execute(generations.on_vectors(_SQL["move_vectors"], generation_id), ids)
        self._conn.execute(_SQL["resize"], {"audience_ids": [audience_id, *left]})

    def resize(self, audience_ids: Iterable[int]) -> None:
        """Count the chunks of these audiences anew."""
        self._conn.execute(_SQL["resize"], {"audience_ids": sorted(set(audience_ids))})

    def forget(self) -> None:
        """Drop the ids learnt so far, as after a transaction that was rolled back."""
        self._ids.clear()

    def drop_empty(self) -> None:
        """Delete audiences without notes: a share or folder exists for askers only through its notes."""
        self._ids.clear()
        self._conn.execute(_SQL["drop_empty"], {"share_id": self._share_id})

    def _find_or_add(self, key: tuple[bytes, tuple[int, ...]]) -> int:
        values = {"share_id": self._share_id, "folder": key[0], "acl_ids": list(key[1])}
        row = self._conn.execute(_SQL["find"], values).fetchone()
        if row is None:
            row = self._conn.execute(_SQL["add"], values).fetchone()
        assert row is not None
        return int(row[0])
