"""The directory of a NAS's own accounts: users, groups and nested aliases, asked over SAMR (extra nas)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from acl.directories.smb.samr import Refused, Samr, SamrLogin, SamrUser
from acl.directory import Account, Memberships, split_kind
from acl.sid import (
    AUTHENTICATED,
    BUILTIN,
    EVERYONE,
    NETWORK,
    UNIX_USERS,
    Sid,
    bare,
    is_sid,
    is_well_known,
    qualify,
    relative_class,
    server_of,
    smb_server_id,
)
from notewarden.errors import AskerUnknown, DirectoryUnreachable

_T = TypeVar("_T")
_MOST_ROUNDS = 20  # of aliases in aliases; a server that nests deeper is not believed


@dataclass(frozen=True)
class SmbDirectorySettings:
    """Which NAS, and by which account: an ordinary one, that may look people up and nothing more.

    `uids` says for whom a uid of this host stands; it is never guessed from equal names. `sole`: every list
    in use comes from this server (or is declared), so what it tells of its own groups is all there is.
    """

    server: str
    port: int
    username: str
    password: str = field(repr=False)
    uids: Mapping[str, str] = field(default_factory=dict)
    sole: bool = False

    @property
    def identity(self) -> str:
        """The server's name behind its relative SIDs, the same that lists read from it have."""
        return smb_server_id(self.server, self.port)


class SmbDirectory:
    """Implements Directory. Threads may share it."""

    def __init__(self, settings: SmbDirectorySettings) -> None:
        """Raises ConfigError without the package impacket."""
        self._settings = settings
        self._server = settings.identity
        login = SamrLogin(settings.server, settings.port, settings.username, settings.password)
        self._samr = Samr(login)

    def user(self, name_or_sid: str) -> Account:
        """The one enabled user with this name or SID. Raises AskerUnknown, DirectoryUnreachable."""
        found = self._find_user(name_or_sid)
        return Account(found.sid, found.name)

    def user_by_uid(self, uid: int) -> Account:
        """The user that [directory] uids names for this uid. Raises AskerUnknown where it names nobody."""
        named = self._settings.uids.get(str(uid))
        if named is None:
            raise AskerUnknown(f"uid {uid} stands for no user of the NAS; name one in [directory] uids.")
        return self.user(named)

    def resolve(self, name: str) -> Sid:
        """The SID of the one user or group of this name; ``user:``, ``group:`` before it tell which.

        Raises LookupError as the interface says, DirectoryUnreachable.
        """
        kind, plain = split_kind(name)
        found = [sid for sid, what in self._told(lambda: self._samr.named(plain)) if kind in (None, what)]
        if len(found) != 1:
            raise LookupError("is no user or group of the NAS" if not found else "means several principals")
        return qualify(found[0], self._server)

    def name_of(self, sid: Sid) -> str | None:
        """The name of a user, group or alias of the NAS."""
        if server_of(sid) not in (None, self._server):
            return None
        told = self._told(lambda: self._samr.name_and_kind(Sid(bare(sid))))
        return None if told is None else told[0]

    def kind_of(self, sid: Sid) -> Literal["user", "group"] | None:
        """Whether the NAS has a SID as a user or as a group or alias."""
        if server_of(sid) not in (None, self._server):
            return None
        told = self._told(lambda: self._samr.name_and_kind(Sid(bare(sid))))
        return None if told is None else told[1]

    def enumerable(self, sid: Sid) -> bool:
        """True for well-known SIDs and the NAS's own users, groups and aliases, whose members it tells.

        A unix group without a mapping it does not tell of.
        """
        if is_well_known(sid):
            return True
        if server_of(sid) is not None:
            return server_of(sid) == self._server and relative_class(sid) in (BUILTIN, UNIX_USERS)
        return sid.rpartition("-")[0] == self._told(self._samr.domain)

    def close(self) -> None:
        """Close the connection; the next look-up makes another."""
        self._samr.close()

    def accounts(self) -> tuple[Account, ...] | None:
        """None: a NAS that belongs to a domain lists its own accounts only."""
        return None

    def memberships(self, account: Account) -> Memberships:
        """All groups and aliases as the server puts them into a log-in, and the unix SID that Samba adds.

        A server looks once for aliases of its own that hold the user, its groups, or everybody, and then for
        built-in ones that hold any of all these (seen on Samba 4.17). An alias inside another alias of its
        own does not count there; here it is a possible membership, so that its denies count.
        Raises AskerUnknown for an account that is gone or disabled, DirectoryUnreachable.
        """
        user = self._find_user(account.sid)
        through: dict[Sid, tuple[Sid, ...]] = {user.sid: ()}
        through |= dict.fromkeys(self._told(lambda: self._samr.groups(user.sid)), ())
        possible = self._add_aliases(user.sid, through)
        unix = self._told(lambda: self._samr.unix_user(user.name))
        if unix is not None:
            through[unix] = ()
        named = {qualify(sid, self._server): way for sid, way in through.items()}
        told = {BUILTIN, *({UNIX_USERS} if unix is not None else ())}
        certain = {f"{family}@{self._server}" for family in told} if self._settings.sole else set()
        return Memberships(named, frozenset(certain), possible)

    def _add_aliases(self, user: Sid, through: dict[Sid, tuple[Sid, ...]]) -> frozenset[Sid]:
        """Add the aliases to `through`; return those that hold one of them in turn."""
        holders: dict[Sid, tuple[Sid, ...]] = dict.fromkeys((EVERYONE, AUTHENTICATED, NETWORK), ())
        own = self._aliases_of(holders | through, user, builtin=False)
        known = through | own
        through |= own | self._aliases_of(holders | known, user, builtin=True)
        beyond: dict[Sid, tuple[Sid, ...]] = own
        nested: set[Sid] = set()
        for _ in range(_MOST_ROUNDS):
            further = self._aliases_of(beyond, user, builtin=False)
            beyond = {sid: way for sid, way in further.items() if sid not in through and sid not in nested}
            if not beyond:
                return frozenset(nested)
            nested |= beyond.keys()
        raise DirectoryUnreachable("The NAS nests groups too deeply to be believed, so nobody is answered.")

    def _aliases_of(
        self, members: Mapping[Sid, tuple[Sid, ...]], user: Sid, *, builtin: bool
    ) -> dict[Sid, tuple[Sid, ...]]:
        """The aliases that hold one of `members` directly, each with the way to it."""
        found: dict[Sid, tuple[Sid, ...]] = {}
        for sid, way in members.items():
            step = way if sid == user else (*way, qualify(sid, self._server))
            for alias in self._told(lambda sid=sid: self._samr.aliases(sid, builtin=builtin)):  # type: ignore[misc]
                found.setdefault(alias, step)
        return found

    def _find_user(self, name_or_sid: str) -> SamrUser:
        found = self._told(
            lambda: (
                self._samr.user_by_sid(Sid(name_or_sid))
                if is_sid(name_or_sid)
                else self._samr.user(name_or_sid)
            )
        )
        if found is None:
            raise AskerUnknown(f"{name_or_sid!r} is no user of the NAS; use the name of one.")
        if not found.usable:
            raise AskerUnknown(f"The account {found.name!r} is disabled or has expired on the NAS.")
        return found

    def _told(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except Refused as error:
            raise DirectoryUnreachable(
                f"The NAS {self._server} does not tell users and groups ({error}), so nobody can be "
                "answered; check [directory] server, username and password_file."
            ) from error
