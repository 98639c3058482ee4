"""How long a stretch of a note is, in tokens of the shipped vocabulary and in characters."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left

from notewarden.wordpiece import count_tokens, token_spans

CHARACTERS_PER_TOKEN = 16  # a bound beside the tokens: a "word" of any length is one unknown token
_SEGMENT = 1 << 16
_NOT_SPACE = re.compile(r"\S")
_BREAK = re.compile(r"[ \t\r\n]")


class Measure:
    """Counts tokens of any stretch of one text, which is tokenised once.

    Tokens never reach across a space, tab or line end, so between two of those the counts add up exactly.
    Elsewhere the stretch is tokenised again, since half a word may have more tokens than the word.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = _token_starts(text)

    @property
    def total(self) -> int:
        """The number of tokens of the whole text."""
        return len(self._starts)

    def count(self, start: int, end: int) -> int:
        """Return the number of tokens of text[start:end]."""
        if self._is_break(start) and self._is_break(end):
            return bisect_left(self._starts, end) - bisect_left(self._starts, start)
        return count_tokens(self.text[start:end])

    def reach(self, start: int, end: int, tokens: int) -> int:
        """Return the largest index up to `end` such that text from `start` to there has `tokens` tokens
        or fewer, as long as no word is cut."""
        if not self._is_break(start):
            spans = token_spans(self.text[start:end])
            return end if len(spans) <= tokens else start + spans[max(tokens, 0)][0]
        following = bisect_left(self._starts, start) + max(tokens, 0)
        return min(end, self._starts[following]) if following < len(self._starts) else end

    def fits(self, start: int, end: int, tokens: int) -> bool:
        """Return whether text[start:end] has at most `tokens` tokens, and is not over-long without its
        outer white space."""
        exact = self._is_break(start) and self._is_break(end)
        if exact and self.count(start, end) > tokens:
            return False
        if not self._is_short(start, end, tokens * CHARACTERS_PER_TOKEN):
            return False
        return exact or self.count(start, end) <= tokens

    def _is_short(self, start: int, end: int, limit: int) -> bool:
        if end - start <= limit:
            return True
        first = _NOT_SPACE.search(self.text, start, end)
        return first is None or _NOT_SPACE.search(self.text, min(first.start() + limit, end), end) is None

    def _is_break(self, index: int) -> bool:
        if index <= 0 or index >= len(self.text):
            return True
        return self.text[index - 1] in " \t\r\n" or self.text[index] in " \t\r\n"


def shorten(text: str, tokens: int) -> str:
    """Return `text` on one line, cut in its middle so that it has at most `tokens` tokens (at least 3)."""
    text = " ".join(text.split())
    limit = tokens * CHARACTERS_PER_TOKEN
    if len(text) > limit:
        text = f"{text[: limit // 2]} … {text[-limit // 2 :]}"
    spans = token_spans(text)
    kept = tokens - 1
    while len(spans) > tokens and kept > 0:
        left, right = (kept + 1) // 2, kept // 2
        tail = text[spans[-right][0] :] if right else ""
        shorter = f"{text[: spans[left - 1][1]]} … {tail}".strip()
        if count_tokens(shorter) <= tokens:
            return shorter
        kept -= 1  # a word that was cut may have more tokens than it had before
    return text if len(spans) <= tokens else "…"


def _token_starts(text: str) -> array[int]:
    starts = array("I")
    at = 0
    while at < len(text):
        found = _BREAK.search(text, at + _SEGMENT, at + 2 * _SEGMENT)
        end = found.end() if found else at + 2 * _SEGMENT  # a word beyond any budget: a token more or less
        starts.extend(array("I", [at + start for start, _ in token_spans(text[at:end])]))
        at = end
    return starts
