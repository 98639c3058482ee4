"""A small house: two shares, three people, who may read what written down by hand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.database import _created as created

from acl.directory import make_directory
from acl.token import build_token
from answerer.engine import Engine
from answerer.identity import Asker
from db.pool import OWNER, READER, Database
from db.server import ServerHandle
from indexer.sync import Indexer
from notewarden.embedding.factory import make_embedder
from notewarden.settings import Settings, load_settings

MEMBER_UID = 4242
SYSTEM_UID = 990

PEOPLE = f"""
[users.anna]
groups = ["hr"]
sids = ["S-1-22-1-{MEMBER_UID}", "S-1-22-1-0"]
[users.ben]
groups = ["it"]
[users.cleo]
groups = []
sids = ["S-1-22-1-{SYSTEM_UID}"]
[groups.hr]
[groups.it]
"""

RULES = {
    "notes": {"handbook": ["everyone"], "hr": ["hr"], "hr-old": ["it"], "it": ["it"], "böse": ["everyone"]},
    "lab": {"": ["it"], "open": ["everyone"]},
}

VPN = "# VPN\n\nRenew the certificate with certtool every 397 days. Restart the gateway afterwards.\n"
NOTES: dict[tuple[str, bytes], bytes] = {
    ("notes", b"handbook/leave.md"): (
        b"---\ntitle: Leave\ndate: 2026-02-01\n---\n# Leave\n\nEverybody has thirty days of leave a year.\n"
        b"Ask your lead early.\n\n## Illness\n\nBring a doctor's note from the fourth day.\n"
    ),
    ("notes", b"handbook/twin.md"): b"# Canteen\n\nLunch is served from noon until two in the canteen.\n",
    ("notes", b"hr/twin.md"): b"# Canteen\n\nLunch is  served from noon until two in the CANTEEN.\n",
    (
        "notes",
        b"hr/salaries.md",
    ): b"# Salaries\n\nBand G6 ends at 91,500 EUR. The zebrafish bonus is secret.\n",
    ("notes", b"hr-old/archive.md"): b"# Archive\n\nOld salaries were kept in the basement.\n",
    ("notes", b"it/vpn.md"): VPN.encode(),
    ("notes", b"it/many.md"): b"".join(
        b"## Gateway %d\n\n%s\n\n" % (n, b"The gateway number %d stands in hall %d. " % (n, n) * 12)
        for n in range(1, 7)
    ),
    ("notes", "böse/überblick.md".encode()): "# Überblick\n\nDer Anhang liegt im Schrank.\n".encode(),
    ("notes", b"handbook/evil.md"): (
        b"# Evil \x1b]0;owned\x07 \xe2\x80\xaegnp\n\n"
        b"The walrus password is here\x1b[31m red [7]. More \xc2\x9b text.\n"
    ),
    ("notes", b"handbook/latin\xe9.md"): b"# Latin\n\nA name that is no UTF-8: quokka.\n",
    ("lab", b"it/vpn.md"): b"# Lab VPN\n\nThe laboratory has a tunnel of its own, called burrow.\n",
    ("lab", b"open/hours.md"): b"# Hours\n\nThe laboratory opens at seven.\n",
}


def readable_by(person: str) -> set[tuple[str, bytes]]:
    """What the rules give a person, found by the first folder, as no rule here is nested deeper."""
    groups = {"anna": {"hr", "everyone"}, "ben": {"it", "everyone"}, "cleo": {"everyone"}}[person]
    return {(share, path) for share, path in NOTES if groups & set(_readers(share, path))}


def _readers(share: str, path: bytes) -> list[str]:
    rules = RULES[share]
    return rules.get(path.split(b"/")[0].decode(), rules.get("", []))


QUESTIONS = [
    "How many days of leave do I have?",
    "How do I renew the VPN certificate?",
    "Where does band G6 end?",
    "What is the zebrafish bonus?",
    "What is the burrow?",
    "When is lunch served in the canteen?",
    "Wo liegt der Anhang?",
    "Where does gateway 3 stand?",
    "walrus password",
    "salaries",
]


@dataclass
class House:
    """An indexed house and everything needed to ask in it."""

    folder: Path
    settings: Settings
    database: Database
    engine: Engine

    def asker(self, person: str) -> Asker:
        directory = make_directory(self.settings)
        account = directory.user(person)
        return Asker(account.sid, account, build_token(directory, account), privileged=False)

    def sync(self) -> None:
        Indexer(self.settings, self.database).sync()


def write_house(folder: Path, more: str = "", provider: str = "hash") -> Settings:
    """Write shares, people and configuration below `folder`; returns the loaded settings."""
    for (share, path), raw in NOTES.items():
        file = folder / share / os.fsdecode(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)
    (folder / "people.toml").write_text(PEOPLE, "utf-8")
    shares = "".join(_share(folder, name, rules) for name, rules in RULES.items())
    text = (
        f'state_dir = "{folder}/state"\n[log]\nlevel = "error"\n[directory]\nsource = "file"\n'
        f'file = "{folder}/people.toml"\n[embedding]\nprovider = "{provider}"\n{shares}{more}'
    )
    config = folder / "config.toml"
    config.write_text(text, "utf-8")
    for file in (config, folder / "people.toml"):
        file.chmod(0o600)
    return load_settings(config)


def _share(folder: Path, name: str, rules: dict[str, list[str]]) -> str:
    text = f'[[share]]\nname = "{name}"\npath = "{folder}/{name}"\nlink = "https://nas.example/{name}/{{path}}"\n'
    text += '[share.acl]\nsource = "declared"\n'
    for rule, readers in rules.items():
        text += f'[[share.acl.rule]]\nfolder = "{rule}"\nreaders = {readers!r}\ndenied = []\n'.replace(
            "'", '"'
        )
    return text


@pytest.fixture
def build_house(tmp_path: Path, new_database: Callable[[], Database]) -> Callable[..., House]:
    """A function that writes, indexes and opens a house; `more` is added to its configuration."""

    def build(more: str = "", provider: str = "hash", name: str = "house") -> House:
        folder = tmp_path / name
        folder.mkdir(mode=0o700)
        return _open_house(write_house(folder, more, provider), new_database())

    return build


def _open_house(settings: Settings, database: Database) -> House:
    embedder = make_embedder(settings.embedding)
    engine = Engine(settings, database, make_directory(settings), embedder)
    house = House(settings.file.parent, settings, database, engine)
    house.sync()
    return house


@pytest.fixture(scope="session")
def house(
    database_server: ServerHandle, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """A house that all tests share and none changes, with the hash embedder: all but relevance by meaning."""
    with created(database_server, template_database) as name:
        dsns = database_server.dsn(OWNER, name), database_server.dsn(READER, name)
        with Database.from_dsns(*dsns) as database:
            yield _open_house(write_house(tmp_path_factory.mktemp("house")), database)


@pytest.fixture(scope="session")
def standing_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The configuration of a house with its own embedded server, which runs while the tests do.

    Its socket's folder is open to every account, as that of the service is.
    """
    folder = tmp_path_factory.mktemp("standing", numbered=True)
    door = Path(f"/tmp/nw-test-{os.getpid()}")
    door.mkdir(mode=0o755)
    settings = write_house(folder)
    with Database.open(settings) as database:
        Indexer(settings, database).sync()
        config = folder / "config.toml"
        served = folder / "served.toml"
        served.write_text(f'{config.read_text("utf-8")}[answerer]\nsocket = "{door}/ask.sock"\n', "utf-8")
        served.chmod(0o600)
        yield config
    shutil.rmtree(door)
