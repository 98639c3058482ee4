"""Placeholders for one conversation: put in before anything leaves this machine, taken out of the answer.

A placeholder is a kind, a running number and the conversation's random nonce, such as {{E-MAIL-1-k3v9x2}}: it
tells nothing of the value, and no note can hold one that means anything, because no note knows the nonce.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Mapping

from notewarden.privacy import Kind, replace_private

_NONCE_BYTES = 5
_LOOKS_LIKE = re.compile(r"\{\{\s*[A-Z][A-Z-]{0,15}-\d{1,9}-\w{1,24}\s*\}\}")
_RUN = re.compile(r"\S+")
_LINK = re.compile(
    r"//|\bwww\.|\b(?:mailto|tel|sms|data|javascript|vbscript|file|ftp|smb|xmpp|sip|ssh|git|callto):\S|\]\("
    r"|<[a-z!/]|(?:href|src|action|srcset)\s*=|[\w-]\.[a-z]{2,24}[/?#:]|\}\}\.[\w-]+\.[a-z]{2,}",
    re.I,
)


def new_nonce() -> str:
    """Return the random part of a conversation's placeholders."""
    return secrets.token_hex(_NONCE_BYTES)


class Redactor:
    """The placeholders of one conversation. What it replaced it can put back, nothing else."""

    def __init__(self, nonce: str | None = None) -> None:
        self._nonce = nonce or new_nonce()
        self._names: dict[tuple[str, str], str] = {}
        self._values: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self.counts: Counter[Kind] = Counter()
        self._issued = re.compile(r"\{\{[A-Z-]+-\d+-" + re.escape(self._nonce) + r"\}\}")

    def redact(self, text: str) -> str:
        """Return `text` with placeholders; what already looks like one gets one of its own."""
        escaped = _LOOKS_LIKE.sub(lambda match: self._name("TEXT", match.group()), text)
        parts: list[str] = []
        last = 0
        for match in self._issued.finditer(escaped):  # never look for numbers inside a placeholder
            parts += (self._private(escaped[last : match.start()]), match.group())
            last = match.end()
        return "".join((*parts, self._private(escaped[last:])))

    def restore(self, text: str) -> str:
        """Return `text` with the values put back, except inside an address that could carry them off.

        An address is told by the run of characters between white space, on both sides of the placeholder:
        there the kind alone is shown. A placeholder that was never issued stays as it is.
        """
        if "{{" not in text:
            return text
        return _RUN.sub(lambda match: self._restored(match.group(), text, match.start()), text)

    def _private(self, text: str) -> str:
        replaced, counts = replace_private(text, self._name)
        self.counts += counts
        return replaced

    def _name(self, kind: str, value: str) -> str:
        found = self._names.get((kind, value))
        if found is None:
            self._numbers[kind] += 1
            found = f"{{{{{kind}-{self._numbers[kind]}-{self._nonce}}}}}"
            self._names[kind, value] = found
            self._values[found] = value
        return found

    def _restored(self, run: str, text: str, start: int) -> str:
        if "{{" not in run:
            return run
        linked = _LINK.search(run) is not None or _in_link_target(text, start)
        return self._issued.sub(lambda match: self._value(match.group(), linked), run)

    def _value(self, placeholder: str, linked: bool) -> str:
        value = self._values.get(placeholder)
        if value is None:
            return placeholder
        kind = placeholder[2:].rsplit("-", 2)[0]
        return f"[{kind}]" if linked else value


def _in_link_target(text: str, at: int) -> bool:
    """Whether `at` stands in a Markdown link's target or an HTML tag that was opened in the same line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    target, tag = line.rfind("]("), line.rfind("<")
    in_target = target >= 0 and ")" not in line[target:]
    return in_target or (
        tag >= 0 and re.match(r"<[a-zA-Z!/]", line[tag:]) is not None and ">" not in line[tag:]
    )


class RestoredStream:
    """Puts values back in text that comes in pieces: a run is held until white space has ended it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._line = ""  # what was let go of the current line: context for links
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what can be shown now."""
        held = self._held + text
        cut = max(held.rfind(" "), held.rfind("\n"), held.rfind("\t")) + 1
        self._held = held[cut:]
        return self._let_go(held[:cut])

    def end(self) -> str:
        """Return the rest; the stream may go on behind it."""
        rest, self._held = self._held, ""
        return self._let_go(rest)

    def _let_go(self, text: str) -> str:
        shown: list[str] = []
        for piece in re.findall(r"[^\n]*\n|[^\n]+", text):
            whole = self._line + piece
            shown.append(self._redactor.restore(whole)[len(self._redactor.restore(self._line)) :])
            self._line = "" if piece.endswith("\n") else whole
        return "".join(shown)


def as_detail(counts: Mapping[Kind, int]) -> dict[str, int]:
    """Return what the audit keeps: how many of each kind, never a value."""
    return {kind: count for kind, count in sorted(counts.items()) if count}
