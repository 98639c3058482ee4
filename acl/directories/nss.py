"""The directory of this host's accounts: whatever nsswitch knows, so with winbind or sssd also a domain's."""

from __future__ import annotations

import grp
import os
import pwd

from acl.directory import Account, Memberships, split_kind
from acl.sid import (
    HOST,
    UNIX_GROUPS,
    UNIX_USERS,
    Sid,
    is_sid,
    is_well_known,
    relative_class,
    server_of,
    unix_gid,
    unix_group,
    unix_uid,
    unix_user,
)
from notewarden.errors import AskerUnknown, DirectoryUnreachable

# What a uid without a number in a user namespace, and many a remote root, shows as: nobody in particular.
OVERFLOW_UID = 65_534
_CERTAIN = frozenset({f"{UNIX_USERS}@{HOST}", f"{UNIX_GROUPS}@{HOST}"})


class NssDirectory:
    """Implements Directory by getpwnam, getpwuid and getgrouplist. uid 0 is a user like any other."""

    def user(self, name_or_sid: str) -> Account:
        """The account with this name or unix SID. Raises AskerUnknown, also for several names of one uid."""
        if not is_sid(name_or_sid):
            return _account(_entry_by_uid(_entry_by_name(name_or_sid).pw_uid))
        uid = unix_uid(name_or_sid)
        if uid is None:
            raise AskerUnknown(
                f"{name_or_sid} is not an account of this host; use a user name or a unix SID."
            )
        return _account(_entry_by_uid(uid))

    def user_by_uid(self, uid: int) -> Account:
        """The one account with this uid. Raises AskerUnknown for 65534, for no entry and for several."""
        if uid == OVERFLOW_UID:
            raise AskerUnknown("uid 65534 stands for nobody in particular; ask as an account of this host.")
        return _account(_entry_by_uid(uid))

    def resolve(self, name: str) -> Sid:
        """The SID of a user or group name; ``user:`` or ``group:`` before it where both exist.

        A user and the private group of the same name, with nobody else in it, are the user. LookupError says
        what is wrong with any other name.
        """
        kind, name = split_kind(name)
        user = _find_user(name) if kind != "group" else None
        group = _find_group(name) if kind != "user" else None
        if user is not None and group is not None and not _is_private(user, group):
            raise LookupError(f"is both a user and a group; write 'user:{name}' or 'group:{name}'")
        if user is not None:
            return unix_user(user.pw_uid, HOST)
        if group is not None:
            return unix_group(group.gr_gid, HOST)
        raise LookupError("is no user or group of this host")

    def name_of(self, sid: Sid) -> str | None:
        """The user or group name of a unix SID of this host."""
        uid, gid = unix_uid(sid), unix_gid(sid)
        try:
            if uid is not None:
                return pwd.getpwuid(uid).pw_name
            return grp.getgrgid(gid).gr_name if gid is not None else None
        except (KeyError, OverflowError):
            return None

    def enumerable(self, sid: Sid) -> bool:
        """True for this host's unix ids, since getgrouplist tells all of an asker's, and well-known SIDs."""
        unix = relative_class(sid) in (UNIX_USERS, UNIX_GROUPS) and server_of(sid) == HOST
        return unix or is_well_known(sid)

    def accounts(self) -> tuple[Account, ...] | None:
        """None: behind winbind or sssd an enumeration may be partial without saying so."""
        return None

    def memberships(self, account: Account) -> Memberships:
        """The uid's SID and all groups by getgrouplist, the primary one included.

        Raises AskerUnknown if the account is gone or its name has another uid now, DirectoryUnreachable if
        its groups cannot be listed.
        """
        entry = _entry_by_name(account.name)
        sid = unix_user(entry.pw_uid, HOST)
        if sid != account.sid:
            raise AskerUnknown(
                f"The account {account.name!r} is not the one that asked any more; log in again."
            )
        try:
            gids = os.getgrouplist(entry.pw_name, entry.pw_gid)
        except OSError as error:
            raise DirectoryUnreachable(
                f"The groups of {account.name!r} cannot be listed ({error.strerror}), so nobody is answered."
            ) from error
        groups = {unix_group(gid, HOST): () for gid in gids}
        return Memberships({sid: (), **groups}, _CERTAIN)


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(unix_user(entry.pw_uid, HOST), entry.pw_name)


def _entry_by_name(name: str) -> pwd.struct_passwd:
    entry = _find_user(name)
    if entry is None:
        raise AskerUnknown(f"There is no account {name!r} on this host; use the name of one that exists.")
    return entry


def _entry_by_uid(uid: int) -> pwd.struct_passwd:
    """Names that share a uid cannot be told apart, so nobody of them is answered."""
    try:
        entry = pwd.getpwuid(uid)
    except (KeyError, OverflowError):
        raise AskerUnknown(f"uid {uid} has no account on this host; use one that exists.") from None
    names = {other.pw_name for other in pwd.getpwall() if other.pw_uid == uid} | {entry.pw_name}
    if len(names) > 1:
        raise AskerUnknown(
            f"uid {uid} has more than one account ({', '.join(sorted(names))}); give each its own."
        )
    return entry


def _find_user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except (KeyError, ValueError):  # ValueError: a name with a NUL in it
        return None


def _find_group(name: str) -> grp.struct_group | None:
    try:
        return grp.getgrnam(name)
    except (KeyError, ValueError):
        return None


def _is_private(user: pwd.struct_passwd, group: grp.struct_group) -> bool:
    return user.pw_gid == group.gr_gid and set(group.gr_mem) <= {user.pw_name}
