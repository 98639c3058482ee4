"""Configured names and what they mean: looked up once per sync, the lost ones remembered as lost."""

from __future__ import annotations

from collections.abc import Iterable

from acl.directory import Directory, resolve_name
from acl.sid import EVERYONE, Sid
from notewarden.errors import ConfigError


class DeclaredNames:
    """The names one share's configuration uses.

    At load each must mean exactly one user or group. One that is lost later does not stop the share: it comes
    back as None, and the lists that use it say what that means.
    """

    def __init__(self, share: str, names: Iterable[str], directory: Directory) -> None:
        self._share = share
        self._names = tuple(dict.fromkeys(names))
        self._directory = directory
        self._known: dict[str, Sid | None] | None = None

    def refresh(self, *, loaded: bool = False) -> None:
        """Look all names up again; the first time is the load, unless the share was `loaded` before.

        Raises ConfigError for a name that is unknown at load, DirectoryUnreachable if nobody can tell.
        """
        loading = self._known is None and not loaded
        known: dict[str, Sid | None] = {}
        for name in self._names:
            try:
                known[name] = resolve_name(self._directory, name)
            except LookupError as error:
                if loading:
                    raise self._unknown(name, error) from error
                known[name] = None
        self._known = known

    def sid(self, name: str) -> Sid | None:
        """What a name means since the last refresh, None if it is lost. Raises as refresh does."""
        if self._known is None:
            self.refresh()
        return EVERYONE if name == "everyone" else (self._known or {}).get(name)

    def _unknown(self, name: str, error: LookupError) -> ConfigError:
        told = str(error.args[0]) if error.args else "is not in the directory"
        return ConfigError(
            f"Share {self._share!r}: {name!r} in [share.acl] {told}; correct it or add it to the directory."
        )
