"""The source of a share whose modes and POSIX ACLs this kernel (or an NFSv3 server) enforces."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from acl import share_layer
from acl.compile import Meaning, quarantine
from acl.directory import Directory
from acl.model import AccessList, Role
from acl.mounts import Mount, all_ids_mapped, mount_of
from acl.names import DeclaredNames
from acl.posix import EXECUTE, READ, XATTR, PosixState, compile_posix
from acl.sid import HOST
from notewarden.errors import ConfigError

if TYPE_CHECKING:
    from notewarden.settings import ShareSettings

_LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay"})
_NFS3 = frozenset({"vers=3", "nfsvers=3"})
_UNMAPPED = 65534  # what a uid or gid that this namespace cannot name shows as
_REMEDY = (
    'configure [share.acl] source = "declared" with rules by folder, or index a local disk or an NFSv3 view '
    "of the same notes"
)


class PosixSource:
    """Implements Source: everything is read from open descriptors, nothing is found again by name."""

    def __init__(self, share: ShareSettings, directory: Directory) -> None:
        """Raises ShareUnavailable if the share's root cannot be opened."""
        self._share = share
        used = (*(share.acl.share_readers or ()), *(share.acl.share_denied or ()))
        self._names = DeclaredNames(share.name, used, directory)
        self._all_mapped = all_ids_mapped()
        self._look_at_mount()

    @property
    def ctime_tells(self) -> bool:
        """True on local file systems: chmod, chown and setfacl all move ctime there."""
        return self._mount.kind in _LOCAL

    @property
    def by_folder(self) -> bool:
        """False: every note has modes of its own."""
        return False

    def check(self) -> None:
        """Raise ConfigError where what fstat shows is not what the server enforces, or a name is unknown."""
        self._check_mount()
        self._names.refresh()

    def recheck(self) -> None:
        """Check mount and names again; no name need be known, since the share was loaded before."""
        self._check_mount()
        self._names.refresh(loaded=True)

    def _check_mount(self) -> None:
        self._look_at_mount()
        trouble = why_not_enforced(self._mount)
        if trouble:
            raise ConfigError(f"Share {self._share.name!r} at {self._share.path}: {trouble}; {_REMEDY}.")
        if self._share.acl.guards == "nt_traverse":
            raise ConfigError(
                f'Share {self._share.name!r}: guards = "nt_traverse" needs NT lists; use "posix_x", '
                '"listable" or "bypass" with source = "posix".'
            )

    def share_lists(self) -> tuple[AccessList, ...]:
        """Everyone, unless ``share_readers`` or ``share_denied`` are declared."""
        acl = self._share.acl
        return share_layer.share_lists(acl.share_readers, acl.share_denied, self._names.sid)

    def parent_lists(self, fd: int, folder: bytes) -> tuple[AccessList, ...]:
        """x on the folder under ``posix_x``, r too under ``listable``, nothing under ``bypass``."""
        guards = self._share.acl.guards
        if guards == "bypass":
            return ()
        passing = self._read(fd, "parent", EXECUTE)
        return (passing, self._read(fd, "parent", READ)) if guards == "listable" else (passing,)

    def note_lists(self, fd: int, path: bytes) -> tuple[AccessList, ...]:
        """r on the note."""
        return (self._read(fd, "note", READ),)

    def _look_at_mount(self) -> None:
        """Anew at each check: a share may be mounted in another way than when the daemon started."""
        self._mount = mount_of(self._share.path)
        self._server = server_identity(self._mount, same_ids=self._share.acl.same_ids)

    def _read(self, fd: int, role: Role, right: int) -> AccessList:
        """One list from an open descriptor, quarantined if unreadable. Raises OSError if fstat fails."""
        meaning = Meaning(self._server, "posix", role)
        info = os.fstat(fd)
        try:
            xattr = self._acl_bytes(fd)
        except OSError as error:
            reason = f"its POSIX ACL cannot be read: {error.strerror}"
            state = PosixState(info.st_uid, info.st_gid, info.st_mode, None)
            return quarantine(meaning, reason, raw=state.raw())
        state = PosixState(info.st_uid, info.st_gid, info.st_mode, xattr)
        if not self._all_mapped and _UNMAPPED in (info.st_uid, info.st_gid):
            reason = "its owner or group has no number in this user namespace"
            return quarantine(meaning, reason, raw=state.raw())
        return compile_posix(state, right, meaning)

    def _acl_bytes(self, fd: int) -> bytes | None:
        """The ACL attribute, None where the file truly has plain mode bits. Raises OSError if unknown."""
        try:
            return os.getxattr(fd, XATTR)
        except OSError as error:
            if error.errno == errno.ENODATA:
                return None
            if error.errno == errno.ENOTSUP and has_no_acls(self._mount):
                return None
            raise


def server_identity(mount: Mount, *, same_ids: bool) -> str:
    """Who issued the uids and gids seen on a mount: this host, or the NFS server unless they share ids."""
    return HOST if mount.kind in _LOCAL or same_ids else f"{mount.kind}:{mount.source}"


def has_no_acls(mount: Mount) -> bool:
    """Whether a missing ACL attribute means mode bits alone: only where this kernel itself enforces."""
    return mount.kind == "tmpfs" or (mount.kind in _LOCAL and "noacl" in mount.options)


def why_not_enforced(mount: Mount) -> str:
    """Why modes and ACLs as a mount shows them are not those that are enforced; "" if they are."""
    if mount.kind == "overlay":
        return _overlay_trouble(mount)
    if mount.kind in _LOCAL:
        return ""
    if mount.kind == "nfs" and mount.options & _NFS3:
        return "it is mounted without its server's ACLs (noacl)" if "noacl" in mount.options else ""
    return f"the file system type {mount.kind!r} does not show the modes that its server enforces"


def _overlay_trouble(mount: Mount) -> str:
    """An overlay is as good as its layers. In a container they are out of sight: then its own modes count."""
    for layer in overlay_layers(mount.options):
        if layer.is_dir():
            kind = mount_of(layer).kind
            if kind not in _LOCAL:
                return f"it is an overlay over {layer} of the type {kind!r}, whose server's modes do not show"
    return ""


def overlay_layers(options: frozenset[str]) -> tuple[Path, ...]:
    """The absolute paths of an overlay's layers as its mount options tell them, upper and lower ones."""
    found: list[str] = []
    for option in sorted(options):
        key, _, value = option.partition("=")
        if key.rstrip("+") in ("lowerdir", "upperdir"):
            found += value.split(":")
    return tuple(Path(layer) for layer in found if layer.startswith("/"))
