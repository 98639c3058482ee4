"""The pins: complete, hashed, and free of any address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = {
    "requirements.lock": [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]],
    "requirements-dev.lock": [
        *PROJECT["project"]["dependencies"],
        *PROJECT["dependency-groups"]["build"],
        *PROJECT["dependency-groups"]["dev"],
    ],
}


def entries(lock: str) -> dict[str, list[str]]:
    """Return the lines of each pinned package, keyed by its normal name."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / lock).read_text(encoding="utf-8").splitlines():
        if pin := re.match(r"([a-z0-9.-]+)(?:\[[a-z,]+\])?==\S+", line):
            current = found.setdefault(pin.group(1), [])
        current.append(line)
    return found


def normal(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name
    return re.sub(r"[-_.]+", "-", name.group()).lower()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_pinned(lock: str) -> None:
    assert {normal(requirement) for requirement in LOCKS[lock]} <= set(entries(lock))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes_and_nothing_names_a_host(lock: str) -> None:
    for name, lines in entries(lock).items():
        hashes = [line for line in lines if "--hash=sha256:" in line]
        assert hashes, name
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert not re.search(r"://|^-|--(index|find|extra|trusted)|@ ", text, re.MULTILINE)


def test_tests_run_with_the_very_packages_that_are_shipped() -> None:
    shipped, tested = entries("requirements.lock"), entries("requirements-dev.lock")
    assert {name: lines[0] for name, lines in shipped.items()} == {name: tested[name][0] for name in shipped}
