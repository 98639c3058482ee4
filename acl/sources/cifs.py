"""The source of a share on a cifs mount whose kernel shows the descriptors as an attribute (mount.cifs(8)).

The kernel asks the server for the descriptor of the very file that is open. It speaks no SRVSVC, so the
share's own permissions must be declared. Tested on recorded attributes; no live cifs mount was at hand.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from acl import share_layer
from acl.directory import Directory, kind_of
from acl.model import AccessList, Role
from acl.mounts import Mount, mount_of
from acl.names import DeclaredNames
from acl.servers import smb_server
from acl.sources.layers import DescriptorLayers
from notewarden.errors import ConfigError

if TYPE_CHECKING:
    from notewarden.settings import ShareSettings

# The first holds owner, group and DACL since Linux 5.13; the second is its older name.
ATTRIBUTES = ("system.cifs_ntsd", "system.cifs_acl")
_KINDS = ("cifs", "smb3")
_MODELS = ("nt", "posix", "nt+posix")


class CifsSource:
    """Implements Source: everything is read from open descriptors."""

    def __init__(
        self,
        share: ShareSettings,
        directory: Directory,
        read_attribute: Callable[[int, str], bytes] = os.getxattr,
        look_at_mount: Callable[[Path], Mount] = mount_of,
    ) -> None:
        """Raises ConfigError for a model that no descriptor can carry, or without the server's name."""
        acl = share.acl
        if acl.model not in _MODELS or not acl.server:
            raise ConfigError(
                f'Share {share.name!r}: with source = "cifs" model must be "nt", "posix" or "nt+posix", and '
                "server must be the file server's name."
            )
        self._share = share
        self._read_attribute = read_attribute
        self._look_at_mount = look_at_mount
        self._layers = DescriptorLayers(acl, smb_server(acl), partial(kind_of, directory))
        used = (*(acl.share_readers or ()), *(acl.share_denied or ()))
        self._names = DeclaredNames(share.name, used, directory)

    @property
    def ctime_tells(self) -> bool:
        """False: over SMB neither a change of a list nor a chmod moves any time stamp."""
        return False

    @property
    def by_folder(self) -> bool:
        """False: every note has a descriptor of its own."""
        return False

    def check(self) -> None:
        """Raise ConfigError where this is no cifs mount, or a declared name is unknown."""
        self._check_mount()
        self._names.refresh()

    def recheck(self) -> None:
        """Check mount and names again; no declared name need be known."""
        self._check_mount()
        self._names.refresh(loaded=True)

    def share_lists(self) -> tuple[AccessList, ...]:
        """What is declared; without ``share_readers`` nobody, since the mount does not tell."""
        acl = self._share.acl
        if acl.share_readers is None:
            reason = "a mount does not tell the share's own permissions; declare share_readers in [share.acl]"
            return self._layers.closed("share", reason)
        return share_layer.share_lists(acl.share_readers, acl.share_denied, self._names.sid)

    def parent_lists(self, fd: int, folder: bytes) -> tuple[AccessList, ...]:
        """The guards of one folder."""
        if self._share.acl.guards == "bypass":
            return ()
        return self._lists(fd, "parent")

    def note_lists(self, fd: int, path: bytes) -> tuple[AccessList, ...]:
        """The note's lists."""
        return self._lists(fd, "note")

    def _check_mount(self) -> None:
        kind = self._look_at_mount(self._share.path).kind
        if kind not in _KINDS:
            raise ConfigError(
                f'Share {self._share.name!r} at {self._share.path}: source = "cifs" reads the descriptors '
                f'that a cifs mount shows, and this is {kind!r}; use source = "smb".'
            )

    def _lists(self, fd: int, role: Role) -> tuple[AccessList, ...]:
        try:
            raw = self._raw(fd)
        except OSError as error:
            return self._layers.closed(role, f"the mount does not show its descriptor: {error.strerror}")
        return self._layers.note(raw, None) if role == "note" else self._layers.parent(raw, None)

    def _raw(self, fd: int) -> bytes:
        for name in ATTRIBUTES:
            try:
                return self._read_attribute(fd, name)
            except OSError as error:
                if error.errno not in (errno.ENODATA, errno.ENOTSUP) or name == ATTRIBUTES[-1]:
                    raise
        raise AssertionError  # pragma: no cover: the last attribute returns or raises
