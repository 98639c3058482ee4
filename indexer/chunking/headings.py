"""The text of a heading as a reader sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

LIMIT = 1_000  # characters: longer "headings" are runaway text, whose marks are not worth parsing


def heading_text(content: str, references: dict[str, Any]) -> str:
    """Return `content`, a heading without its `#`s or underline, with emphasis, links and tags gone.

    `references` are the note's link references, as the block parser collects them.
    """
    if len(content) > LIMIT:
        content = content[:LIMIT] + "…"
    tokens = _inline().parseInline(content, {"references": references})
    return " ".join("".join(_shown(tokens)).split())


@cache
def _inline() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("strikethrough")


def _shown(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.children:
            yield from _shown(token.children)
        elif token.type in ("text", "text_special", "code_inline", "image"):
            yield token.content
