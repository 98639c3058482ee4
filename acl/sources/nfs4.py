"""The source of a share on an NFSv4 mount whose server keeps NFSv4 access lists (system.nfs4_acl).

Tested on recorded attributes; no live NFSv4 server was at hand.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from acl import share_layer
from acl.compile import Meaning, quarantine
from acl.directory import Directory, resolve_name
from acl.model import AccessList, Role
from acl.mounts import Mount, mount_of
from acl.names import DeclaredNames
from acl.nfs4 import EXECUTE, READ_DATA, XATTR, Nfs4State, compile_nfs4
from acl.sid import Sid
from acl.sources.posix import server_identity
from notewarden.errors import ConfigError

if TYPE_CHECKING:
    from notewarden.settings import ShareSettings

ReadAttribute = Callable[[int, str], bytes]


class Nfs4Source:
    """Implements Source: everything is read from open descriptors."""

    def __init__(
        self,
        share: ShareSettings,
        directory: Directory,
        read_attribute: ReadAttribute = os.getxattr,
        look_at_mount: Callable[[Path], Mount] = mount_of,
    ) -> None:
        """Raises ShareUnavailable if the share's root cannot be opened."""
        self._share = share
        self._directory = directory
        self._read_attribute = read_attribute
        self._look_at_mount = look_at_mount
        used = (*(share.acl.share_readers or ()), *(share.acl.share_denied or ()))
        self._names = DeclaredNames(share.name, used, directory)
        self._known: dict[tuple[str, str], Sid | None] = {}
        self._server = self._identity()

    @property
    def ctime_tells(self) -> bool:
        """False: times are the server's, seen through a cache."""
        return False

    @property
    def by_folder(self) -> bool:
        """False: every note has a list of its own."""
        return False

    def check(self) -> None:
        """Raise ConfigError where this is no NFSv4 mount, or a declared name is unknown."""
        self._check_mount()
        self._names.refresh()

    def recheck(self) -> None:
        """Check mount and names again; no declared name need be known."""
        self._check_mount()
        self._names.refresh(loaded=True)

    def share_lists(self) -> tuple[AccessList, ...]:
        """Everyone, unless ``share_readers`` or ``share_denied`` are declared: an export has no list."""
        acl = self._share.acl
        return share_layer.share_lists(acl.share_readers, acl.share_denied, self._names.sid)

    def parent_lists(self, fd: int, folder: bytes) -> tuple[AccessList, ...]:
        """Execute on the folder under ``posix_x``, listing too under ``listable``, none under ``bypass``."""
        guards = self._share.acl.guards
        if guards == "bypass":
            return ()
        passing = self._list(fd, "parent", EXECUTE)
        return (passing, self._list(fd, "parent", READ_DATA)) if guards == "listable" else (passing,)

    def note_lists(self, fd: int, path: bytes) -> tuple[AccessList, ...]:
        """Read data on the note."""
        return (self._list(fd, "note", READ_DATA),)

    def _check_mount(self) -> None:
        mount = self._look_at_mount(self._share.path)
        if mount.kind != "nfs4":
            raise ConfigError(
                f'Share {self._share.name!r} at {self._share.path}: source = "nfs4" reads the lists of an '
                f'NFSv4 mount, and this is {mount.kind!r}; use source = "posix" for a local disk or NFSv3.'
            )
        if self._share.acl.guards == "nt_traverse":
            raise ConfigError(
                f'Share {self._share.name!r}: guards = "nt_traverse" needs NT lists; use "posix_x", '
                '"listable" or "bypass" with source = "nfs4".'
            )
        self._server = self._identity()
        self._known = {}

    def _identity(self) -> str:
        mount = self._look_at_mount(self._share.path)
        return server_identity(mount, same_ids=self._share.acl.same_ids)

    def _list(self, fd: int, role: Role, right: int) -> AccessList:
        """One list, quarantined if the attribute cannot be read. Raises OSError if fstat fails."""
        meaning = Meaning(self._server, "nfs4", role)
        info = os.fstat(fd)
        try:
            raw = self._read_attribute(fd, XATTR)
        except OSError as error:
            return quarantine(meaning, f"its NFSv4 ACL cannot be read: {error.strerror}")
        return compile_nfs4(Nfs4State(info.st_uid, info.st_gid, raw), right, meaning, self._who)

    def _who(self, name: str, kind: Literal["user", "group"]) -> Sid | None:
        """A name with its domain, as the directory knows it; without the domain only under same_ids."""
        if (name, kind) not in self._known:
            tried = [name, name.partition("@")[0]] if self._share.acl.same_ids else [name]
            self._known[name, kind] = next(filter(None, (self._resolved(kind, one) for one in tried)), None)
        return self._known[name, kind]

    def _resolved(self, kind: str, name: str) -> Sid | None:
        try:
            return resolve_name(self._directory, f"{kind}:{name}")
        except LookupError:
            return None
