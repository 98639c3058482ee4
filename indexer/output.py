"""What the admin command prints: nothing in it that is not ours may steer a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from notewarden.display import printable, show_path

_NOT_PLAIN = re.compile(r"[^\n -~]")


def out(text: str) -> None:
    """Write a line to standard output in UTF-8 whatever the locale, so that no name can break it."""
    _write(sys.stdout, text)


def out_json(body: Mapping[str, Any]) -> None:
    """Write JSON in which every control and format character stands escaped."""
    out(_NOT_PLAIN.sub(_escaped, json.dumps(body, ensure_ascii=False, indent=2)))


def say(sentence: str) -> None:
    """Write one sentence for people to standard error."""
    _write(sys.stderr, "notewarden: " + printable(sentence.strip()))


def shown(path: bytes) -> str:
    """Return a raw path as a terminal may show it."""
    return printable(show_path(path))


def moment(at: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, None for never."""
    return None if at is None else at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def close_quietly() -> None:
    """Let the interpreter's last flush go nowhere once the reader of a pipe has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    return char if printable(char) == char else json.dumps(char)[1:-1]


def _write(stream: Any, text: str) -> None:
    stream.flush()
    stream.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    stream.buffer.flush()


def counted(number: int, noun: str, verb: str = "") -> str:
    """Return "1 share", "2 shares"; with `verb` "is" or "keeps" that too: "1 note is", "2 notes are"."""
    words = f"{number} {noun}" if number == 1 else f"{number} {noun}s"
    if verb and number != 1:
        verb = {"is": "are"}.get(verb, verb.removesuffix("s"))
    return f"{words} {verb}".rstrip()
