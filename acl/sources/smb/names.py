"""Which names of the mount SMB can address one to one; the others are unreadable, with their reason."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable

from notewarden.errors import NoteUnreadable

# MS-FSCC 2.1.5.2: characters that no name has; a mount shows them where it maps others onto them.
_RESERVED = frozenset('\\/:*?"<>|')


def smb_path(prefix: str, path: bytes) -> str:
    """The path of a note or folder as SMB writes it, below `prefix`. Raises NoteUnreadable."""
    parts = [] if not path else [_part(name) for name in path.split(b"/")]
    return "\\".join([*(part for part in prefix.split("/") if part), *parts])


def twins(names: Iterable[str]) -> frozenset[bytes]:
    """Those names of one folder that another one equals but for case or normal form; surrogateescaped."""
    listed = list(names)
    forms = Counter(_form(name) for name in listed)
    return frozenset(name.encode("utf-8", "surrogateescape") for name in listed if forms[_form(name)] > 1)


def _form(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _part(raw: bytes) -> str:
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _unreadable("its name is not valid UTF-8") from None
    if any(char in _RESERVED or char < " " for char in name):
        raise _unreadable(
            'its name has a character that SMB does not know (one of : * ? " < > | or a control)'
        )
    if name[-1:] in (".", " "):
        raise _unreadable("its name ends in a dot or a blank, which SMB drops")
    return name


def _unreadable(reason: str) -> NoteUnreadable:
    return NoteUnreadable(f"it cannot be asked for over SMB: {reason}", permanent=True)
