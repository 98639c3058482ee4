"""The directory in a file of ours, people.toml: read anew when it changed, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from acl.directories.nss import OVERFLOW_UID
from acl.directories.people import People, parse_people
from acl.directory import Account, Memberships, split_kind
from acl.sid import (
    HOST,
    UNIX_USERS,
    Sid,
    is_sid,
    is_well_known,
    qualify,
    relative_class,
    server_of,
    unix_user,
)
from notewarden.errors import AskerUnknown, ConfigError, DirectoryUnreachable
from notewarden.trust import read_trusted


class FileDirectory:
    """Implements Directory. The file is read at each use and parsed when its bytes changed.

    A file that is missing, invalid or not to be trusted gives no answer at all, whatever was read before.
    """

    def __init__(self, path: Path, *, shares: Sequence[Path] = ()) -> None:
        """Raises ConfigError naming file and fault if the file cannot be used as it stands."""
        self._path = path
        self._shares = tuple(shares)
        self._lock = Lock()
        self._read: tuple[bytes, People] | None = None
        self._load()

    def user(self, name_or_sid: str) -> Account:
        """The user with this name or any of its SIDs. Raises AskerUnknown, DirectoryUnreachable."""
        people = self._people()
        entry = people.users.get(name_or_sid)
        if entry is None and is_sid(name_or_sid):
            entry = people.by_sid.get(qualify(name_or_sid, HOST))
        if entry is None or entry.kind != "user":
            raise AskerUnknown(f"{name_or_sid!r} is no user of {self._path}; add a [users] table for them.")
        return Account(entry.sid, entry.name)

    def user_by_uid(self, uid: int) -> Account:
        """The user that carries the uid's SID (S-1-22-1-UID): equal names are no reason to believe anything.

        Raises AskerUnknown for 65534 and for a uid that no user carries, DirectoryUnreachable.
        """
        entry = self._people().by_sid.get(unix_user(uid, HOST))
        if uid == OVERFLOW_UID or entry is None or entry.kind != "user":
            raise AskerUnknown(
                f'uid {uid} is no user of {self._path}; add sids = ["S-1-22-1-{uid}"] to the user '
                "it stands for."
            )
        return Account(entry.sid, entry.name)

    def resolve(self, name: str) -> Sid:
        """The SID of a user or group name; ``user:`` or ``group:`` before it where both exist."""
        people = self._people()
        kind, plain = split_kind(name)
        found = [people.users.get(plain)] if kind != "group" else []
        found += [people.groups.get(plain)] if kind != "user" else []
        entries = [entry for entry in found if entry is not None]
        if len(entries) > 1:
            raise LookupError(f"is both a user and a group; write 'user:{plain}' or 'group:{plain}'")
        if not entries:
            raise LookupError(f"is no user or group of {self._path}")
        return entries[0].sid

    def name_of(self, sid: Sid) -> str | None:
        """The name of the user or group that carries a SID."""
        entry = self._people().by_sid.get(sid)
        return None if entry is None else entry.name

    def enumerable(self, sid: Sid) -> bool:
        """True for what the file carries, for well-known SIDs, and for unix users of this host.

        A uid is one person, not a group: who carries another one is not that person, and who carries none
        counts as possibly being it by the token's own marker.
        """
        one_person = relative_class(sid) == UNIX_USERS and server_of(sid) == HOST
        return one_person or is_well_known(sid) or sid in self._people().by_sid

    def kind_of(self, sid: Sid) -> str | None:
        """ "user" or "group" for a SID the file carries."""
        entry = self._people().by_sid.get(sid)
        return None if entry is None else entry.kind

    def listed(self) -> frozenset[Sid]:
        """Every SID the file carries: what it does not carry any more may have been lost by mistake."""
        return frozenset(self._people().by_sid)

    def accounts(self) -> tuple[Account, ...] | None:
        """Every user of the file."""
        return tuple(Account(entry.sid, entry.name) for entry in self._people().users.values())

    def memberships(self, account: Account) -> Memberships:
        """All SIDs of the user and of its groups, nested ones too; cycles do no harm.

        A class of this host's ids is certain only where the file says something of it for this user.
        Raises AskerUnknown if the user is gone, DirectoryUnreachable.
        """
        people = self._people()
        entry = people.by_sid.get(account.sid)
        if entry is None or entry.kind != "user":
            raise AskerUnknown(f"{account.name!r} is no longer a user of {self._path}; log in again.")
        through = people.through(entry)
        certain = {f"{relative_class(sid)}@{HOST}" for sid in through if server_of(sid) == HOST}
        return Memberships(through, frozenset(certain))

    def _people(self) -> People:
        try:
            return self._load()
        except ConfigError as error:
            raise DirectoryUnreachable(f"{error} Until then nobody can be answered.") from error

    def _load(self) -> People:
        """What the file says now. Reading it is cheaper than any hint that it did not change is safe."""
        raw = read_trusted(self._path, self._shares)
        with self._lock:
            kept = self._read
        if kept is not None and kept[0] == raw:
            return kept[1]
        try:
            people = parse_people(raw.decode("utf-8"))
        except (ValueError, RecursionError) as error:  # TOML and UTF-8 errors are ValueErrors
            raise ConfigError(f"{os.fspath(self._path)} is not valid: {error}; correct it.") from error
        with self._lock:
            self._read = (raw, people)
        return people
