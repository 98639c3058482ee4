"""Tokens: which memberships are certain (allow) and which are possible (deny), when the question comes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock

from acl.directory import Account, Directory, listed_by
from acl.sid import AUTHENTICATED, EVERYONE, NETWORK, Sid, uncertain_names
from notewarden.errors import AskerUnknown


@dataclass(frozen=True)
class Token:
    """The SIDs of one asker.

    ``allow`` holds the memberships that are certain now, ``deny`` those and every possible one, with the
    markers of :mod:`acl.sid`; allow entries are tested against the first, deny entries against the second.
    While allow <= truth <= deny there is never an over-grant. ``through`` gives for a group's SID the groups
    between the user and it, nearest to the user first; () for a direct membership. ``listed`` are the SIDs
    the directory listed when the token was made, None where it knows members without listing groups: a denied
    SID that was listed at the last sweep and is not now counts as matching.
    """

    user: Sid
    name: str
    allow: frozenset[Sid]
    deny: frozenset[Sid]
    through: Mapping[Sid, tuple[Sid, ...]] = field(default_factory=dict, compare=False, repr=False)
    listed: frozenset[Sid] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse a token that could be mistaken for "no filter": empty, or without its own user."""
        if not self.allow or self.user not in self.allow:
            raise AskerUnknown("The asker has no token, so nothing may be shown; log in as a known user.")
        if not self.allow <= self.deny:
            raise AskerUnknown("The asker's token is inconsistent, so nothing may be shown; report this.")


def require_token(token: Token | None) -> Token:
    """The token itself; raises AskerUnknown for None, which never means "no filter"."""
    if token is None:
        raise AskerUnknown("The asker has no token, so nothing may be shown; log in as a known user.")
    return token


def build_token(directory: Directory, account: Account) -> Token:
    """The token of a named user now.

    Certain: the user's SIDs, all groups transitively, Everyone, Authenticated Users, NETWORK. Possible
    besides: what depends on the kind of log-in, and the classes the directory is not certain about.
    Raises AskerUnknown if the account is gone, DirectoryUnreachable if its groups cannot all be told.
    """
    before = listed_by(directory)
    memberships = directory.memberships(account)
    after = listed_by(directory)
    listed = before & after if before is not None and after is not None else None
    allow = frozenset({account.sid, EVERYONE, AUTHENTICATED, NETWORK, *memberships.through})
    deny = allow | memberships.possible | uncertain_names(memberships.certain)
    return Token(account.sid, account.name, allow, deny, dict(memberships.through), listed)


class TokenCache:
    """Tokens kept for ``ttl``, keyed by SID, on a clock that neither suspend nor a clock change stops.

    The account itself is looked up anew on each use, and a directory that fails gives no token at all.
    """

    def __init__(self, directory: Directory, ttl: timedelta) -> None:
        self._directory = directory
        self._ttl = ttl.total_seconds()
        self._kept: dict[Sid, tuple[float, Account, Token]] = {}
        self._lock = Lock()

    def token(self, account: Account, *, fresh: bool = False) -> Token:
        """The account's token, at most ``ttl`` old; ``fresh`` builds it anew.

        Raises AskerUnknown if the account no longer exists, DirectoryUnreachable if nobody can tell.
        """
        current = self._directory.user(account.sid)
        if current.sid != account.sid:
            raise AskerUnknown(f"The account {account.name!r} no longer exists; log in again.")
        started = time.clock_gettime(time.CLOCK_BOOTTIME)
        with self._lock:
            kept = self._kept.get(account.sid)
        if kept is not None and not fresh and kept[1] == current and started - kept[0] < self._ttl:
            return kept[2]
        token = build_token(self._directory, current)
        with self._lock:
            self._kept[account.sid] = (started, current, token)
        return token
