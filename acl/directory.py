"""Directories: who exists, which groups they are in, what a name means. One interface, several sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from acl.sid import EVERYONE, HOST, Sid, is_sid, qualify, smb_server_id
from notewarden.errors import ConfigError

if TYPE_CHECKING:
    from notewarden.settings import Settings


@dataclass(frozen=True)
class Account:
    """One user of a directory: its SID (what everything is keyed by) and its name (for people to read)."""

    sid: Sid
    name: str


@dataclass(frozen=True)
class Memberships:
    """What a directory knows of one account.

    ``through`` has every certain SID of it (its own further SIDs, all groups transitively) with the groups
    passed on the way. ``certain`` names the classes of this host whose memberships are completely known
    (``"S-1-22-2@host"``); one of a file server only where no other server's lists are in use. ``possible``
    are memberships that nobody can rule out: they count for denies.
    """

    through: Mapping[Sid, tuple[Sid, ...]]
    certain: frozenset[str] = field(default_factory=frozenset)
    possible: frozenset[Sid] = field(default_factory=frozenset)


class Directory(Protocol):
    """Look-ups raise AskerUnknown for nobody, DirectoryUnreachable when nobody can tell; never "empty"."""

    def user(self, name_or_sid: str) -> Account:
        """The one user with this name or SID. Raises AskerUnknown, DirectoryUnreachable."""
        ...

    def user_by_uid(self, uid: int) -> Account:
        """The one user this uid of this host stands for, explicitly; uid 65534 is nobody. Raises as above."""
        ...

    def resolve(self, name: str) -> Sid:
        """The one SID a declared user or group name means.

        ``user:NAME`` and ``group:NAME`` tell a user from a group of the same name. Raises LookupError if the
        name means nobody or more than one, DirectoryUnreachable if nobody can tell.
        """
        ...

    def name_of(self, sid: Sid) -> str | None:
        """The name people know a SID by, None if it has none here."""
        ...

    def enumerable(self, sid: Sid) -> bool:
        """Whether membership is known for every asker; where it is not, a deny of it hits everybody."""
        ...

    def accounts(self) -> tuple[Account, ...] | None:
        """Every user there is, None where the directory cannot list them all. Raises DirectoryUnreachable."""
        ...

    def memberships(self, account: Account) -> Memberships:
        """All certain memberships. Raises AskerUnknown if it is gone, DirectoryUnreachable if incomplete."""
        ...


def listed_by(directory: Directory) -> frozenset[Sid] | None:
    """The SIDs whose members a directory knows only because it lists them, None where it lists none.

    A directory that has such SIDs offers them as ``listed()``. One that is gone from there may have been
    deleted or forgotten: nobody can tell any more whom its denies were for. Raises DirectoryUnreachable.
    """
    listed = getattr(directory, "listed", None)
    return None if listed is None else frozenset(listed())


def kind_of(directory: Directory, sid: Sid) -> Literal["user", "group"] | None:
    """Whether a SID is a user's or a group's, None where the directory does not say.

    A directory that can tell offers ``kind_of(sid)``. Raises DirectoryUnreachable.
    """
    tell = getattr(directory, "kind_of", None)
    told = None if tell is None else tell(sid)
    return told if told in ("user", "group") else None


def resolve_name(directory: Directory, name: str) -> Sid:
    """The SID a configured name means: ``everyone``, a SID (relative to this host), or the directory's.

    Raises LookupError when the name does not mean exactly one principal.
    """
    if name == "everyone":
        return EVERYONE
    if is_sid(name):
        return qualify(name, HOST)
    return directory.resolve(name)


def split_kind(name: str) -> tuple[str | None, str]:
    """Split ``user:NAME`` or ``group:NAME`` into kind and name; a plain name has the kind None."""
    kind, colon, rest = name.partition(":")
    return (kind, rest) if colon and kind in ("user", "group") else (None, name)


def make_directory(settings: Settings) -> Directory:
    """The directory the configuration names. Raises ConfigError where it is unknown or cannot be loaded."""
    source = settings.directory.source
    if source == "nss":
        from acl.directories.nss import NssDirectory

        return NssDirectory()
    if source == "file":
        from acl.directories.file import FileDirectory

        if settings.directory.file is None:
            raise ConfigError(
                "[directory] source is 'file', but no file is named; set file = \"/path/people.toml\"."
            )
        return FileDirectory(settings.directory.file, shares=tuple(share.path for share in settings.shares))
    if source == "ldap":
        from acl.directories.ldap import LdapDirectory, LdapSettings

        given = settings.directory
        secret = _password(settings)
        return LdapDirectory(
            LdapSettings(given.url, given.base, given.username, secret, given.ca_file, dict(given.uids))
        )
    if source == "smb":
        from acl.directories.smb.directory import SmbDirectory, SmbDirectorySettings

        given = settings.directory
        login = (given.server, given.port, given.username, _password(settings))
        found = SmbDirectorySettings(*login, dict(given.uids))
        return SmbDirectory(replace(found, sole=_is_sole(settings, found.identity)))
    raise ConfigError(f"[directory] source {source!r} is not known.")


def _is_sole(settings: Settings, server: str) -> bool:
    """Whether every list of this configuration is the server's, or declared: no other server's ids occur."""
    lists = [share.acl for share in settings.shares if share.acl.source != "declared"]
    return all(
        acl.source in ("smb", "cifs") and smb_server_id(acl.server, acl.port) == server for acl in lists
    )


def _password(settings: Settings) -> str:
    from notewarden.secret_files import read_secret

    secret = read_secret(settings.directory.password_file, "NOTEWARDEN_DIRECTORY_PASSWORD")
    if not secret:
        raise ConfigError("[directory] password_file is not set; without a password nobody is let in.")
    return secret
