"""What people see: nothing in it that is not ours may steer the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from notewarden.display import printable

_NOT_PLAIN = re.compile(r"[^\n -~]")
_ACTIVE = ("javascript", "vbscript", "data")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):[!-~]+")


class Live:
    """Shows an answer as it comes. A line end may be cut in two, so a CR waits for what follows it."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._held = ""
        self.shown = False

    def feed(self, text: str) -> None:
        """Show a piece."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r") if self._held else text
        if text:
            self._write(printable(text, keep_newlines=True))
            self.shown = True

    def end(self) -> None:
        """End the text, whole or broken off, so that what follows stands below it."""
        if self.shown:
            self._write("\n\n")


def as_json(body: Mapping[str, Any]) -> str:
    """Return `body` as JSON in which every control and format character stands escaped."""
    return _NOT_PLAIN.sub(_escaped, json.dumps(body, ensure_ascii=False, indent=2))


def as_text(kind: str, body: Mapping[str, Any], terminal: bool) -> str:
    """Return an "answer" or its "sources", "results", a "note" or a "state", for people.

    On a terminal sources are links that can be followed.
    """
    if kind == "answer":
        return _answer(body, terminal)
    if kind == "sources":
        return _sources(body, terminal)
    if kind == "results":
        return "\n\n".join(_result(number, row) for number, row in enumerate(body["results"], 1))
    if kind == "note":
        return printable(body["text"], keep_newlines=True).removesuffix("\n")
    return _state(body)


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    if printable(char) == char:
        return char
    return json.dumps(char)[1:-1]


def _answer(body: Mapping[str, Any], terminal: bool) -> str:
    label = "Extracts from the notes:\n\n" if body["model"] == "extracts" else ""
    return f"{label}{printable(body['answer'], keep_newlines=True)}\n\n{_sources(body, terminal)}"


def _sources(body: Mapping[str, Any], terminal: bool) -> str:
    sources = "\n".join(_source(citation, terminal) for citation in body["citations"])
    return f"{sources}\n{_age(body)}"


def _source(citation: Mapping[str, Any], terminal: bool) -> str:
    place = _linked(f"{citation['share']}:{citation['path']}", citation["link"] if terminal else None)
    changed = "; changed since" if citation["freshness"] == "changed" else ""
    date = printable(citation["modified"][:10])
    return f"[{citation['n']}] {place}{_trail(citation)}, {_lines(citation)} (of {date}{changed})"


def _result(number: int, row: Mapping[str, Any]) -> str:
    place = printable(f"{row['share']}:{row['path']}")
    head = f"{number}. {place}{_trail(row)}, {_lines(row)}"
    if "vector_rank" in row:
        head += f" [vector {row['vector_rank'] or '-'}, keyword {row['keyword_rank'] or '-'}]"
    text = printable(row["text"].strip(), keep_newlines=True)
    return head + "\n" + "\n".join(f"   {line}".rstrip() for line in text.split("\n"))


def _state(body: Mapping[str, Any]) -> str:
    groups = ", ".join(printable(group) for group in body["groups"]) or "none"
    notes = "no question of its own" if body["notes"] is None else f"{body['notes']}"
    return (
        f"You are: {printable(body['user'])} ({printable(body['sid'])})\nGroups: {groups}\n"
        f"Notes you may read: {notes}\n{_age(body)}"
    )


def _age(body: Mapping[str, Any]) -> str:
    return f"As of the index of {printable(body['as_of'])}." if body["as_of"] else "Nothing is indexed yet."


def _trail(row: Mapping[str, Any]) -> str:
    return "".join(f" › {printable(heading)}" for heading in row["heading"])


def _lines(row: Mapping[str, Any]) -> str:
    first, last = row["first_line"], row["last_line"]
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _linked(text: str, link: str | None) -> str:
    """Return the text as a hyperlink (OSC 8), where the target is one that a terminal may open."""
    shown = printable(text)
    found = _URL.fullmatch(link) if link else None
    if found is None or found.group(1).lower() in _ACTIVE:
        return shown
    return f"\x1b]8;;{link}\x1b\\{shown}\x1b]8;;\x1b\\"
