"""Who may import whom: the contracts of pyproject.toml, and what really is loaded when things start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = {"notewarden", "acl", "db", "indexer", "answerer"}


def loaded_by(statement: str) -> set[str]:
    """Return the top-level names of all modules that `statement` loads in a fresh interpreter."""
    code = f"""import json, sys
before = set(sys.modules)
{statement}
print(json.dumps(sorted(set(sys.modules) - before)))"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def third_party(names: set[str]) -> set[str]:
    return (names & set(packages_distributions())) - OURS


def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_teams_command_loads_the_standard_library_and_typer_only() -> None:
    assert (ROOT / "answerer" / "ask.py").is_file()
    loaded = loaded_by("import answerer.ask")
    assert third_party(loaded) <= third_party(loaded_by("import typer")), "slower to start than typer alone"
    assert loaded & OURS == {"answerer"}


def test_the_pure_modules_of_acl_load_nothing_foreign() -> None:
    pure = "acl.sid, acl.model, acl.nt, acl.posix, acl.compile, acl.evaluate, acl.token, acl.why"
    loaded = loaded_by(f"import {pure}")
    assert third_party(loaded) == set()
    assert loaded & OURS <= {"acl", "notewarden"}


@pytest.mark.parametrize("module", ["notewarden.embedding", "notewarden.settings", "answerer.retrieval"])
def test_what_is_slow_to_load_waits_until_it_is_used(module: str) -> None:
    loaded = loaded_by(f"import {module}")
    assert not loaded & {"voyageai", "anthropic", "onnxruntime", "langchain_core", "smb"}
