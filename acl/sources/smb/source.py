"""The source of a share on an SMB server: the mount gives the text, the protocol the descriptors."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from acl import share_layer
from acl.directory import Directory, kind_of
from acl.model import AccessList
from acl.mounts import Mount, mount_of
from acl.names import DeclaredNames
from acl.posix import PosixState
from acl.servers import smb_server
from acl.sources.layers import DescriptorLayers
from acl.sources.smb.client import Answer
from acl.sources.smb.modes import PosixTree
from acl.sources.smb.names import smb_path, twins
from acl.sources.smb.pairing import Mismatch, mismatch, mode_mismatch
from acl.sources.smb.probe import shows_one_user
from acl.sources.smb.session import Connect, SmbSession, connect_with, login_of
from acl.sources.smb.shares import ShareUnknown, share_descriptor
from acl.sources.smb.status import GONE, why_unreadable
from notewarden.errors import ConfigError, NoteUnreadable

if TYPE_CHECKING:
    from notewarden.settings import ShareSettings

_MODELS = ("nt", "posix", "nt+posix")
_PROBE_EVERY_S = 60.0  # also between polls, where late checks go on
# A mount may show a change a moment later than the server does.
_PAUSES_S = (0.02, 0.2)


class SmbSource:
    """Implements Source. The server is asked anew for every list; nothing is kept for the next poll."""

    def __init__(
        self,
        share: ShareSettings,
        directory: Directory,
        connect: Connect | None = None,
        look_at_mount: Callable[[Path], Mount] = mount_of,
    ) -> None:
        """Raises ConfigError for settings that cannot work, ShareUnavailable without the share's root."""
        acl = share.acl
        if acl.model not in _MODELS:
            raise ConfigError(
                f'Share {share.name!r}: model must be "nt", "posix" or "nt+posix" with source = "smb".'
            )
        self._share = share
        self._prefix = acl.share.strip("/").partition("/")[2]
        self._session = SmbSession(login_of(share.name, acl), connect or partial(connect_with, acl.client))
        self._layers = DescriptorLayers(acl, smb_server(acl), partial(kind_of, directory))
        self._tree = PosixTree(acl.posix_path) if acl.posix_path else None
        used = (*(acl.share_readers or ()), *(acl.share_denied or ()))
        self._names = DeclaredNames(share.name, used, directory)
        self._forced = ""
        self._probed_at: float | None = None
        self._twins: dict[bytes, frozenset[bytes]] = {}
        self._ahead: dict[bytes, tuple[float, Answer]] = {}
        self._since = 0.0
        self._lock = Lock()
        self._look_at_mount = look_at_mount
        self._own_text = _has_own_file_ids(look_at_mount(share.path))

    @property
    def ctime_tells(self) -> bool:
        """False: over SMB neither a change of a list nor a chmod moves any time."""
        return False

    @property
    def by_folder(self) -> bool:
        """False: every note has a descriptor of its own."""
        return False

    def check(self) -> None:
        """Look at settings and names again; the server is asked when the poll reaches the share."""
        self._check_mount()
        self._names.refresh()
        self._session.reset()
        self._probed_at = None

    def recheck(self) -> None:
        """As check, but no name need be known, and the session is kept."""
        self._check_mount()
        self._names.refresh(loaded=True)

    def share_lists(self) -> tuple[AccessList, ...]:
        """What is declared, and the share's own descriptor; nobody where neither is known.

        Raises ShareUnavailable when the server cannot be asked.
        """
        closed = self._why_closed()
        if closed:
            return self._layers.closed("share", closed)
        acl = self._share.acl
        declared: tuple[AccessList, ...] = ()
        if acl.share_readers is not None or acl.share_denied is not None:
            declared = share_layer.share_lists(acl.share_readers, acl.share_denied, self._names.sid)
        try:
            return declared + self._layers.share(share_descriptor(self._session.login))
        except ShareUnknown as error:
            if acl.share_readers is not None:
                return declared
            reason = f"the share's own permissions are unknown: {error}; declare share_readers in [share.acl]"
            return declared + self._layers.closed("share", reason)

    def parent_lists(self, fd: int, folder: bytes) -> tuple[AccessList, ...]:
        """The guards of one folder. Raises ShareUnavailable, and OSError for a folder that is gone."""
        self._twins[folder] = twins(os.listdir(fd))
        if self._why_closed() or self._share.acl.guards == "bypass":
            return ()
        try:
            answer = self._paired(fd, folder, self._ask(folder))
            return self._layers.parent(answer.raw, self._mode(folder, answer))
        except NoteUnreadable as error:
            return self._layers.closed("parent", error.reason)

    def note_lists(self, fd: int, path: bytes) -> tuple[AccessList, ...]:
        """The note's lists, from the server's answer about this very file. Raises NoteUnreadable, OSError."""
        closed = self._why_closed()
        if closed:
            raise NoteUnreadable(f"its share is closed: {closed}")
        with self._lock:
            asked_at, answer = self._ahead.pop(path, (0.0, None))
            if asked_at < self._since:  # asked before this check began: another thread's
                answer = None
        answer = self._paired(fd, path, answer or self._ask(path))
        return self._layers.note(answer.raw, self._mode(path, answer))

    def prefetch(self, folder: bytes, names: Sequence[bytes]) -> None:
        """Ask for the descriptors of many notes of one folder at once; each answer serves one `note_lists`.

        What cannot be asked for is left out: `note_lists` then says why. Raises ShareUnavailable.
        """
        if self._why_closed():
            return
        asked: dict[bytes, str] = {}
        for name in names:
            path = folder + b"/" + name if folder else name
            try:
                asked[path] = self._address(path)
            except NoteUnreadable:
                continue
        now = time.monotonic()
        told = self._session.answers(list(asked.values()))
        with self._lock:
            self._ahead = {path: (now, answer) for path, answer in zip(asked, told, strict=True)}

    def _check_mount(self) -> None:
        self._own_text = _has_own_file_ids(self._look_at_mount(self._share.path))
        if self._tree is not None:
            self._tree.check()
        with self._lock:
            self._twins, self._ahead, self._since = {}, {}, time.monotonic()

    @property
    def gives_text(self) -> bool:
        """Whether the text must be read by `text`, since the mount's file ids are its own."""
        return self._own_text

    def text(self, path: bytes, most: int) -> bytes:
        """A note's text over SMB, at most `most` bytes. Raises NoteUnreadable, OSError, ShareUnavailable."""
        before = self._ask(path)
        _require(before)
        raw = self._session.read(self._address(path), most)
        if self._ask(path) != before:
            raise NoteUnreadable("it changed on the server while it was read")
        return raw

    def session(self) -> SmbSession:
        """The session, for `doctor`."""
        return self._session

    def _why_closed(self) -> str:
        """Why nobody may be shown anything of this share, "" if it is open. Raises ShareUnavailable."""
        if not self._session.open():
            return self._session.closed
        if self._probed_at is None or time.monotonic() - self._probed_at > _PROBE_EVERY_S:
            self._forced = shows_one_user(self._session, self._share.path, self._prefix)
            self._probed_at = time.monotonic()
        return self._forced

    def _ask(self, path: bytes) -> Answer:
        return self._session.answers([self._address(path)])[0]

    def _address(self, path: bytes) -> str:
        """The path as SMB says it. Raises NoteUnreadable for one that it cannot address one to one."""
        folder = b""
        for name in path.split(b"/") if path else ():
            if name in self._twins.get(folder, ()):
                word = name.decode("utf-8", "backslashreplace")
                raise NoteUnreadable(
                    f"it cannot be asked for over SMB: {word!r} has a twin that differs in case or form only",
                    permanent=True,
                )
            folder = folder + b"/" + name if folder else name
        return smb_path(self._prefix, path)

    def _paired(self, fd: int, path: bytes, answer: Answer) -> Answer:
        """The answer, if it speaks of the open file; a change on its way is waited for a little."""
        for pause in (*_PAUSES_S, None):
            _require(answer)
            wrong = mismatch(answer, os.fstat(fd), same_ids=not self._own_text)
            if wrong is None:
                return answer
            if pause is None or not wrong.moving:
                raise _unpaired(wrong)
            time.sleep(pause)
            answer = self._ask(path)
        raise AssertionError  # pragma: no cover: the loop returns or raises in its last round

    def _mode(self, path: bytes, answer: Answer) -> PosixState | None:
        """The real mode from posix_path, None without one. Raises NoteUnreadable if it is not to be had."""
        if self._tree is None:
            return None
        try:
            mode = self._tree.mode(path)
        except OSError as error:
            raise NoteUnreadable(f"its mode cannot be read at posix_path: {error.strerror}") from error
        wrong = mode_mismatch(answer, mode)
        if wrong is not None:
            raise _unpaired(wrong)
        return mode.state


def _require(answer: Answer) -> None:
    """Raise OSError for a file that is gone, NoteUnreadable for one that was refused."""
    if answer.status in GONE:
        raise OSError(errno.ENOENT, "the file server has no such file")
    if answer.status:
        raise NoteUnreadable(why_unreadable(answer.status))


def _unpaired(wrong: Mismatch) -> NoteUnreadable:
    return NoteUnreadable(f"its permissions may be of another file: {wrong.reason}")


def _has_own_file_ids(mount: Mount) -> bool:
    """Whether the mount invents file ids (mount.cifs(8), noserverino)."""
    return mount.kind in ("cifs", "smb3") and "noserverino" in mount.options
