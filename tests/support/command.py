"""The installed command `notewarden`, run as an admin would, on a small share and a database of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from support.database import _created

from db.pool import OWNER, READER, Database
from db.server import ServerHandle

PROGRAM = Path(sys.executable).with_name("notewarden")

PEOPLE = f"""
[users.admin]
groups = []
sids = ["S-1-22-1-{os.geteuid()}"]
[users.alice]
groups = ["oncall"]
[users.bob]
groups = ["hr"]
[groups.hr]
[groups.it]
[groups.oncall]
groups = ["it"]
"""

RULES = [
    {"folder": "", "readers": ["everyone"], "denied": []},
    {"folder": "it", "readers": ["it"], "denied": []},
    {"folder": "hr", "readers": ["hr"], "denied": ["user:alice"]},
]


class Answer:
    """What a command gave back."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def sentence(self) -> str:
        """The one plain sentence on stderr: no traceback, no second line."""
        assert "Traceback" not in self.err
        (line,) = self.err.splitlines()
        return line


def run(*arguments: str, env: dict[str, str] | None = None, **options: Any) -> Answer:
    """Run the installed command."""
    done = subprocess.run(
        [*options.pop("before", []), PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **(env or {})},
        check=False,
        **options,
    )
    return Answer(done)


class Site:
    """A share "notes" with declared rules, its people, and the configuration that names them."""

    def __init__(self, folder: Path, urls: tuple[str, str], make: Callable[..., Any]) -> None:
        self.folder = folder
        self.urls = urls
        self._make = make
        self.notes = folder / "notes"
        self.people = folder / "people.toml"
        self.people.write_text(PEOPLE)
        self.people.chmod(0o600)
        self.configure()
        self.write("a.md")
        self.write("it/vpn.md")
        self.write("hr/pay.md")

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    def configure(self, **tables: Any) -> None:
        """Write the configuration anew; a table given replaces the usual one."""
        share = {"name": "notes", "path": self.notes, "acl": {"source": "declared", "rule": RULES}}
        usual = {
            "database": {"url": self.urls[0], "reader_url": self.urls[1]},
            "directory": {"source": "file", "file": self.people},
            "share": [share],
        }
        self.settings = self._make(self.folder, **{**usual, **tables})

    def write(self, path: str, text: str = "") -> Path:
        file = self.notes / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text or f"# About {path}\n\nThis note tells of {path} and of nothing else.\n")
        return file

    def run(self, *arguments: str, **options: Any) -> Answer:
        return run("--config", str(self.config), *arguments, **options)

    def open(self) -> Database:
        """The same database, in this process."""
        return Database.from_dsns(*self.urls)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.urls[0]) as conn:
            return conn.execute(query).fetchall()


def as_url(dsn: str) -> str:
    parts: dict[str, Any] = dict(conninfo_to_dict(dsn))
    return f"postgresql:///{parts.pop('dbname')}?{urlencode(parts)}"


@pytest.fixture
def site(
    tmp_path: Path,
    database_server: ServerHandle,
    template_database: str,
    settings_factory: Callable[..., Any],
) -> Iterator[Site]:
    """A site whose index is a fresh database on the run's server: no command starts one of its own."""
    make: Callable[..., Any] = lambda folder, **tables: settings_factory(**tables)  # noqa: E731
    with _created(database_server, template_database) as name:
        urls = as_url(database_server.dsn(OWNER, name)), as_url(database_server.dsn(READER, name))
        yield Site(tmp_path, urls, make)


def keys(table: dict[str, Any]) -> Sequence[str]:
    return list(table)
