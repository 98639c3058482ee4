"""The one name of a principal: the security identifier (SID), qualified by its issuer where it is relative.

Unix ids take Samba's form: uid N is S-1-22-1-N, gid N is S-1-22-2-N. These and the built-in groups S-1-5-32-*
name another principal on every server, so they always carry the server: ``S-1-22-2-998@host``.

Markers
-------
A token knows a principal's memberships of a whole class (say: all unix groups of this host) or it does not.
"Does not know" must count as "may be a member" wherever such a group is denied. Servers are open-ended, so a
token cannot list every group it might be in. Instead the *deny* side of every clause that names a SID of
class C issued by server X also holds the marker ``?C@X`` and, unless X is this host, the general marker
``?C``. A token that is not certain about class C holds the marker in its deny set: ``?C@host`` for this host,
``?C`` for all other servers. The decision stays what it was: two set intersections. Markers never stand in an
allow set, and no SID begins with ``?``. A directory that is certain about a class of another server says so
only where no third server's lists are in use: then ``?C`` is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NewType

Sid = NewType("Sid", str)

HOST = "host"

EVERYONE = Sid("S-1-1-0")
AUTHENTICATED = Sid("S-1-5-11")
NETWORK = Sid("S-1-5-2")
OWNER_RIGHTS = Sid("S-1-3-4")
CREATORS = frozenset({Sid("S-1-3-0"), Sid("S-1-3-1"), Sid("S-1-3-2"), Sid("S-1-3-3")})

UNIX_USERS = "S-1-22-1"
UNIX_GROUPS = "S-1-22-2"
BUILTIN = "S-1-5-32"
RELATIVE_CLASSES = (UNIX_USERS, UNIX_GROUPS, BUILTIN)

# What a log-in may carry depending on how it was made; no directory can tell, so it counts for denies only.
# LOCAL, CONSOLE LOGON, DIALUP, BATCH, INTERACTIVE, SERVICE, TERMINAL SERVER USER, REMOTE INTERACTIVE LOGON,
# THIS ORGANIZATION, LOCAL ACCOUNT, LOCAL ACCOUNT AND ADMINISTRATOR, OTHER ORGANIZATION.
_PER_LOGIN_TAILS = (
    "2-0",
    "2-1",
    "5-1",
    "5-3",
    "5-4",
    "5-6",
    "5-13",
    "5-14",
    "5-15",
    "5-113",
    "5-114",
    "5-1000",
)
PER_LOGIN = frozenset(Sid(f"S-1-{tail}") for tail in _PER_LOGIN_TAILS)
# Families of the same kind: log-on sessions, authentication packages, asserted identities.
PER_LOGIN_FAMILIES = ("S-1-5-5", "S-1-5-64", "S-1-18")

# Principals that no asker is: ANONYMOUS, PRINCIPAL SELF, SYSTEM, LOCAL and NETWORK SERVICE, app packages.
_NOT_PEOPLE_TAILS = ("5-7", "5-10", "5-18", "5-19", "5-20", "15-2-1", "15-2-2")
NOT_PEOPLE = frozenset(Sid(f"S-1-{tail}") for tail in _NOT_PEOPLE_TAILS)

_FORM = re.compile(r"S-1-\d{1,15}(-\d{1,10}){1,15}(@\S+)?", re.ASCII)


def is_sid(text: str) -> bool:
    """Whether the text has the form of a SID, with or without a server behind an ``@``."""
    return _FORM.fullmatch(text) is not None


def relative_class(sid: str) -> str | None:
    """The issuer-relative class a SID belongs to (S-1-22-1, S-1-22-2, S-1-5-32), or None for a global one."""
    for family in RELATIVE_CLASSES:
        if sid.startswith(family + "-"):
            return family
    return None


def smb_server_id(host: str, port: int) -> str:
    """The identity of an SMB server, as in ``S-1-5-32-545@nas``: its name, its port if not 445."""
    return host.lower() if port == 445 else f"{host.lower()}:{port}"


def qualify(sid: str, server: str) -> Sid:
    """Add the issuing server to an issuer-relative SID that has none; any other SID comes back as it is."""
    if "@" in sid or relative_class(sid) is None:
        return Sid(sid)
    return Sid(f"{sid}@{server}")


def bare(sid: Sid) -> str:
    """The SID without its server, as the server itself writes it."""
    return sid.partition("@")[0]


def server_of(sid: Sid) -> str | None:
    """The server that issued the SID, None for a global one."""
    return sid.partition("@")[2] or None


def unix_user(uid: int, server: str) -> Sid:
    """The SID of a unix user id on a server (Samba's form)."""
    return Sid(f"{UNIX_USERS}-{uid}@{server}")


def unix_group(gid: int, server: str) -> Sid:
    """The SID of a unix group id on a server (Samba's form)."""
    return Sid(f"{UNIX_GROUPS}-{gid}@{server}")


def unix_uid(sid: str) -> int | None:
    """The uid behind a unix user SID of this host (qualified or not), None for any other SID."""
    return _host_id(sid, UNIX_USERS)


def unix_gid(sid: str) -> int | None:
    """The gid behind a unix group SID of this host (qualified or not), None for any other SID."""
    return _host_id(sid, UNIX_GROUPS)


def _host_id(sid: str, family: str) -> int | None:
    qualified = qualify(sid, HOST)
    tail = bare(qualified).removeprefix(family + "-")
    if relative_class(qualified) != family or server_of(qualified) != HOST or not tail.isdecimal():
        return None
    return int(tail)


def deny_names(sid: Sid) -> frozenset[Sid]:
    """All names under which a deny of this SID can meet a token's deny set: the SID and its markers."""
    names = {sid}
    family, server = relative_class(sid), server_of(sid)
    if family is not None:
        names.add(Sid(f"?{family}@{server}"))
        if server != HOST:
            names.add(Sid(f"?{family}"))
    names.update(Sid(f"?{prefix}") for prefix in PER_LOGIN_FAMILIES if sid.startswith(prefix + "-"))
    return frozenset(names)


def uncertain_names(certain: Iterable[str]) -> frozenset[Sid]:
    """What a token holds in its deny set for memberships that nobody can rule out.

    ``certain`` names the classes whose memberships are all known, as ``"S-1-22-2@host"``; one of another
    server stands for all other servers: there is only that one.
    """
    known = set(certain)
    foreign = {one.partition("@")[0] for one in known if not one.endswith(f"@{HOST}")}
    here = {Sid(f"?{family}@{HOST}") for family in RELATIVE_CLASSES if f"{family}@{HOST}" not in known}
    elsewhere = {
        Sid(f"?{family}") for family in (*RELATIVE_CLASSES, *PER_LOGIN_FAMILIES) if family not in foreign
    }
    return frozenset(here | elsewhere | PER_LOGIN)


def is_well_known(sid: Sid) -> bool:
    """Whether membership follows from the log-in alone, or no asker can have it: no directory is needed."""
    fixed = {EVERYONE, AUTHENTICATED, NETWORK, OWNER_RIGHTS} | CREATORS | PER_LOGIN | NOT_PEOPLE
    return sid in fixed or any(sid.startswith(prefix + "-") for prefix in PER_LOGIN_FAMILIES)
