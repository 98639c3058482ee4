"""Does a rename open a note? Declared rules follow folders, and a rename must not be a way round them."""

from __future__ import annotations

from collections.abc import Sequence

from acl.directory import Directory
from acl.evaluate import readable
from acl.model import AccessList, Clause
from acl.sid import EVERYONE
from acl.token import build_token
from notewarden.errors import AskerUnknown


def opens(directory: Directory, old: Sequence[AccessList], new: Sequence[AccessList]) -> bool:
    """Tell whether `new` lets anybody in whom `old` kept out.

    Where the directory lists its users, each is asked. Otherwise the lists are compared by their sets, which
    can only err on the narrow side. Raises DirectoryUnreachable.
    """
    if {one.key for one in old} == {one.key for one in new}:
        return False
    accounts = directory.accounts()
    if accounts is None:
        return not all(_covered(one, new) for one in old)
    for account in accounts:
        try:
            token = build_token(directory, account)
        except AskerUnknown:
            continue  # gone meanwhile
        if readable(new, token) and not readable(old, token):
            return True
    return False


def _covered(old: AccessList, new: Sequence[AccessList]) -> bool:
    return any(all(_within(clause, old) for clause in one.clauses) for one in new)


def _within(clause: Clause, old: AccessList) -> bool:
    return any(
        (EVERYONE in wider.allow or clause.allow <= wider.allow) and clause.deny >= wider.deny
        for wider in old.clauses
    )
