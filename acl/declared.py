"""Rules by folder: who reads a folder and everything below it, as the configuration declares it."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from acl.share_layer import DeclaredAccess
from notewarden.display import parse_path
from notewarden.errors import ConfigError

_NOBODY = DeclaredAccess((), (), "no rule is for this folder")


@dataclass(frozen=True)
class Rule:
    """One declared rule; ``folder`` is relative to the share's root, "" is the root itself."""

    folder: str
    readers: tuple[str, ...]
    denied: tuple[str, ...] = ()


class Rules:
    """Finds what is declared for a folder.

    The nearest rule at or above the folder replaces the outer ones, except that what a parent's rule denies
    is denied below too. No rule at all: nobody. Folders are compared component by component in Unicode normal
    form C, since a rule is typed and a Mac stores another form; where the server ignores case, also by case
    folding.
    """

    def __init__(self, rules: Iterable[Rule], *, ignore_case: bool = False) -> None:
        """Raises ConfigError for two rules with the same folder or one that leaves the share."""
        self._ignore_case = ignore_case
        self._by_folder: dict[tuple[str, ...], Rule] = {}
        for rule in rules:
            folder = self._components(parse_path(rule.folder))
            if ".." in folder or rule.folder.startswith("/"):
                raise ConfigError(
                    f"The rule for folder {rule.folder!r} leaves the share; name a folder inside it."
                )
            if folder in self._by_folder:
                raise ConfigError(f"Two rules are for the folder {rule.folder!r}; join them.")
            self._by_folder[folder] = rule

    @property
    def names(self) -> tuple[str, ...]:
        """Every name any rule uses, each once, in the rules' order."""
        used = (name for rule in self._by_folder.values() for name in (*rule.readers, *rule.denied))
        return tuple(dict.fromkeys(used))

    def access(self, folder: bytes) -> DeclaredAccess:
        """What is declared for notes that lie in a folder, given by its raw path (b"" for the root)."""
        matching = [self._by_folder[part] for part in self._chain(folder) if part in self._by_folder]
        if not matching:
            return _NOBODY
        denied = dict.fromkeys(name for rule in matching for name in rule.denied)
        nearest = matching[-1]
        place = (
            f"the rule for folder {nearest.folder!r}" if nearest.folder else "the rule for the share's root"
        )
        return DeclaredAccess(nearest.readers, tuple(denied), place)

    def _chain(self, folder: bytes) -> Iterator[tuple[str, ...]]:
        parts = self._components(folder)
        for length in range(len(parts) + 1):
            yield parts[:length]

    def _components(self, folder: bytes) -> tuple[str, ...]:
        parts = (part for part in folder.split(b"/") if part not in (b"", b"."))
        return tuple(self._normal(os.fsdecode(part)) for part in parts)

    def _normal(self, name: str) -> str:
        form = unicodedata.normalize("NFC", name)
        return unicodedata.normalize("NFC", form.casefold()) if self._ignore_case else form


def parent_folder(path: bytes) -> bytes:
    """The folder a note lies in, from its raw path relative to the share: b"" for the root."""
    return path.rpartition(b"/")[0]
