"""Our lean block parser finds the section headings that the whole CommonMark parser finds."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.markdown_notes import notes

from indexer.chunking.blocks import parse_blocks
from indexer.chunking.lines import with_line_feeds

_WHOLE = MarkdownIt("commonmark", {"maxNesting": 400}).enable("table")
# fmt: off
_MARKS = st.sampled_from([
    "# h", "#", "x", "===", "---", "> ", ">", ">> ", "- ", "1. ", "  ", "    ", "```", "~~~", "<!--", "-->",
    "<b>", "\t", "|a|b|", "|-|-|", "[r]: u", "***", "\n",
])
# fmt: on
_SCRIBBLES = st.lists(st.lists(_MARKS, max_size=4).map("".join), max_size=14).map("\n".join)


def _whole(text: str) -> list[tuple[int, list[int] | None]]:
    tokens = _WHOLE.parse(text)
    return [
        (int(token.tag[1]), token.map) for token in tokens if token.type == "heading_open" and not token.level
    ]


def _lean(text: str) -> list[tuple[int, list[int] | None]]:
    return [(block.level, [block.first, block.end]) for block in parse_blocks(text).blocks if block.level]


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(notes())
def test_headings_of_notes_are_those_of_the_whole_parser(text: str) -> None:
    text = with_line_feeds(text).replace("\0", "\ufffd")
    assert _lean(text) == _whole(text)


# A quote in a quote is not looked into, so where lazy lines end it may differ in scribbles of many of them.
@given(
    _SCRIBBLES.filter(
        lambda text: not any(line.count(">") - line.count("-->") > 1 for line in text.split("\n"))
    )
)
def test_headings_of_scribbles_are_those_of_the_whole_parser(text: str) -> None:
    assert _lean(text) == _whole(text)
