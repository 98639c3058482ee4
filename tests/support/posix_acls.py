"""Random POSIX states, and the bytes of system.posix_acl_access written by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from acl.posix import PosixState

NO_ID = 0xFFFFFFFF
OWNER, USER, GROUP_OBJ, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20


def acl_bytes(entries: Iterable[tuple[int, int, int]], version: int = 2) -> bytes:
    """The attribute's bytes from (tag, permissions, id) as they stand."""
    return struct.pack("<I", version) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@st.composite
def posix_states(draw: st.DrawFn, uids: Sequence[int], gids: Sequence[int]) -> PosixState:
    """A mode, and in two of three cases an ACL over it with named users and groups."""
    bits = st.integers(0, 7)
    mode = draw(st.integers(0, 0o777))
    xattr = None
    if draw(st.integers(0, 2)):
        users = draw(st.dictionaries(st.sampled_from(uids), bits, max_size=2))
        groups = draw(st.dictionaries(st.sampled_from(gids), bits, max_size=3))
        xattr = acl_bytes(
            [
                (OWNER, mode >> 6, NO_ID),
                *((USER, held, uid) for uid, held in sorted(users.items())),
                (GROUP_OBJ, draw(bits), NO_ID),
                *((GROUP, held, gid) for gid, held in sorted(groups.items())),
                (MASK, mode >> 3 & 7, NO_ID),
                (OTHER, mode & 7, NO_ID),
            ]
        )
    return PosixState(draw(st.sampled_from(uids)), draw(st.sampled_from(gids)), mode, xattr)
