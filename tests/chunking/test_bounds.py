"""Hostile notes cost work in proportion to their size: counted in calls, not in seconds."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from indexer.chunking import chunk
from indexer.chunking.blocks import parse_blocks

HOSTILE: dict[str, Callable[[int], str]] = {
    "stars": lambda n: "*" * n,
    "open brackets": lambda n: "[" * n,
    "open brackets over lines": lambda n: "[a\n" * n,
    "open links": lambda n: "[](" * n,
    "link references": lambda n: "[a]: b\n" * n,
    "empty list items": lambda n: "-\n" * n,
    "stairs of a list": lambda n: "".join(f"{'  ' * (i % 70)}- x\n" for i in range(n // 10)),
    "stairs of a quote": lambda n: "".join(f"{'>' * (i % 60)} x\n" for i in range(n // 10)),
    "quotes that end at once": lambda n: "> # h\nx\n" * (n // 4),
    "quoted fences that end at once": lambda n: "> ```\nx\n" * (n // 4),
    "quotes in lists": lambda n: "- > # h\nx\n" * (n // 4),
    "quotes in quotes": lambda n: "> > # h\n> x\n" * (n // 4),
    "lazy lines": lambda n: "> a\n" + "b\n" * n,
    "unclosed fence": lambda n: "```\n" + "# x\n" * n,
    "unclosed fences in a list": lambda n: "- ```\n" * n,
    "unclosed comment": lambda n: "<!--\n" + "# x\n" * n,
    "wide table": lambda n: "|a" * n + "|\n" + "|-" * n + "|\n" + "|x|\n" * 50,
    "tables that never start": lambda n: "a | b\n" * n,
    "headings": lambda n: "#\n" * n,
    "blank lines": lambda n: "- a\n" + "\n" * n + "b",
}


def _calls(work: Callable[[], object]) -> int:
    calls = 0

    def count(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # its callbacks would be counted
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return calls


@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_note_is_about_twice_the_work(name: str) -> None:
    small, large = (HOSTILE[name](n) for n in (1_500, 3_000))
    parse_blocks("warm\n")
    assert _calls(lambda: parse_blocks(large)) < 2.6 * _calls(lambda: parse_blocks(small)) + 2_000


@pytest.mark.parametrize("name", HOSTILE)
def test_cutting_a_hostile_note_is_linear_too(name: str) -> None:
    small, large = (HOSTILE[name](n).encode() for n in (1_500, 3_000))
    chunk(b"warm\n", b"x.md")
    assert _calls(lambda: chunk(large, b"x.md")) < 2.6 * _calls(lambda: chunk(small, b"x.md")) + 4_000


def test_a_note_that_must_give_too_many_chunks_is_refused_before_it_is_parsed() -> None:
    raw = b"- " * 200_000
    chunk(b"warm\n", b"x.md")

    def refused() -> None:
        with pytest.raises(Exception, match="max_chunks"):
            chunk(raw, b"x.md", max_chunks=10)

    assert _calls(refused) < 1_000
