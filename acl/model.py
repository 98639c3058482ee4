"""Access lists: what a server stores (Descriptor, Ace) and what the index decides by (AccessList, Clause)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal

from acl.sid import Sid, qualify

Role = Literal["share", "parent", "note"]
Status = Literal["ok", "quarantined"]

READ_DATA = 0x1
READ_CONTROL = 0x20000
# FILE_GENERIC_READ: read data, read EA, read attributes, read control, synchronize (MS-DTYP 2.4.3).
GENERIC_READ = 0x120089

# The generic bits of a mask and what they stand for on a file (MS-FSCC / winnt.h file generic mapping).
_GENERIC_BITS = (
    (0x80000000, 0x120089),
    (0x40000000, 0x120116),
    (0x20000000, 0x1200A0),
    (0x10000000, 0x1F01FF),
)


class AceKind(Enum):
    """What an entry does. UNKNOWN is any type we do not understand; it closes the whole list."""

    ALLOW = "allow"
    DENY = "deny"
    CALLBACK_ALLOW = "callback allow"
    CALLBACK_DENY = "callback deny"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Ace:
    """One entry of an NT access list; ``mask`` may still hold generic bits."""

    kind: AceKind
    sid: Sid
    mask: int
    inherit_only: bool = False

    @property
    def rights(self) -> int:
        """The mask with its generic bits mapped to file rights (MS-DTYP 2.5.3.2, first step)."""
        rights = self.mask
        for generic, mapped in _GENERIC_BITS:
            if self.mask & generic:
                rights |= mapped
        return rights

    @property
    def grants(self) -> bool:
        """Whether the entry is on the allow side."""
        return self.kind in (AceKind.ALLOW, AceKind.CALLBACK_ALLOW)


@dataclass(frozen=True)
class Descriptor:
    """A security descriptor in stored order; ``aces`` is None for a NULL or absent DACL, () if empty.

    ``group`` decides nothing by NT rules; where the list stands for POSIX modes, it is the owning group.
    """

    owner: Sid | None
    aces: tuple[Ace, ...] | None
    raw: bytes = b""
    group: Sid | None = None

    def qualified(self, server: str) -> Descriptor:
        """The same descriptor with every issuer-relative SID qualified by its server."""
        owner = None if self.owner is None else qualify(self.owner, server)
        group = None if self.group is None else qualify(self.group, server)
        if self.aces is None:
            return replace(self, owner=owner, group=group)
        aces = tuple(replace(ace, sid=qualify(ace.sid, server)) for ace in self.aces)
        return replace(self, owner=owner, aces=aces, group=group)


@dataclass(frozen=True)
class Clause:
    """Passes when ``allow`` meets the token's allow set and ``deny`` does not meet its deny set."""

    allow: frozenset[Sid]
    deny: frozenset[Sid] = frozenset()


@dataclass(frozen=True)
class AccessList:
    """The compiled form of one ACL in one role: readable when any clause passes. No clause: nobody.

    ``key`` (32 bytes) is equal exactly when the meaning is. ``entries`` tell the list in its own order, one
    entry each, as ``"allow SID words"``, ``"deny SID words"`` or ``"ignored SID words"``.
    """

    key: bytes
    server: str
    model: str
    role: Role
    status: Status
    reason: str
    owner: Sid | None
    clauses: tuple[Clause, ...]
    raw: bytes = field(repr=False)
    entries: tuple[str, ...]

    @property
    def readers(self) -> frozenset[Sid]:
        """Every SID that some clause allows: what people are shown, implied by the clauses."""
        return frozenset().union(*(clause.allow for clause in self.clauses))
