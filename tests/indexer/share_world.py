"""A share, its index and its people: what the tests of the poll act on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from faulty_files import FaultyFiles

from acl.directories.file import FileDirectory
from acl.token import Token, build_token
from db import ledger
from db.pool import Database
from db.search import Passage, reading
from indexer.report import ShareReport, SyncReport
from indexer.sync import Indexer, Options
from notewarden.embedding.base import Vectors
from notewarden.embedding.hashed import HashEmbedder
from notewarden.errors import EmbeddingFailed
from notewarden.settings import Settings

ALICE, BOB, TEAM = 61001, 61002, 62001

PEOPLE = f"""
[users.owner]
groups = ["nobodies"]
sids = ["S-1-22-1-{os.geteuid()}"]

[users.alice]
groups = ["team", "hr"]
sids = ["S-1-22-1-{ALICE}"]

[users.bob]
groups = ["team"]
sids = ["S-1-22-1-{BOB}"]

[groups.team]
sids = ["S-1-22-2-{TEAM}"]

[groups.nobodies]
sids = ["S-1-22-2-62999"]
"""


class MoodyEmbedder(HashEmbedder):
    """The hash model, which remembers its texts and fails where a text holds a word of `poison`."""

    def __init__(self, dimension: int = 16) -> None:
        super().__init__(dimension)
        self.texts: list[str] = []
        self.poison: dict[str, bool] = {}  # word: whether the failure is for good

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        for word, permanent in self.poison.items():
            if any(word in text for text in texts):
                raise EmbeddingFailed("The model refused.", permanent=permanent)
        self.texts += texts
        return np.stack([self.embed_query(text) for text in texts])


class ShareWorld:
    """One share "notes" of notes written here, indexed as `notewarden sync` would."""

    def __init__(self, folder: Path, database: Database, make: Callable[..., Settings], **share: Any) -> None:
        self.folder = folder
        self.root = folder / "notes"
        self.root.mkdir(exist_ok=True)
        self.root.chmod(0o755)
        self.people = folder / "people.toml"
        self.people.write_text(PEOPLE)
        self.people.chmod(0o600)
        self.database = database
        self.embedder = MoodyEmbedder()
        self.files = FaultyFiles(self.root.resolve())
        self._make = make
        self.configure(**share)

    def configure(self, *, acl: dict[str, Any] | None = None, **share: Any) -> None:
        """Load the settings anew, as after an edit of the configuration and a restart."""
        rights = acl or {"source": "posix"}
        self.settings = self._make(
            share=[{"name": "notes", "path": self.root, **share, "acl": rights}],
            directory={"source": "file", "file": self.people},
        )
        self.directory = FileDirectory(self.people)
        self.restart()

    def restart(self) -> None:
        """A new process: nothing is remembered but what stands in the database."""
        self.indexer = Indexer(self.settings, self.database, directory=self.directory, embedder=self.embedder)

    def write(self, path: str, text: str = "", mode: int = 0o644) -> Path:
        """Write a note, with its folders; without text it says its own path."""
        file = self.root / path
        for folder in reversed([*file.parents][: len(Path(path).parts) - 1]):
            if not folder.exists():
                folder.mkdir()
                folder.chmod(0o755)
        file.write_text(text or f"# About {path}\n\nThis note tells of {path} and of nothing else.\n")
        file.chmod(mode)
        return file

    def sync_all(self, **options: Any) -> SyncReport:
        """Poll once; `moody.texts` then holds what this poll embedded."""
        self.embedder.texts.clear()
        self.files.opened.clear()
        return self.indexer.sync(Options(**{"files": self.files, **options}))

    def sync(self, **options: Any) -> ShareReport:
        """Poll once and return what was reported of the share."""
        return self.sync_all(**options).shares[0]

    def token(self, name: str) -> Token:
        return build_token(self.directory, self.directory.user(name))

    def readable(self, name: str) -> set[str]:
        """The paths that a person may read now."""
        with self.database.reader() as conn, reading(conn, self.token(name)) as session:
            return {os.fsdecode(path) for _, _, path in session.notes()}

    def passages(self, name: str) -> list[Passage]:
        """Every passage that a person may read now."""
        with self.database.reader() as conn, reading(conn, self.token(name)) as session:
            return session.passages(session.any_chunks(100_000))

    def text(self, name: str) -> str:
        """All text that a person may read now."""
        return "\n".join(one.content for one in self.passages(name))

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What stands in the database, seen by its owner."""
        with self.database.owner() as conn:
            return conn.execute(query, values).fetchall()

    def one(self, query: str, *values: Any) -> Any:
        return self.rows(query, *values)[0][0]

    def note(self, path: str) -> dict[str, Any]:
        """The row of a note."""
        names = ("note_id", "audience_id", "hidden", "missing", "stale", "own_acl_ids")
        row = self.rows(f"select {', '.join(names)} from nw.note where path = %s", os.fsencode(path))[0]
        return dict(zip(names, row, strict=True))

    def paths(self) -> set[str]:
        """The paths of all indexed notes, hidden ones too."""
        return {os.fsdecode(bytes(path)) for (path,) in self.rows("select path from nw.note")}

    def trouble(self) -> dict[str, ledger.Trouble]:
        share_id = self.one("select share_id from nw.share where name = 'notes'")
        with self.database.owner() as conn:
            found = ledger.of_share(conn, share_id)
        return {os.fsdecode(path): one for path, one in found.items()}

    def whole(self) -> None:
        """Assert that nothing is half, twice or left over, in the rows of the serving generation."""
        serving = self.one("select generation_id from nw.generation where state = 'serving'")
        assert (
            self.rows(
                "select note_id from nw.note_chunk group by generation_id, note_id"
                " having count(*) <> max(seq) + 1 or min(seq) <> 0"
            )
            == []
        )
        assert (
            self.rows(
                "select from nw.note n join nw.note_chunk c using (note_id)"
                " where c.audience_id <> n.audience_id"
            )
            == []
        )
        assert (
            self.rows(
                "select from nw.posting p left join nw.note_chunk c using (chunk_id)"
                " where c.chunk_id is null or c.audience_id <> p.audience_id"
            )
            == []
        )
        assert (
            self.rows(
                f"select from nw.note_chunk c full join nw.vectors_{serving} v using (chunk_id)"
                " where c.chunk_id is null or (v.chunk_id is null and c.generation_id = %s)"
                " or v.audience_id <> c.audience_id",
                serving,
            )
            == []
        )
        assert (
            self.rows(
                "select n.note_id from nw.note n where n.size > 0 and not exists"
                " (select from nw.note_chunk c where c.note_id = n.note_id"
                " and c.generation_id = %s)",
                serving,
            )
            == []
        )
        assert (
            self.rows(
                "select from nw.token_vectors t join nw.note_chunk c using (chunk_id)"
                " where c.audience_id <> t.audience_id"
            )
            == []
        )
        counted = (
            "select audience_id, count(*)::int, sum(length)::bigint from nw.note_chunk"
            " where generation_id = %s group by 1 order by 1"
        )
        stored = (
            "select audience_id, n_chunks, sum_length from nw.audience_size"
            " where generation_id = %s and n_chunks <> 0 order by 1"
        )
        assert self.rows(counted, serving) == self.rows(stored, serving)
        assert (
            self.rows(
                "select from nw.audience a where not exists"
                " (select from nw.note n where n.audience_id = a.audience_id)"
            )
            == []
        )
