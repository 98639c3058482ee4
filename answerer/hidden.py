"""What a reader of a note does not see and a model would: comments, invisible characters, embedded data."""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

Span = tuple[int, int]

Hidden = Literal["comments", "invisible characters", "data URIs"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_COMMENT = re.compile(r"<!--.*?-->|<!--.*\Z", re.S)
_REFERENCE = re.compile(
    r"^ {0,3}\[(?://|comment|_metadata_[^\]\n]*|hidden)\]:[ \t]*<?[#\w]*>?[ \t]*"
    r"(?:\([^\n]*\)|\"[^\n]*\"|'[^\n]*')?[ \t]*$",
    re.M | re.I,
)
_DATA = re.compile(r"\bdata:[\w.+-]*/?[\w.+-]*(?:;[\w.=+-]+)*,[A-Za-z0-9+/=%_.~-]*", re.I)
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def comment_spans(note: str) -> list[Span]:
    """Return where HTML comments and comment-like link references stand in a whole note, outside code fences.

    A comment that is never closed hides the rest, as it does in a browser.
    """
    if "<!--" not in note and "]:" not in note:
        return []
    code = _fences(note)
    found = [match.span() for match in (*_COMMENT.finditer(_blanked(note, code)), *_REFERENCE.finditer(note))]
    return sorted(span for span in found if not any(start <= span[0] < end for start, end in code))


def visible(text: str, comments: list[Span], counts: Counter[Hidden]) -> str:
    """Return `text` without the comments at these offsets of it, invisible characters and data URIs."""
    shown, last = [], 0
    for start, end in comments:
        if end <= 0 or start >= len(text):
            continue
        counts["comments"] += 1
        shown.append(text[last : max(start, last)])
        last = max(last, min(end, len(text)))
    joined = "".join((*shown, text[last:]))
    plain, invisible = _INVISIBLE.subn("", joined)
    clean, data = _DATA.subn("", plain) if "data:" in plain.casefold() else (plain, 0)
    counts["invisible characters"] += invisible
    counts["data URIs"] += data
    return clean


def _fences(note: str) -> list[Span]:
    spans: list[Span] = []
    opened: tuple[int, str] | None = None
    at = 0
    for line in note.splitlines(keepends=True):
        found = _FENCE.match(line)
        if found and opened is None and not (found[1][0] == "`" and "`" in found[2]):
            opened = (at, found[1])
        elif found and opened and found[1].startswith(opened[1]) and not found[2].strip():
            spans.append((opened[0], at + len(line)))
            opened = None
        at += len(line)
    return [*spans, (opened[0], at)] if opened else spans


def _blanked(note: str, spans: list[Span]) -> str:
    """Take the code out of the way: a comment cannot begin in it."""
    for start, end in spans:
        note = note[:start] + re.sub(r"[^\n]", " ", note[start:end]) + note[end:]
    return note
