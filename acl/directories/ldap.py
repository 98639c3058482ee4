"""The directory of an Active Directory domain, asked over LDAP with verified TLS (needs the extra ldap).

A user's groups come from tokenGroups, which the domain controller computes: every group, nested ones and the
primary one too (MS-ADTS 3.1.1.4.5.19). Where it is absent nobody can tell the groups, which is an error and
never "no groups".
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlsplit

from acl.directory import Account, Memberships, split_kind
from acl.sid import Sid, is_sid, is_well_known, relative_class
from acl.sid_bytes import pack_sid, unpack_sid
from notewarden.errors import AskerUnknown, ConfigError, DirectoryUnreachable

_PATIENCE_S = 10
_DISABLED = 0x2  # userAccountControl, ADS_UF_ACCOUNTDISABLE
_NEVER = (0, 0x7FFFFFFFFFFFFFFF)  # accountExpires (MS-ADA1 2.1)
_FILETIME_EPOCH_S = 11_644_473_600
_USER = "(&(objectClass=user)(!(objectClass=computer)){})"
_ANY = "(&(|(objectClass=user)(objectClass=group))(!(objectClass=computer)){})"
_ATTRIBUTES = ("sAMAccountName", "objectSid", "objectClass", "userAccountControl", "accountExpires")

_T = TypeVar("_T")


@dataclass(frozen=True)
class LdapSettings:
    """Where the domain is asked: `url` is ldaps://HOST[:PORT], or ldap:// with StartTLS. `base` is its root.

    `uids` says for whom a uid of this host stands, by name or SID; it is never guessed from equal names.
    """

    url: str
    base: str
    username: str
    password: str
    ca_file: Path | None = None
    uids: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"LdapSettings({self.url!r}, {self.username!r})"


@dataclass(frozen=True)
class _Entry:
    """One object: attribute names in lower case, raw values."""

    dn: str
    values: Mapping[str, Sequence[bytes]]

    def one(self, name: str) -> bytes | None:
        found = self.values.get(name.lower(), ())
        return found[0] if len(found) == 1 else None

    @property
    def name(self) -> str:
        return (self.one("sAMAccountName") or b"").decode("utf-8", "replace")

    @property
    def is_user(self) -> bool:
        return any(one.lower() == b"user" for one in self.values.get("objectclass", ()))


class LdapDirectory:
    """Implements Directory. Threads may share it; one connection is kept and made anew when it breaks."""

    def __init__(self, settings: LdapSettings) -> None:
        """Raises ConfigError without the package ldap3, or for a url that would go unverified."""
        try:
            import ldap3
        except ImportError as error:
            raise ConfigError(
                "[directory] source = \"ldap\" needs the package ldap3: pip install 'notewarden[ldap]'."
            ) from error
        self._ldap3 = ldap3
        self._settings = settings
        self._make_server()
        self._connection: Any = None
        self._domain: Sid | None = None
        self._lock = Lock()

    def user(self, name_or_sid: str) -> Account:
        """The one enabled user with this logon name or SID. Raises AskerUnknown, DirectoryUnreachable."""
        entry = self._find_user(name_or_sid)
        _require_usable(entry)
        return _account(entry)

    def user_by_uid(self, uid: int) -> Account:
        """The user that [directory] uids names for this uid. Raises AskerUnknown where it names nobody."""
        named = dict(self._settings.uids).get(str(uid))
        if named is None:
            raise AskerUnknown(f"uid {uid} stands for no user of the domain; name one in [directory] uids.")
        return self.user(named)

    def resolve(self, name: str) -> Sid:
        """The SID of the one user or group with this logon name; ``user:``, ``group:`` before it tell which.

        Raises LookupError as the interface says, DirectoryUnreachable.
        """
        kind, plain = split_kind(name)
        found = [
            entry
            for entry in self._search(_ANY.format(self._equals("sAMAccountName", plain)))
            if kind is None or entry.is_user == (kind == "user")
        ]
        if len(found) != 1:
            raise LookupError(
                "is no user or group of the domain" if not found else "means several principals"
            )
        return _sid(found[0])

    def name_of(self, sid: Sid) -> str | None:
        """The logon name of the object that carries a SID."""
        packed = pack_sid(sid)
        if packed is None:
            return None
        found = self._search(_ANY.format(self._equals("objectSid", packed)))
        return found[0].name or None if len(found) == 1 else None

    def enumerable(self, sid: Sid) -> bool:
        """True for well-known SIDs and those of the domain itself, all of which tokenGroups would tell.

        A file server's own groups, and another domain's, it does not tell.
        """
        if is_well_known(sid):
            return True
        return relative_class(sid) is None and self._domain_sid() == sid.rpartition("-")[0]

    def accounts(self) -> tuple[Account, ...] | None:
        """None: a domain may be large, and a search is cut off without a word that it was."""
        return None

    def memberships(self, account: Account) -> Memberships:
        """All groups by tokenGroups. The controller's built-in groups (S-1-5-32) are left out: a file server
        has its own of the same SIDs. Raises AskerUnknown for an account that is gone or disabled.
        """
        entry = self._find_user(account.sid)
        _require_usable(entry)
        read = self._search("(objectClass=*)", base=entry.dn, scope="BASE", attributes=("tokenGroups",))
        raw = read[0].values.get("tokengroups", ()) if len(read) == 1 else ()
        if not raw:
            raise DirectoryUnreachable(
                f"The domain controller does not tell the groups of {account.name!r} (tokenGroups is "
                "absent), so nobody is answered; let the account in [directory] username read it."
            )
        groups = {_unpacked(one): () for one in raw}
        through: dict[Sid, tuple[Sid, ...]] = {account.sid: ()}
        through |= {sid: way for sid, way in groups.items() if relative_class(sid) is None}
        return Memberships(through)

    def _find_user(self, name_or_sid: str) -> _Entry:
        term = self._term(name_or_sid)
        found = self._search(_USER.format(term)) if term is not None else []
        if len(found) != 1:
            several = "more than one account of the domain" if found else "no account of the domain"
            raise AskerUnknown(f"{name_or_sid!r} is {several}; use the logon name of one.")
        return found[0]

    def _term(self, name_or_sid: str) -> str | None:
        if not is_sid(name_or_sid):
            return self._equals("sAMAccountName", name_or_sid)
        packed = pack_sid(Sid(name_or_sid))
        return None if packed is None else self._equals("objectSid", packed)

    def _equals(self, attribute: str, value: str | bytes) -> str:
        from ldap3.utils.conv import escape_bytes, escape_filter_chars

        shown = escape_bytes(value) if isinstance(value, bytes) else escape_filter_chars(value)
        return f"({attribute}={shown})"

    def _domain_sid(self) -> Sid | None:
        if self._domain is None:
            found = self._search("(objectClass=*)", scope="BASE", attributes=("objectSid",))
            raw = found[0].one("objectSid") if len(found) == 1 else None
            self._domain = None if raw is None else _unpacked(raw)
        return self._domain

    def _search(
        self,
        query: str,
        *,
        base: str | None = None,
        scope: str = "SUBTREE",
        attributes: Sequence[str] = _ATTRIBUTES,
    ) -> list[_Entry]:
        """Every object that matches, at most two: more than one is as good as none here."""

        def ask(connection: Any) -> list[_Entry]:
            connection.search(
                base or self._settings.base,
                query,
                search_scope=scope,
                attributes=list(attributes),
                size_limit=2,
                time_limit=_PATIENCE_S,
            )
            code = connection.result["result"]
            if code == 32:  # noSuchObject: it was deleted meanwhile
                return []
            if code not in (0, 4):  # 4: sizeLimitExceeded, which two entries may well be
                raise DirectoryUnreachable(
                    f"The domain controller refused a search ({connection.result['description']}), so nobody "
                    "is answered; check [directory] base and username."
                )
            return [_entry(one) for one in connection.response if one.get("type") == "searchResEntry"]

        return self._with_connection(ask)

    def _with_connection(self, work: Callable[[Any], _T]) -> _T:
        """Do `work` on the kept connection, once more on a new one if that broke."""
        from ldap3.core.exceptions import LDAPException

        with self._lock:
            for fresh in (False, True):
                if fresh or self._connection is None:
                    self._connection = self._connect()
                try:
                    return work(self._connection)
                except (LDAPException, OSError):
                    self._drop()
        raise DirectoryUnreachable("The domain controller broke off, so nobody can be answered now.")

    def close(self) -> None:
        """Close the connection; the next look-up makes another."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            _close(connection)

    def _connect(self) -> Any:
        from ldap3.core.exceptions import LDAPException

        settings, ldap3 = self._settings, self._ldap3
        connection = ldap3.Connection(
            self._make_server(),  # anew: it remembers an address that failed as one not to be tried
            user=settings.username,
            password=settings.password,
            receive_timeout=_PATIENCE_S,
            auto_referrals=False,
            read_only=True,
            raise_exceptions=False,
        )
        try:
            connection.open()
            if urlsplit(settings.url).scheme == "ldap":
                connection.start_tls()
                if not connection.tls_started:
                    raise OSError("no TLS")
            bound = connection.bind()
        except (LDAPException, OSError) as error:
            _close(connection)
            raise DirectoryUnreachable(
                f"The domain controller {settings.url} cannot be reached over verified TLS "
                f"({type(error).__name__}), so nobody can be answered; check its address and [directory] "
                "ca_file."
            ) from error
        if not bound:
            _close(connection)
            raise DirectoryUnreachable(
                f"The domain controller {settings.url} refused the account {settings.username!r} "
                f"({connection.result['description']}); check [directory] username and password_file."
            )
        return connection

    def _make_server(self) -> Any:
        settings, ldap3 = self._settings, self._ldap3
        parts = urlsplit(settings.url)
        if parts.scheme not in ("ldap", "ldaps") or not parts.hostname:
            raise ConfigError(f"[directory] url {settings.url!r} is no ldaps://HOST or ldap://HOST address.")
        ca_file = None if settings.ca_file is None else str(settings.ca_file)
        tls = ldap3.Tls(validate=ssl.CERT_REQUIRED, version=ssl.PROTOCOL_TLS_CLIENT, ca_certs_file=ca_file)
        return ldap3.Server(
            parts.hostname,
            port=parts.port or (636 if parts.scheme == "ldaps" else 389),
            use_ssl=parts.scheme == "ldaps",
            tls=tls,
            get_info=ldap3.NONE,
            connect_timeout=_PATIENCE_S,
        )


def _close(connection: Any) -> None:
    with suppress(Exception):  # of a connection that broke nothing more is to be had
        connection.unbind()


def _entry(told: Mapping[str, Any]) -> _Entry:
    raw = told["raw_attributes"]
    return _Entry(told["dn"], {str(name).lower(): list(values) for name, values in raw.items()})


def _account(entry: _Entry) -> Account:
    return Account(_sid(entry), entry.name)


def _sid(entry: _Entry) -> Sid:
    raw = entry.one("objectSid")
    if raw is None:
        raise DirectoryUnreachable(f"The domain controller does not tell the SID of {entry.name!r}.")
    return _unpacked(raw)


def _unpacked(raw: bytes) -> Sid:
    sid = unpack_sid(raw)
    if sid is None:
        raise DirectoryUnreachable("The domain controller told a SID that is none, so nobody is answered.")
    return sid


def _require_usable(entry: _Entry) -> None:
    """Raise AskerUnknown for an account that is disabled or expired, or that does not say."""
    control, expires = _number(entry.one("userAccountControl")), _number(entry.one("accountExpires"))
    if control is None or control & _DISABLED:
        raise AskerUnknown(f"The account {entry.name!r} is disabled in the domain.")
    if (
        expires is not None
        and expires not in _NEVER
        and expires / 10_000_000 - _FILETIME_EPOCH_S < time.time()
    ):
        raise AskerUnknown(f"The account {entry.name!r} has expired in the domain.")


def _number(raw: bytes | None) -> int | None:
    try:
        return None if raw is None else int(raw)
    except ValueError:
        return None
