"""A house whose answers are written by a model: the fake one, on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.database import _created as created
from support.fake_claude import FakeClaude, fake_claude
from support.toml import to_toml

from acl.directory import make_directory
from acl.token import build_token
from answerer.engine import Engine, Thread
from answerer.identity import Asker
from answerer.results import Answer
from answerer.visit import Reply, Where
from db.pool import OWNER, READER, Database
from db.server import ServerHandle
from indexer.sync import Indexer
from notewarden.embedding.factory import make_embedder
from notewarden.settings import Settings, load_settings

PEOPLE: dict[str, Any] = {
    "users": {"anna": {"groups": ["hr"]}, "ben": {"groups": ["it"]}, "cleo": {"groups": []}},
    "groups": {"hr": {}, "it": {}},
}
RULES: dict[str, list[str]] = {"": ["everyone"], "hr": ["hr"], "it": ["it"]}


@dataclass
class ModelHouse:
    """An indexed house, the fake that answers in it, and everything needed to ask."""

    folder: Path
    fake: FakeClaude
    settings: Settings
    database: Database
    engine: Engine
    shown: list[str] = field(default_factory=list)

    def asker(self, person: str) -> Asker:
        directory = make_directory(self.settings)
        account = directory.user(person)
        return Asker(account.sid, account, build_token(directory, account), privileged=False)

    def ask(self, question: str, person: str = "anna", *, continued: bool = False, **more: Any) -> Answer:
        return self.reply(question, person, continued=continued, **more).result

    def reply(
        self,
        question: str,
        person: str = "anna",
        *,
        continued: bool = False,
        share: str | None = None,
        k: int = 8,
    ) -> Reply[Answer]:
        self.shown.clear()
        thread = Thread(continued, self.shown.append)
        return self.engine.ask(self.asker(person), question, Where(share), k, thread=thread)

    def audit(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return (action, subject, detail) of every row, oldest first."""
        with self.database.owner() as conn:
            rows = conn.execute("select action, subject, detail from nw.audit order by audit_id").fetchall()
        return [(row[0], row[1], row[2]) for row in rows]

    def usage(self) -> list[tuple[Any, ...]]:
        with self.database.owner() as conn:
            return conn.execute(
                "select asker, model, input_tokens, output_tokens, cost from nw.usage order by usage_id"
            ).fetchall()

    def fresh(self, **answer: Any) -> ModelHouse:
        """Return this house with nothing asked yet, and `answer` added to its section of the configuration."""  # noqa: E501
        self.fake.reset()
        with self.database.owner() as conn:
            conn.execute("truncate nw.audit, nw.usage, nw.conversation, nw.turn")
        section = type(self.settings.answer)(**{**self.settings.answer.model_dump(), **answer})
        settings = self.settings.model_copy(update={"answer": section})
        return open_house(self.folder, self.fake, settings, self.database)

    def sync(self) -> None:
        Indexer(self.settings, self.database).sync()

    def source(self, path: str, share: str = "notes") -> str:
        return (self.folder / share / path).read_bytes().decode("utf-8")


@dataclass(frozen=True)
class Site:
    """What a house is made of: notes by share and path, rules by share, which shares may leave."""

    notes: Mapping[str, Mapping[str, str | bytes]]
    rules: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)
    external: tuple[str, ...] = ("notes",)
    answer: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)


def write_site(folder: Path, site: Site, url: str) -> Settings:
    """Write shares, people and configuration below `folder`; returns the loaded settings."""
    for share, notes in site.notes.items():
        for path, text in notes.items():
            file = folder / share / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode() if isinstance(text, str) else text)
    (folder / "state").mkdir(mode=0o700, exist_ok=True)
    people = folder / "people.toml"
    people.write_text(to_toml(PEOPLE), "utf-8")
    shares = [
        {
            "name": share,
            "path": folder / share,
            "external": share in site.external,
            "acl": {
                "source": "declared",
                "rule": [
                    {"folder": name, "readers": readers}
                    for name, readers in site.rules.get(share, RULES).items()
                ],
            },
        }
        for share in site.notes
    ]
    config = folder / "config.toml"
    table = {
        "state_dir": folder / "state",
        "log": {"level": "error"},
        "directory": {"source": "file", "file": people},
        "embedding": {"provider": "hash"},
        "share": shares,
        "answer": {"provider": "anthropic", "base_url": url, "model": "claude-test", **site.answer},
        **site.tables,
    }
    config.write_text(to_toml(table), "utf-8")
    for file in (config, people):
        file.chmod(0o600)
    return load_settings(config)


def open_house(folder: Path, fake: FakeClaude, settings: Settings, database: Database) -> ModelHouse:
    engine = Engine(settings, database, make_directory(settings), make_embedder(settings.embedding))
    return ModelHouse(folder, fake, settings, database, engine)


NOTES = {
    "backup.md": "# Backup\n\nBackups are kept for 30 days.\n\nThey are tested every month.\n",
    "hr/pay.md": "# Pay\n\nThe zebrafish bonus is 4711 EUR.\n",
    "it/vpn.md": "# VPN\n\nRenew the certificate every 397 days.\n",
}


@contextmanager
def standing(
    server: ServerHandle, template: str, folders: pytest.TempPathFactory, site: Site
) -> Iterator[ModelHouse]:
    """Yield an indexed house that several tests may share."""
    folder = folders.mktemp("model-house")
    folder.chmod(0o700)
    with (
        created(server, template) as name,
        fake_claude() as fake,
        Database.from_dsns(server.dsn(OWNER, name), server.dsn(READER, name)) as database,
    ):
        house = open_house(folder, fake, write_site(folder, site, fake.url), database)
        house.sync()
        yield house


@pytest.fixture(scope="session")
def standing_model_house(
    database_server: ServerHandle, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ModelHouse]:
    """A house of three notes that many tests ask in; each begins with `fresh`."""
    with standing(database_server, template_database, tmp_path_factory, Site({"notes": NOTES})) as house:
        yield house


@pytest.fixture
def asked(standing_model_house: ModelHouse) -> Callable[..., ModelHouse]:
    """A function that gives the standing house anew, with keys of [answer]."""
    return standing_model_house.fresh


@pytest.fixture
def model_house(tmp_path: Path, new_database: Callable[[], Database]) -> Iterator[Callable[..., ModelHouse]]:
    """A function that writes, indexes and opens a house with a fake of its own."""
    with ExitStack() as stack:

        def build(notes: Mapping[str, Any], **more: Any) -> ModelHouse:
            fake = stack.enter_context(fake_claude())
            folder = tmp_path / f"house{len(list(tmp_path.iterdir()))}"
            folder.mkdir(mode=0o700)
            by_share = notes if isinstance(next(iter(notes.values())), Mapping) else {"notes": notes}
            settings = write_site(folder, Site(by_share, **more), fake.url)
            house = open_house(folder, fake, settings, stack.enter_context(new_database()))
            house.sync()
            return house

        yield build
