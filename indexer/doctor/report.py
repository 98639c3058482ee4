"""One check's outcome, and how all of them read."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from notewarden.display import printable

_NARROW = 72
_WIDE = 110


@dataclass(frozen=True)
class Check:
    """What was looked at. `remedy` is what to do: where `ok`, a thing that is right and might be better."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the check as the contract writes it."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail, "remedy": self.remedy}


def as_json(checks: Sequence[Check]) -> dict[str, Any]:
    """Return all checks as the contract writes them."""
    return {"ok": all(check.ok for check in checks), "checks": [check.as_json() for check in checks]}


def as_text(checks: Sequence[Check]) -> str:
    """Return one paragraph a check, the faulty ones marked, and a last line that sums up."""
    names = max((len(check.name) for check in checks), default=0)
    columns = shutil.get_terminal_size((_WIDE, 24)).columns if sys.stdout.isatty() else _WIDE
    width = max(_NARROW, min(columns, 140))
    lines = [line for check in checks for line in _paragraph(check, names, width)]
    faults = sum(not check.ok for check in checks)
    summary = (
        "Nothing is wrong." if not faults else f"{faults} of {len(checks)} checks found something wrong."
    )
    return "\n".join([*lines, "", summary])


def _paragraph(check: Check, names: int, width: int) -> list[str]:
    mark = "ok  " if check.ok else "FAIL"
    head = f"{mark}  {printable(check.name):<{names}}  "
    blank = " " * len(head)
    lines = _wrapped(check.detail, width - len(head)) or [""]
    lines = [head + lines[0], *(blank + line for line in lines[1:])]
    if check.remedy:
        arrow = "hint: " if check.ok else "do:   "
        told = _wrapped(check.remedy, width - len(head) - len(arrow))
        lines += [blank + (arrow if not n else " " * len(arrow)) + line for n, line in enumerate(told)]
    return [line.rstrip() for line in lines]


def _wrapped(text: str, width: int) -> list[str]:
    """Never break a path: it is there to be copied."""
    return textwrap.wrap(printable(text), max(width, 20), break_on_hyphens=False, break_long_words=False)
