"""The session with the server: made when it is needed, made anew once when it broke."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

from acl.sources.smb.client import Answer, Login, SmbClient, SmbGone, SmbRefused, as_guest
from notewarden.errors import ConfigError, ShareRefused, ShareUnavailable
from notewarden.secret_files import read_secret

if TYPE_CHECKING:
    from notewarden.settings_sections import ShareAclSettings

Result = TypeVar("Result")
Connect = Callable[[Login], SmbClient]


def login_of(share: str, acl: ShareAclSettings) -> Login:
    """The log-in that a share's configuration describes. Raises ConfigError naming the missing key."""
    for key, value in (("server", acl.server), ("share", acl.share), ("username", acl.username)):
        if not value:
            raise ConfigError(f'Share {share!r}: [share.acl] {key} must be set with source = "smb".')
    if acl.require_signing and acl.client == "pysmb":
        raise ConfigError(
            f"Share {share!r}: pysmb checks no signatures while it logs in; with require_signing = true "
            'set client = "auto" or "smbprotocol".'
        )
    return Login(
        host=acl.server,
        port=acl.port,
        share=acl.share.strip("/").split("/")[0],
        admin_share=acl.admin_share,
        username=acl.username,
        password=_password(share, acl.password_file),
        require_signing=acl.require_signing,
    )


def connect_with(client: str, login: Login) -> SmbClient:
    """Connect by the configured client. Raises SmbRefused, SmbGone.

    ``auto`` is pysmb, the faster one, unless signatures are demanded or the server demands more than it has.
    """
    from acl.sources.smb.smbprotocol_client import SmbprotocolClient

    if client == "smbprotocol" or (client == "auto" and login.require_signing):
        return SmbprotocolClient(login)
    from acl.sources.smb.pysmb_client import PysmbClient

    try:
        return PysmbClient(login)
    except SmbRefused as error:
        if client == "pysmb" or not error.demands_more:
            raise
    return SmbprotocolClient(login)


class SmbSession:
    """The session of one share. Threads may share it.

    `closed` is why the whole share is closed to everybody, "" if it is not: the server takes us for a guest.
    """

    def __init__(self, login: Login, connect: Connect) -> None:
        self.login = login
        self.closed = ""
        self._connect = connect
        self._client: SmbClient | None = None
        self._lock = RLock()

    def __del__(self) -> None:
        client = getattr(self, "_client", None)
        if client is not None:
            client.close()

    def answers(self, paths: Sequence[str]) -> list[Answer]:
        """Ask for many descriptors. Raises ShareUnavailable when the server cannot be asked."""
        return self._with(lambda client: client.answers(paths))

    def maximal_access(self, path: str) -> int | None:
        """The session's own rights on a file. Raises ShareUnavailable."""
        return self._with(lambda client: client.maximal_access(path))

    def read(self, path: str, most: int) -> bytes:
        """The text of a note. Raises ShareUnavailable, OSError."""
        return self._with(lambda client: client.read(path, most))

    def described(self) -> str:
        """Client and dialect in use, for people. Raises ShareUnavailable."""
        return self._with(lambda client: f"{client.name}, SMB {client.dialect}")

    def reset(self) -> None:
        """Forget the session; the next question makes a new one, with the server as it is then."""
        with self._lock:
            client, self._client, self.closed = self._client, None, ""
        if client is not None:
            client.close()

    def open(self) -> bool:
        """Connect if there is no connection; tell whether the share may be shown. Raises ShareUnavailable."""
        with self._lock:
            if self._client is None and not self.closed:
                self._client = self._connected()
            return not self.closed

    def _with(self, ask: Callable[[SmbClient], Result]) -> Result:
        with self._lock:
            for attempt in (1, 2):
                if not self.open() or self._client is None:
                    raise ShareUnavailable(f"{self.closed}.")
                try:
                    return ask(self._client)
                except SmbGone as error:
                    self.reset()
                    if attempt == 2:
                        raise ShareUnavailable(str(error)) from error
            raise AssertionError  # pragma: no cover: the second attempt returns or raises

    def _connected(self) -> SmbClient | None:
        try:
            client = self._connect(self.login)
        except SmbRefused as error:
            if error.guest:
                self.closed = str(error).rstrip(".")
                return None
            kind = ShareUnavailable if error.unreachable else ShareRefused
            raise kind(str(error)) from error
        except SmbGone as error:
            raise ShareUnavailable(str(error)) from error
        if client.guest:
            client.close()
            self.closed = as_guest(self.login)
            return None
        return client


def _password(share: str, file: Path | None) -> str:
    secret = read_secret(file, "NOTEWARDEN_SMB_PASSWORD")
    if secret is None:
        raise ConfigError(
            f'Share {share!r}: [share.acl] password_file must be set with source = "smb", '
            "or $NOTEWARDEN_SMB_PASSWORD."
        )
    return secret
