"""Who asks: from a uid that the kernel vouches for to an asker with a token."""

from __future__ import annotations

import os
import re
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from acl.directory import Account, Directory
from acl.sid import HOST, Sid, unix_user
from acl.token import Token, TokenCache, require_token
from notewarden.errors import AskerNotAllowed, AskerUnknown, ConfigError
from notewarden.settings import Settings

NOBODY = 65534
_ALL_IDS = 4294967295
_UCRED = struct.Struct("3i")


@dataclass(frozen=True)
class Asker:
    """Who asks (`actor`), and with whose rights (`account`, `token`): the same, unless root or an admin acts
    for somebody. `token` is None for a service's account that has no question of its own.
    """

    actor: Sid
    account: Account
    token: Token | None
    privileged: bool

    @property
    def acts_for_another(self) -> bool:
        """Whether this is an impersonation."""
        return self.actor != self.account.sid

    def require_token(self) -> Token:
        """Return the token; raises AskerUnknown where there is none."""
        return require_token(self.token)

    def require_privileged(self, wish: str) -> None:
        """Raise AskerNotAllowed unless the actor is root or an account of the service."""
        if not self.privileged:
            raise AskerNotAllowed(f"Only root and the service's own accounts may use {wish}.")


class Doorkeeper:
    """Turns uids into askers for one door. Threads may share it."""

    def __init__(self, directory: Directory, settings: Settings, *, service: bool) -> None:
        self._directory = directory
        self._tokens = TokenCache(directory, settings.directory.token_ttl)
        self._fresh = settings.answerer.late_check == "require"
        self._service = service
        self._privileged = {0, *_owner(settings.state_dir)} | ({os.geteuid()} if service else set())
        self._least_uid = uid_min() if service else 0

    def asker(self, uid: int, as_user: str | None = None, *, may_lack: bool = False) -> Asker:
        """Return the asker behind `uid`, or, for those who may, with the rights of `as_user`.

        `may_lack` lets a privileged account without a question of its own through, without a token. Raises
        AskerUnknown, AskerNotAllowed, DirectoryUnreachable.
        """
        if uid == NOBODY or uid < 0:
            raise AskerUnknown("The account you come from cannot be told (uid 65534), so nothing is shown.")
        privileged = uid in self._privileged
        if as_user is not None:
            if not privileged:
                raise AskerNotAllowed(
                    "Only root, the service's own accounts and the index's owner may use --as."
                )
            return self._for(self._directory.user(as_user), self._actor(uid), privileged)
        if self._service and uid < self._least_uid:
            if privileged and may_lack:
                return Asker(self._actor(uid), Account(self._actor(uid), f"uid {uid}"), None, True)
            raise AskerNotAllowed(
                f"Your account (uid {uid}) is a system account and has no question of its own; root and the "
                "service's accounts may ask for somebody with --as USER."
            )
        account = self._directory.user_by_uid(uid)
        return self._for(account, account.sid, privileged)

    def _for(self, account: Account, actor: Sid, privileged: bool) -> Asker:
        return Asker(actor, account, self._tokens.token(account, fresh=self._fresh), privileged)

    def _actor(self, uid: int) -> Sid:
        try:
            return self._directory.user_by_uid(uid).sid
        except AskerUnknown:  # root is often in no directory
            return unix_user(uid, HOST)


def peer_uid(connection: socket.socket) -> int:
    """Return the effective uid that the other end of a Unix socket had when it connected (SO_PEERCRED)."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    return int(_UCRED.unpack(raw)[1])


def uid_min(login_defs: Path = Path("/etc/login.defs")) -> int:
    """Return the first uid of people on this machine: UID_MIN, 1000 where it is not set."""
    try:
        found = re.search(r"^\s*UID_MIN\s+(\d+)", login_defs.read_text("utf-8", "replace"), re.MULTILINE)
    except OSError:
        return 1000
    return int(found.group(1)) if found else 1000


def require_all_ids(uid_map: Path = Path("/proc/self/uid_map")) -> None:
    """Raise ConfigError unless every uid of the machine can be told from every other here.

    In a user namespace that maps only some, all others read as 65534.
    """
    try:
        lines = [tuple(map(int, line.split())) for line in uid_map.read_text("ascii").splitlines()]
    except OSError as error:
        raise ConfigError(f"{uid_map} cannot be read: {error.strerror}; askers cannot be told.") from error
    if lines != [(0, 0, _ALL_IDS)]:
        raise ConfigError(
            "This process does not see all user ids (a user namespace), so askers cannot be told apart; "
            "start it outside, and with PrivateUsers= off."
        )


def _owner(folder: Path) -> set[int]:
    try:
        return {folder.stat().st_uid}
    except OSError:
        return set()
