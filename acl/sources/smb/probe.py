"""Does the share act as the account that logged in, or does the server put another in its place?

`force user` shows through no protocol. But the server tells which rights the session has on a file (MxAc,
MS-SMB2 2.2.14.2.5): rights that only the file's owner has, while the owner is another account than ours, give
it away. An administrator's session has more than any owner, so that is told apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from acl.descriptor import DescriptorError, parse_descriptor
from acl.model import READ_CONTROL, Ace, AceKind, Descriptor
from acl.sid import Sid
from acl.sources.smb.lookup import LookupFailed, own_sid
from acl.sources.smb.names import smb_path
from acl.sources.smb.session import SmbSession
from notewarden.errors import NoteUnreadable

WRITE_DAC, WRITE_OWNER = 0x40000, 0x80000
_TELLING = 0x1 | 0x2 | 0x4 | WRITE_DAC | WRITE_OWNER
_SAMPLES = 40


@dataclass(frozen=True)
class Sample:
    """One file's descriptor, and the rights this session has on it."""

    descriptor: Descriptor
    rights: int


def shows_one_user(session: SmbSession, root: Path, prefix: str) -> str:
    """The reason why a share is closed that acts as one user for everybody; "" where nothing shows that.

    Where the server does not tell whether that user is our own account, the share is closed too.
    Raises ShareUnavailable.
    """
    user = forced_user(list(samples(session, root, prefix)))
    if user is None:
        return ""
    doubt = ""
    try:
        if own_sid(session.login) == user:
            return ""
    except LookupFailed as error:
        doubt = f", unless {session.login.username!r} is that user, which the server does not tell ({error})"
    return (
        f"it acts as {user} whoever logs in (`force user`{doubt}), so nobody knows what others would see: "
        'remove that from the share, or declare who reads which folder with source = "declared"'
    )


def samples(session: SmbSession, root: Path, prefix: str) -> Iterator[Sample]:
    """Up to some dozens of files and folders with the rights on them; what does not answer is left out."""
    paths = list(_some_paths(root, prefix))
    for path, answer in zip(paths, session.answers(paths), strict=True):
        if answer.status:
            continue
        try:
            descriptor = parse_descriptor(answer.raw)
        except DescriptorError:
            continue
        rights = session.maximal_access(path)
        if rights is not None:
            yield Sample(descriptor, rights)


def forced_user(found: Iterable[Sample]) -> Sid | None:
    """The one owner whose rights the session has, None where that does not show or it has more than that."""
    owners: set[Sid] = set()
    told = False
    for sample in found:
        owner = sample.descriptor.owner
        excess = sample.rights & ~_open_to_others(sample.descriptor) & _TELLING
        if owner is None or not excess:
            continue
        if excess & ~_open_to_owner(sample.descriptor):
            return None  # more than the owner has: an administrator
        owners.add(owner)
        told = told or not sample.rights & WRITE_OWNER
    return owners.pop() if told and len(owners) == 1 else None


def _open_to_others(descriptor: Descriptor) -> int:
    return _allowed(ace for ace in descriptor.aces or () if ace.sid != descriptor.owner)


def _open_to_owner(descriptor: Descriptor) -> int:
    own = _allowed(ace for ace in descriptor.aces or () if ace.sid == descriptor.owner)
    return own | READ_CONTROL | WRITE_DAC


def _allowed(aces: Iterable[Ace]) -> int:
    allowed = 0
    for ace in aces:
        if ace.kind is AceKind.ALLOW and not ace.inherit_only:
            allowed |= ace.rights
    return allowed


def _some_paths(root: Path, prefix: str) -> Iterator[str]:
    left = _SAMPLES
    for folder, names, files in os.walk(os.fsencode(root)):
        names.sort()
        for name in sorted(files)[: left // 2 or 1]:
            if left <= 0:
                return
            path = os.path.relpath(os.path.join(folder, name), os.fsencode(root))  # noqa: PTH118
            try:
                yield smb_path(prefix, path)
            except NoteUnreadable:
                continue
            left -= 1
