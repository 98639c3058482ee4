"""Lines as an editor counts them: ended by LF, CRLF or CR and nothing else."""

from __future__ import annotations

import re
from bisect import bisect_right

_LINE_END = re.compile(r"\r\n|\n|\r")


class Lines:
    """Where each line of a text starts, in characters."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        if len(self.starts) > 1 and self.starts[-1] == len(text):
            self.starts.pop()  # behind the last line end no line begins
        self._end = len(text)

    def start(self, line: int) -> int:
        """Return the character index where the 0-based `line` starts; the text's length behind the last."""
        return self.starts[line] if line < len(self.starts) else self._end

    def number(self, index: int) -> int:
        """Return the 1-based number of the line that holds the character at `index`."""
        return bisect_right(self.starts, index)


def with_line_feeds(text: str) -> str:
    """Return `text` with every line end as LF, so that it has as many lines as before."""
    return _LINE_END.sub("\n", text)
