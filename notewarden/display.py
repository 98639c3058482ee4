"""How text that is not ours is shown: nothing in it may steer a terminal or hide what stands there."""

from __future__ import annotations

import os
import re
import unicodedata

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_NEVER_PLAIN = re.compile(r"[^ -~]")
_HEX_ESCAPE = re.compile(rb"\\x([89a-fA-F][0-9a-fA-F])")
_TAB = "    "


def printable(text: str, keep_newlines: bool = False) -> str:
    """Return `text` with C0, C1, ESC, bidi and other format controls, line separators and surrogates escaped.

    They appear as `\\xNN`, `\\uNNNN` or `\\UNNNNNNNN`; an undecodable byte (surrogateescape) as its `\\xNN`.
    With `keep_newlines` line ends stay (CRLF as LF) and a tab becomes four spaces, so that a note's
    own layout survives.
    """
    if keep_newlines:
        lines = text.replace("\r\n", "\n").replace("\t", _TAB).split("\n")
        return "\n".join(printable(line) for line in lines)
    return _NEVER_PLAIN.sub(lambda match: _shown(match.group()), text)


def show_path(raw: bytes) -> str:
    """Return a raw path as JSON output shows it: UTF-8 as it is, never normalised, other bytes as `\\xNN`.

    Controls are not escaped here (JSON does that itself); for a terminal pass the result to `printable`.
    """
    return raw.decode("utf-8", "backslashreplace")


def parse_path(text: str) -> bytes:
    """Return the raw path that an argument names: the inverse of `show_path`.

    `\\xNN` from 80 up is that byte, everything else the argument's own bytes. A file name that really
    contains such an escape is found by `path_candidates`, which tries the literal form first.
    """
    return _HEX_ESCAPE.sub(lambda match: bytes.fromhex(match.group(1).decode("ascii")), _raw(text))


def path_candidates(text: str) -> tuple[bytes, ...]:
    """Return the raw paths an argument can mean: its literal bytes, then the `\\xNN` form if it differs."""
    literal, parsed = _raw(text), parse_path(text)
    return (literal,) if literal == parsed else (literal, parsed)


def _raw(text: str) -> bytes:
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:  # text that never was an argument, such as one from JSON
        return text.encode("utf-8", "surrogatepass")


def _shown(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN_CATEGORIES:
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
