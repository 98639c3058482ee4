"""A share whose own modes decide, its people, and all that shows notes: what permission tests act on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.posix_acls import GROUP, GROUP_OBJ, MASK, NO_ID, OTHER, OWNER, USER, acl_bytes

from acl.directory import Directory, make_directory
from acl.posix import XATTR
from acl.token import TokenCache
from answerer.engine import Engine, Reply
from answerer.identity import Asker
from answerer.latecheck import Watch
from db.pool import Database
from indexer.files import Files
from indexer.latecheck import LateCheck
from indexer.report import ShareReport
from indexer.sync import Indexer, Options
from notewarden.embedding.hashed import HashEmbedder
from notewarden.errors import EmbeddingFailed, NotInNotes
from notewarden.settings import Settings

ALICE, BOB, CAROL, TEAM, HR = 61001, 61002, 61003, 62001, 62002

PEOPLE = f"""
[users.alice]
groups = ["team", "hr"]
sids = ["S-1-22-1-{ALICE}"]
[users.bob]
groups = ["team"]
sids = ["S-1-22-1-{BOB}"]
[users.carol]
groups = []
sids = ["S-1-22-1-{CAROL}", "S-1-22-2-62999"]
[groups.team]
sids = ["S-1-22-2-{TEAM}"]
[groups.hr]
sids = ["S-1-22-2-{HR}"]
"""


class BrittleEmbedder(HashEmbedder):
    """The hash model; while `broken` it makes no vector. `made` counts the texts it was given."""

    broken = False
    made = 0

    def embed_documents(self, texts: Sequence[str]) -> Any:
        if self.broken:
            raise EmbeddingFailed("The model is away.")
        self.made += len(texts)
        return super().embed_documents(texts)


@dataclass(frozen=True)
class Seen:
    """What one person got out of the answerer: the texts of all doors together, and what was said besides."""

    text: str
    paths: frozenset[str]
    notices: tuple[str, ...]
    freshness: dict[str, str]


class PermissionWorld:
    """One share "notes". `late_check` and the share's rights are configured; a change is a new process."""

    def __init__(self, folder: Path, database: Database, make: Callable[..., Settings]) -> None:
        self.folder = folder
        self.root = folder / "notes"
        self.root.mkdir(exist_ok=True)
        self.root.chmod(0o755)
        self.people_file = folder / "people.toml"
        self.people(PEOPLE)
        self.database = database
        self.embedder = BrittleEmbedder(16)
        self.files: Files = Files()
        self.patch: pytest.MonkeyPatch  # for what only a test's own faults need
        self._make = make
        self.configure()

    def configure(
        self, late_check: str = "require", acl: dict[str, Any] | None = None, **tables: Any
    ) -> None:
        """Load the configuration anew, as a new process does."""
        share = {"name": "notes", "path": self.root, "acl": acl or {"source": "posix"}}
        share |= tables.pop("share_keys", {})
        answerer = {"late_check": late_check, **tables.pop("answerer", {})}
        usual = {
            "share": [share],
            "directory": {"source": "file", "file": self.people_file, "token_ttl": "60s"},
        }
        self.settings = self._make(**{**usual, "answerer": answerer, **tables})
        self.restart()

    def restart(self, watch: Watch | None = None) -> None:
        """A new process on both sides; `watch` stands in for the late check."""
        self.directory: Directory = make_directory(self.settings)
        self.indexer = Indexer(self.settings, self.database, directory=self.directory, embedder=self.embedder)
        self.engine = Engine(self.settings, self.database, self.directory, self.embedder)
        if watch is not None:
            self.engine._watch = watch
        elif self.settings.answerer.late_check == "off":
            assert self.engine._watch is None
        self._tokens = TokenCache(self.directory, self.settings.directory.token_ttl)

    def with_files(self, files: Files) -> None:
        """Let the late check and the next polls see the share through `files`."""
        self.files = files
        self.restart(LateCheck(self.settings, self.directory, files))

    def people(self, text: str) -> None:
        self.people_file.write_text(text)
        self.people_file.chmod(0o600)

    def write(self, path: str, text: str = "", mode: int = 0o644) -> Path:
        """Write a note with its folders (0755); without text it says its own path."""
        file = self.root / path
        for folder in reversed([*file.parents][: len(Path(path).parts) - 1]):
            if not folder.exists():
                folder.mkdir()
                folder.chmod(0o755)
        file.write_text(text or f"# About {path}\n\nThis note tells of {path} and of nothing else.\n")
        file.chmod(mode)
        return file

    def sync(self, **options: Any) -> ShareReport:
        return self.indexer.sync(Options(files=self.files, **options)).shares[0]

    def asker(self, name: str) -> Asker:
        account = self.directory.user(name)
        return Asker(account.sid, account, self._tokens.token(account, fresh=True), privileged=False)

    def see(self, name: str, words: str, path: str | None = None) -> Seen:
        """Ask, search and, with a path, show, as one person; what all of them gave."""
        asker = self.asker(name)
        replies: list[Reply[Any]] = [
            self.engine.ask(asker, words),
            self.engine.search(asker, words, k=1000),
            self.engine.search(asker, "anything at all", k=1000),
        ]
        asked, *searched = (reply.result for reply in replies)
        texts = [asked.answer, *(one.quote for one in asked.citations)]
        paths = {one.path for one in asked.citations}
        for result in searched:
            texts += [row.text for row in result.results]
            paths |= {row.path for row in result.results}
        if path is not None:
            try:
                shown = self.engine.show(asker, path)
                texts.append(shown.result.text)
                paths.add(shown.result.path)
            except NotInNotes:
                pass
        notices = tuple(dict.fromkeys(notice for reply in replies for notice in reply.notices))
        freshness = {one.path: one.freshness for one in asked.citations}
        return Seen("\n".join(texts), frozenset(paths), notices, freshness)

    def queued(self) -> set[int]:
        rows = self.rows("select arguments from nw.request where kind = 'note' and ended_at is null")
        assert all(set(arguments) == {"note_id"} for (arguments,) in rows)
        return {arguments["note_id"] for (arguments,) in rows}

    def note_id(self, path: str) -> int:
        return int(self.rows("select note_id from nw.note where path = %s", os.fsencode(path))[0][0])

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.database.owner() as conn:
            return conn.execute(query, values).fetchall()

    def run(self, query: str, *values: Any) -> None:
        with self.database.owner() as conn:
            conn.execute(query, values)


def set_acl(
    file: Path, mode: int, users: dict[int, int] | None = None, groups: dict[int, int] | None = None
) -> None:
    """Give a file a POSIX ACL over its mode, as setfacl would."""
    entries = [
        (OWNER, mode >> 6 & 7, NO_ID),
        *((USER, bits, uid) for uid, bits in sorted((users or {}).items())),
        (GROUP_OBJ, mode >> 3 & 7, NO_ID),
        *((GROUP, bits, gid) for gid, bits in sorted((groups or {}).items())),
        (MASK, mode >> 3 & 7, NO_ID),
        (OTHER, mode & 7, NO_ID),
    ]
    os.setxattr(file, XATTR, acl_bytes(entries))


@pytest.fixture
def permission_world(
    tmp_path: Path, database: Database, settings_factory: Callable[..., Settings]
) -> Iterator[PermissionWorld]:
    """A share, its index and its people."""
    yield PermissionWorld(tmp_path, database, settings_factory)
