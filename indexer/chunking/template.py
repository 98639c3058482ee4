"""The string a vector is made from: where the passage stands, then the passage."""

from __future__ import annotations

from indexer.chunking.lines import with_line_feeds
from indexer.chunking.measure import shorten

TEMPLATE_VERSION = "1"
PREFIX_TOKENS = 64


def prefix(path: str, title: str, heading: tuple[str, ...], tokens: int) -> str:
    """Return path, title and heading trail on one line of at most `tokens` tokens, shortened in the middle:
    the folder and the nearest heading say most."""
    trail = heading[1:] if heading[:1] == (title,) else heading
    return shorten(": ".join([path, " > ".join([title, *trail])]), tokens)


def embedded(before: str, header: str, text: str) -> str:
    """Return the string to embed: the prefix, the header row of the table that `text` goes on with, if
    any, and `text`. Line ends and outer white space make no difference, so that vectors are kept."""
    return "\n".join(part for part in (before, header, with_line_feeds(text).strip()) if part)
