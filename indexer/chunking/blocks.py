"""A note as CommonMark sees it: a tree of blocks with the lines they stand on.

Only block rules run. What is inside a block (emphasis, links) does not move its borders, and inline parsing
of hostile text has no useful bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.blockquote import blockquote as quote_starts
from markdown_it.rules_block.table import table as table_starts
from markdown_it.token import Token

_PARSED_DEPTH = 48  # block levels (a list takes two); deeper lines are taken as they are
_QUOTE_WINDOW = 8  # lines
_IN_QUOTE = "inside a quote"
_KEPT_DEPTH = 12  # block levels that splitting can make use of


@dataclass(slots=True)
class Block:
    """A block from the 0-based line `first` up to `end`, exclusive.

    `level` is 1-6 for a section heading, else 0; `content` its text with inline marks.
    """

    kind: str
    first: int
    end: int
    depth: int = 0
    level: int = 0
    content: str = ""
    children: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The top-level blocks of a text and the link references that its headings may use."""

    blocks: list[Block]
    references: dict[str, Any]


def parse_blocks(text: str) -> Parsed:
    """Return the blocks of `text`, whose line ends must all be LF."""
    env: dict[str, Any] = {}
    markdown = _parser()
    tokens: list[Token] = []
    if text:
        state = _LeanState(text, markdown, env, tokens)
        markdown.block.tokenize(state, state.line, state.lineMax)
    return Parsed(_tree(tokens), env.get("references", {}))


class _LeanState(StateBlock):
    """Parser state that keeps only the tokens a block tree needs: their full list takes gigabytes for a
    few megabytes of list markers."""

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = Token(ttype, tag, nesting, block=True)
        if nesting < 0:
            self.level -= 1
        token.level = self.level
        if nesting > 0:
            self.level += 1
        heading_text = ttype == "inline" and token.level == 1 and bool(self.tokens)
        if heading_text:
            heading_text = self.tokens[-1].type == "heading_open" and self.tokens[-1].level == 0
        if heading_text or (nesting >= 0 and ttype != "inline" and token.level <= _KEPT_DEPTH):
            self.tokens.append(token)
        return token


@cache
def _parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"maxNesting": 10 * _PARSED_DEPTH})
    ruler = markdown.block.ruler
    ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    ruler.at("blockquote", _quote, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    ruler.before("table", "too_deep", _too_deep, {"alt": []})
    ruler.enable(["table", "blockquote", "too_deep"])
    return markdown


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Take one line as it is. The library's own guard would skip the rest of the note, headings and all."""
    if state.level < _PARSED_DEPTH:
        return False
    state.line = start + 1
    return True


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The library's table rule with one token per row instead of three per cell."""
    if not table_starts(state, start, end, True):
        return False
    if silent:
        return True
    opened = state.push("table_open", "table", 1)
    stops = state.md.block.ruler.getRules("blockquote")
    line = start + 2
    state.push("tr_open", "tr", 0).map = [start, line]
    while line < end and not _table_ends(state, line):
        if any(rule(state, line, end, True) for rule in stops):
            break
        state.push("tr_open", "tr", 0).map = [line, line + 1]
        line += 1
    state.push("table_close", "table", -1)
    opened.map = [start, line]
    state.line = line
    return True


def _table_ends(state: StateBlock, line: int) -> bool:
    return state.sCount[line] < state.blkIndent or state.isEmpty(line) or state.is_code_block(line)


def _quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The library's quote rule, in linear time.

    It looks for lazy lines down to the end of the text before it learns where the quote ends, once per
    quote: here it sees a window, doubled while the quote fills it. A quote in a quote is not looked into,
    since no section heading can come of it.
    """
    if silent or not quote_starts(state, start, end, True):
        return quote_starts(state, start, end, True)
    if state.env.get(_IN_QUOTE):
        return _inner_quote(state, start, end)
    state.env[_IN_QUOTE] = True
    kept, window = len(state.tokens), _QUOTE_WINDOW
    while quote_starts(state, start, min(end, start + window), False):
        if state.line < start + window or start + window >= end:
            break
        del state.tokens[kept:]
        window *= 2
    state.env[_IN_QUOTE] = False
    return True


def _inner_quote(state: StateBlock, start: int, end: int) -> bool:
    """Take the line, and the lazy lines (marked by a negative indent) that go on with its paragraph.

    Whether it ends in a paragraph is told from the line alone.
    """
    line = start + 1
    if line < end and state.sCount[line] < 0:
        shown = state.src[state.bMarks[start] : state.eMarks[start]].lstrip("> \t")
        if _ends_in_paragraph(parse_blocks(shown).blocks):
            while line < end and state.sCount[line] < 0:
                line += 1
    state.line = line
    return True


def _ends_in_paragraph(blocks: list[Block]) -> bool:
    while blocks and blocks[-1].children:
        blocks = blocks[-1].children
    return bool(blocks) and blocks[-1].kind == "paragraph"


def _tree(tokens: list[Token]) -> list[Block]:
    """Return the top-level blocks; each block takes the following tokens of a deeper level."""
    top: list[Block] = []
    ancestors: list[Block] = []
    for token in tokens:
        if token.type == "inline":
            ancestors[-1].content = token.content
            continue
        if token.map is None:
            continue
        block = Block(token.type.removesuffix("_open"), token.map[0], token.map[1], token.level)
        while ancestors and ancestors[-1].depth >= block.depth:
            ancestors.pop()
        (ancestors[-1].children if ancestors else top).append(block)
        if block.kind == "heading" and not ancestors:
            block.level = int(token.tag[1])
        ancestors.append(block)
    return top
