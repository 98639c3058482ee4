"""Users, groups and aliases of an SMB server by SAMR (MS-SAMR), unix ids by LSARPC (MS-LSAT): impacket."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, TypeVar

from acl.sid import UNIX_USERS, Sid
from notewarden.errors import ConfigError

_TIMEOUT_S = 20
_DISABLED = 0x1  # USER_ACCOUNT_DISABLED (MS-SAMR 2.2.1.12)
_USER, _GROUP, _ALIAS = 1, 2, 4  # SID_NAME_USE (MS-SAMR 2.2.2.3)
_NEVER = (0, 0x7FFFFFFFFFFFFFFF)
_FILETIME_EPOCH_S = 11_644_473_600
_MAXIMUM_ALLOWED = 0x02000000
# Nobody of this name or id; an old server says so of a user, a group or an alias in its own words.
_NOBODY = frozenset({0xC0000064, 0xC0000066, 0xC0000073, 0xC0000151, 0x00000107})

_T = TypeVar("_T")


class Refused(Exception):
    """The server does not tell; the text says why."""


@dataclass(frozen=True)
class SamrLogin:
    """Where and as whom to ask."""

    host: str
    port: int
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class SamrUser:
    """A user of the server. `usable`: neither disabled nor expired."""

    sid: Sid
    name: str
    usable: bool


@dataclass
class _Open:
    """One connection: SAMR with both domains open (`own` is the server's, `builtin` S-1-5-32), and LSARPC."""

    samr: Any
    lsa: Any
    own_sid: Sid
    own: Any
    builtin: Any
    policy: Any


class Samr:
    """Asks one server; a broken connection is made anew once. Every method raises Refused. Thread-safe."""

    def __init__(self, login: SamrLogin) -> None:
        """Raises ConfigError without the package impacket."""
        try:
            from impacket.dcerpc.v5 import lsat, samr
        except ImportError as error:
            raise ConfigError(
                "[directory] source = \"smb\" needs the package impacket: pip install 'notewarden[nas]'."
            ) from error
        self._rpc, self._lsat = samr, lsat
        self._login = login
        self._kept: _Open | None = None
        self._lock = Lock()

    def domain(self) -> Sid:
        """The SID of the server's own accounts."""
        return self._ask(lambda at: at.own_sid)

    def user(self, name: str) -> SamrUser | None:
        """The user of a name, None for nobody."""

        def ask(at: _Open) -> SamrUser | None:
            rids = self._rids(at.own, at.samr, name)
            return self._user(at, rids[0][0]) if rids and rids[0][1] == _USER else None

        return self._ask(ask)

    def user_by_sid(self, sid: Sid) -> SamrUser | None:
        """The user of a SID, None for nobody and for another server's."""

        def ask(at: _Open) -> SamrUser | None:
            domain, _, rid = sid.rpartition("-")
            if domain != at.own_sid or self._kind(at.own, at.samr, int(rid)) != _USER:
                return None
            return self._user(at, int(rid))

        return self._ask(ask)

    def named(self, name: str) -> list[tuple[Sid, Literal["user", "group"]]]:
        """Everything of this name: users, groups, aliases, also the built-in ones."""

        def ask(at: _Open) -> list[tuple[Sid, Literal["user", "group"]]]:
            found: list[tuple[Sid, Literal["user", "group"]]] = []
            for sid, domain in ((at.own_sid, at.own), (Sid("S-1-5-32"), at.builtin)):
                for rid, use in self._rids(domain, at.samr, name):
                    kind = _kind(use)
                    found += [(Sid(f"{sid}-{rid}"), kind)] if kind else []
            return found

        return self._ask(ask)

    def name_and_kind(self, sid: Sid) -> tuple[str, Literal["user", "group"]] | None:
        """The name of a user, group or alias of the server, and which it is; None for anything else."""

        def ask(at: _Open) -> tuple[str, Literal["user", "group"]] | None:
            domain, _, rid = sid.rpartition("-")
            handle = {at.own_sid: at.own, "S-1-5-32": at.builtin}.get(Sid(domain))
            if handle is None:
                return None
            answer = _or_none(lambda: self._rpc.hSamrLookupIdsInDomain(at.samr, handle, (int(rid),)))
            if answer is None:
                return None
            name, use = answer["Names"]["Element"][0]["Data"], answer["Use"]["Element"][0]["Data"]
            kind = _kind(use)
            return (name, kind) if kind else None

        return self._ask(ask)

    def groups(self, sid: Sid) -> list[Sid]:
        """The groups that a user is directly in."""

        def ask(at: _Open) -> list[Sid]:
            handle = self._opened_user(at, int(sid.rpartition("-")[2]))
            try:
                answer = self._rpc.hSamrGetGroupsForUser(at.samr, handle)
                return [Sid(f"{at.own_sid}-{one['RelativeId']}") for one in answer["Groups"]["Groups"]]
            finally:
                self._rpc.hSamrCloseHandle(at.samr, handle)

        return self._ask(ask)

    def aliases(self, sid: Sid, *, builtin: bool) -> list[Sid]:
        """The aliases that hold a SID directly: the built-in ones, or those of the server's own accounts."""

        def ask(at: _Open) -> list[Sid]:
            domain, handle = (Sid("S-1-5-32"), at.builtin) if builtin else (at.own_sid, at.own)
            answer = self._rpc.hSamrGetAliasMembership(at.samr, handle, self._sid_array(sid))
            return [Sid(f"{domain}-{one['Data']}") for one in answer["Membership"]["Element"]]

        return self._ask(ask)

    def unix_user(self, name: str) -> Sid | None:
        """Samba's unix SID of one of its users (S-1-22-1-uid), None where the server knows of none."""

        def ask(at: _Open) -> Sid | None:
            names = (f"Unix User\\{name}",)
            answer = _or_none(lambda: self._lsat.hLsarLookupNames(at.lsa, at.policy, names))
            if answer is None:
                return None
            one = answer["TranslatedSids"]["Sids"][0]
            if one["Use"] != _USER:
                return None
            domain = answer["ReferencedDomains"]["Domains"][one["DomainIndex"]]["Sid"].formatCanonical()
            return Sid(f"{domain}-{one['RelativeId']}") if domain == UNIX_USERS else None

        return self._ask(ask)

    def close(self) -> None:
        """Close the connection; the next question makes another."""
        with self._lock:
            self._drop()

    def _user(self, at: _Open, rid: int) -> SamrUser:
        handle = self._opened_user(at, rid)
        try:
            level = self._rpc.USER_INFORMATION_CLASS.UserAllInformation
            told = self._rpc.hSamrQueryInformationUser2(at.samr, handle, level)["Buffer"]["All"]
        finally:
            self._rpc.hSamrCloseHandle(at.samr, handle)
        expires = told["AccountExpires"]
        moment = (expires["HighPart"] & 0xFFFFFFFF) << 32 | expires["LowPart"]
        lasts = moment in _NEVER or moment / 10_000_000 - _FILETIME_EPOCH_S > time.time()
        usable = not told["UserAccountControl"] & _DISABLED and lasts
        return SamrUser(Sid(f"{at.own_sid}-{rid}"), told["UserName"], usable)

    def _opened_user(self, at: _Open, rid: int) -> Any:
        return self._rpc.hSamrOpenUser(at.samr, at.own, _MAXIMUM_ALLOWED, rid)["UserHandle"]

    def _rids(self, domain: Any, dce: Any, name: str) -> list[tuple[int, int]]:
        answer = _or_none(lambda: self._rpc.hSamrLookupNamesInDomain(dce, domain, (name,)))
        if answer is None:
            return []
        rids, uses = answer["RelativeIds"]["Element"], answer["Use"]["Element"]
        return [(int(rid["Data"]), int(use["Data"])) for rid, use in zip(rids, uses, strict=True)]

    def _kind(self, domain: Any, dce: Any, rid: int) -> int | None:
        answer = _or_none(lambda: self._rpc.hSamrLookupIdsInDomain(dce, domain, (rid,)))
        return None if answer is None else int(answer["Use"]["Element"][0]["Data"])

    def _sid_array(self, sid: Sid) -> Any:
        from impacket.dcerpc.v5.dtypes import RPC_SID

        wrapped, found = RPC_SID(), self._rpc.SAMPR_PSID_ARRAY()
        wrapped.fromCanonical(str(sid))
        one = self._rpc.PSAMPR_SID_INFORMATION()
        one["SidPointer"] = wrapped
        found["Sids"].append(one)
        return found

    def _ask(self, work: Callable[[_Open], _T]) -> _T:
        """Do `work` on the kept connection, once more on a new one if that broke."""
        with self._lock:
            if self._kept is not None:
                try:
                    return work(self._kept)
                except Exception:  # impacket raises dozens of kinds, down to plain Exception
                    self._drop()
            self._kept = self._connect()
            try:
                return work(self._kept)
            except Exception as error:
                self._drop()
                raise Refused(_words(error)) from error

    def _connect(self) -> _Open:
        opened: list[Any] = []
        try:
            samr = self._bound(r"\samr", self._rpc.MSRPC_UUID_SAMR, opened)
            server = self._rpc.hSamrConnect(samr)["ServerHandle"]
            own, own_sid = self._own_domain(samr, server)
            builtin = self._open_domain(samr, server, "Builtin")[0]
            lsa = self._bound(r"\lsarpc", self._lsat.MSRPC_UUID_LSAT, opened)
            from impacket.dcerpc.v5 import lsad

            policy = lsad.hLsarOpenPolicy2(lsa, _MAXIMUM_ALLOWED)["PolicyHandle"]
        except Exception as error:
            for dce in opened:
                _hang_up(dce)
            raise Refused(_words(error)) from error
        return _Open(samr, lsa, own_sid, own, builtin, policy)

    def _bound(self, pipe: str, interface: Any, opened: list[Any]) -> Any:
        from impacket.dcerpc.v5 import transport

        login = self._login
        rpc = transport.SMBTransport(
            login.host, login.port, pipe, username=login.username, password=login.password
        )
        rpc.set_connect_timeout(_TIMEOUT_S)
        dce = rpc.get_dce_rpc()
        opened.append(dce)
        dce.connect()
        if rpc.get_smb_connection().isGuestSession():
            raise Refused("it takes our account for a guest")
        dce.bind(interface)
        return dce

    def _own_domain(self, dce: Any, server: Any) -> tuple[Any, Sid]:
        listed = self._rpc.hSamrEnumerateDomainsInSamServer(dce, server)["Buffer"]["Buffer"]
        names = [one["Name"] for one in listed if one["Name"].lower() != "builtin"]
        if len(names) != 1:
            raise Refused("it does not say which accounts are its own")
        return self._open_domain(dce, server, names[0])

    def _open_domain(self, dce: Any, server: Any, name: str) -> tuple[Any, Sid]:
        raw = self._rpc.hSamrLookupDomainInSamServer(dce, server, name)["DomainId"]
        handle = self._rpc.hSamrOpenDomain(dce, server, _MAXIMUM_ALLOWED, raw)["DomainHandle"]
        return handle, Sid(raw.formatCanonical())

    def _drop(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            _hang_up(kept.samr)
            _hang_up(kept.lsa)


def _or_none(ask: Callable[[], Any]) -> Any:
    """The answer, None where the server says that there is nobody of that name or id."""
    from impacket.dcerpc.v5.rpcrt import DCERPCException

    try:
        return ask()
    except DCERPCException as error:
        if error.get_error_code() in _NOBODY:
            return None
        raise


def _kind(use: int) -> Literal["user", "group"] | None:
    if use == _USER:
        return "user"
    return "group" if use in (_GROUP, _ALIAS) else None


def _hang_up(dce: Any) -> None:
    with suppress(Exception):  # of a connection that broke nothing more is to be had
        dce.disconnect()
    with suppress(Exception):
        dce.get_rpc_transport().get_smb_connection().getSMBServer().close_session()


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
