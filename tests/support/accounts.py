"""Doing something as another account of this machine, in a child that gives up root's rights first."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def run_as(uid: int, gid: int, function: Callable[..., Any], *args: Any) -> Any:
    """Call `function` in a forked child as `uid`, without other groups; return or raise what it did."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os._exit(_child(writing, uid, gid, function, args))
    os.close(writing)
    with open(reading, "rb") as pipe:
        raw = pipe.read()
    os.waitpid(child, 0)
    assert raw, "the child ended without a word"
    good, value = pickle.loads(raw)
    if good:
        return value
    raise value


def _child(writing: int, uid: int, gid: int, function: Callable[..., Any], args: tuple[Any, ...]) -> int:
    try:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        result = (True, function(*args))
    except BaseException as error:
        result = (False, error)
    try:
        raw = pickle.dumps(result)
    except Exception:
        raw = pickle.dumps((False, RuntimeError(repr(result[1]))))
    with open(writing, "wb") as pipe:
        pipe.write(raw)
    return 0


def opened(paths: list[Path]) -> list[Path]:
    """Those of `paths` that this account can open or list: what a stranger must find empty."""
    return [path for path in paths if _opens(path)]


def _opens(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except PermissionError:
        return False
    except OSError:  # a socket cannot be opened by anybody, but it was found
        return True
    return True


@pytest.fixture
def as_root() -> None:
    """Skip a test that needs root, and say so; nothing else can become another account."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as other accounts of this machine")
