"""From what a model says it cites to our own lines: checked against our text, and quoted from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from answerer.claims import invents_number, is_held, says_something
from answerer.privacy import Redactor, RestoredStream
from answerer.prompt import Source
from db.search import Passage

UNCITED = "[?]"
"""The mark behind a sentence that no note bears out."""

_OURS = re.compile(r"\[(\d{1,4}|\?)\]")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s<>\"'`]+|www\.[^\s<>\"'`]+", re.I)
_TARGET = re.compile(r"!?\[([^\]\[]*)\]\(([^)\s]*)[^)]*\)?")
_STOP = re.compile(r"(?<=[.!?…])[\"'”’)\]*_]*\s+(?=[^\sa-zß-ÿ])|\n+")
_SHORT = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|nr|ext|tel|fax|vol|pp?|max|min|incl?|inkl|vgl|abs|ggf|dr|mr|mrs|ms|st|z\.\s?b|d\.\s?h|bzw|ca|[a-z]|\d{1,2})\.$",
    re.I,
)
_MARK = re.compile(r"[ \t]*\[(\d{1,4})\.(\d{1,4})\]")
_LEAST_SHARED = 0.5  # of a marked sentence's content words, where the server itself vouches for nothing
_REMOVED = "[link removed]"


@dataclass(frozen=True)
class Location:
    """What a model cites: blocks [start, end) of a search result."""

    result: int
    start: int
    end: int


@dataclass(frozen=True)
class Cited:
    """A checked citation: a contiguous piece of a note, with its lines."""

    passage: Passage
    text: str
    first_line: int
    last_line: int


@dataclass
class Composed:
    """The answer so far: `text` with its marks, `cited` in order of appearance."""

    text: str = ""
    cited: list[Cited] = field(default_factory=list)
    uncited: int = 0
    fallen: int = 0


class Composer:
    """Takes a model's text and citations; gives back what can be shown at once, and in the end the answer."""

    def __init__(
        self, sources: Sequence[Source], redactor: Redactor, question: str, *, marks: bool = False
    ) -> None:
        """`marks`: citations stand in the text, as [2.1], and have to be borne out by words too."""
        self._sources = sources
        self._redactor = redactor
        self._question = question
        self._known = "\n".join([question, *(source.passage.content for source in sources)])
        self._stream = RestoredStream(redactor)
        self._marks = marks
        self._raw: list[str] = []
        self._cites: list[Location] = []
        self._numbers: dict[Location, int] = {}
        self.done = Composed()

    def feed(self, text: str) -> str:
        """Take a piece of text; returns what can be shown of it now."""
        self._raw.append(text)
        return self._plain(self._stream.feed(text))

    def cite(self, location: Location) -> None:
        """Take a citation of the block that is open."""
        if location not in self._cites:
            self._cites.append(location)

    def close_block(self) -> str:
        """End the open block; returns the rest of its text and the marks of its last sentence."""
        shown = self._plain(self._stream.end())
        raw, self._raw = "".join(self._raw), []
        cites, self._cites = self._cites, []
        text = self._plain(self._redactor.restore(raw))
        pieces = _sentences(text)
        marks = ""
        for sentence, gap in pieces:
            body, found = _without_marks(sentence) if self._marks else (sentence, cites)
            marks = self._judge(body, found)
            self.done.text += f"{body}{marks}{gap}"
        tail = pieces[-1][1] if pieces else ""
        return f"{shown[: len(shown) - len(tail)] if tail else shown}{marks}{tail}"

    def _judge(self, sentence: str, cites: Sequence[Location]) -> str:
        """Return the marks of one sentence, and count what fell."""
        if not says_something(sentence):
            return ""
        valid = [one for one in cites if self._exists(one)]
        self.done.fallen += len(cites) - len(valid)
        if valid and not self._bears_out(sentence, valid):
            self.done.fallen += len(valid)
            valid = []
        if not valid:
            self.done.uncited += 1
            return f" {UNCITED}"
        return " " + "".join(f"[{self._number(one)}]" for one in valid)

    def _exists(self, one: Location) -> bool:
        if not 0 <= one.result < len(self._sources):
            return False
        return 0 <= one.start < one.end <= len(self._sources[one.result].units)

    def _bears_out(self, sentence: str, valid: Sequence[Location]) -> bool:
        evidence = "\n".join(self._evidence(one) for one in valid)
        if self._marks:
            return is_held(sentence, evidence, _LEAST_SHARED)
        return not invents_number(sentence, f"{evidence}\n{self._question}")

    def _evidence(self, one: Location) -> str:
        source = self._sources[one.result]
        return f"{source.title}\n{source.name}\n{source.text(one.start, one.end)}"

    def _number(self, one: Location) -> int:
        if one not in self._numbers:
            self._numbers[one] = len(self.done.cited) + 1
            source = self._sources[one.result]
            first, last = source.units[one.start], source.units[one.end - 1]
            text = source.text(one.start, one.end)
            self.done.cited.append(Cited(source.passage, text, first.first_line, last.last_line))
        return self._numbers[one]

    def _plain(self, text: str) -> str:
        """Take numbers like ours and links that no note holds out of a model's text."""
        shown = _TARGET.sub(lambda m: m[1] if self._is_known(m[2]) else f"{m[1]} {_REMOVED}", text)
        shown = _URL.sub(lambda m: m[0] if self._is_known(m[0]) else _REMOVED, shown)
        return _OURS.sub(r"(\1)", shown)

    def _is_known(self, url: str) -> bool:
        return url.rstrip(".,;:!?)]}*_") in self._known


def _sentences(text: str) -> list[tuple[str, str]]:
    """Return the sentences of a text, each with the white space behind it; joined again they are the text."""
    found: list[tuple[str, str]] = []
    start = 0
    for stop in _STOP.finditer(text):
        sentence = text[start : stop.start()] + stop.group().rstrip()
        if "\n" not in stop.group() and _SHORT.search(sentence[-14:]):
            continue
        gap = stop.group()[len(stop.group().rstrip()) :]
        found.append((sentence, gap))
        start = stop.end()
    rest = text[start:]
    if rest:
        body = rest.rstrip()
        found.append((body, rest[len(body) :]))
    return _marks_stay(found)


def _marks_stay(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Marks that follow a full stop belong to the sentence before them."""
    joined: list[tuple[str, str]] = []
    for body, gap in pieces:
        lead = re.match(r"(?:\[\d{1,4}\.\d{1,4}\][ \t]*)+", body)
        if lead and joined:
            before, between = joined[-1]
            rest = body[lead.end() :]
            joined[-1] = (f"{before} {lead.group().rstrip()}", gap if not rest else between)
            if rest:
                joined.append((rest, gap))
        else:
            joined.append((body, gap))
    return joined


def _without_marks(sentence: str) -> tuple[str, list[Location]]:
    """Part a sentence from its marks [source.piece], both counted from 1."""
    found = [(int(m[1]) - 1, int(m[2]) - 1) for m in _MARK.finditer(sentence)]
    return _MARK.sub("", sentence), [Location(result, at, at + 1) for result, at in dict.fromkeys(found)]
