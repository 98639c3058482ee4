"""From one descriptor, and the real mode where it is known, to the lists that must pass: the models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acl.compile import Meaning, quarantine
from acl.descriptor import DescriptorError, parse_descriptor
from acl.model import GENERIC_READ, READ_DATA, AccessList, Descriptor, Role
from acl.nt import NULL_DACL_EVERYONE, compile_descriptor
from acl.posix import EXECUTE, READ, PosixState, compile_posix
from acl.posix_shaped import (
    TRAVERSE,
    KindOf,
    compile_posix_shaped,
    is_posix_shaped,
    may_stand_for_mode,
)
from acl.servers import qualified
from acl.sid import HOST

if TYPE_CHECKING:
    from notewarden.settings_sections import ShareAclSettings

_LIST_FOLDER = READ_DATA  # the same bit, on a folder


class DescriptorLayers:
    """Compiles the descriptors of one server under the model and guards of one share."""

    def __init__(self, acl: ShareAclSettings, server: str, kind_of: KindOf) -> None:
        """`server` issued the relative SIDs; unix ids are this host's where the share declares same_ids."""
        self._model = acl.model or ""
        self._guards = acl.guards or "posix_x"
        self._server = server
        self._same_ids = acl.same_ids
        self._kind_of = kind_of
        self._bits = GENERIC_READ if acl.read_mask == "generic_read" else READ_DATA
        self._options = (
            *((NULL_DACL_EVERYONE,) if acl.null_dacl == "everyone" else ()),
            *(("same_ids",) if acl.same_ids else ()),
        )

    def share(self, raw: bytes) -> tuple[AccessList, ...]:
        """The lists of a share's own descriptor, which is an NT one under every model."""
        return self._read(raw, "share", self._bits, None, model="nt")

    def note(self, raw: bytes, state: PosixState | None) -> tuple[AccessList, ...]:
        """The lists of a note. `state` is its real mode, None where only the descriptor is known."""
        return self._read(raw, "note", self._bits, state, model=self._model, right=READ)

    def parent(self, raw: bytes, state: PosixState | None) -> tuple[AccessList, ...]:
        """The guards of a folder: none under ``bypass``, pass-through, with ``listable`` listing too."""
        if self._guards == "bypass":
            return ()
        model = "nt" if self._guards == "nt_traverse" else self._model
        if state is not None and self._guards == "posix_x":
            model = "posix"
        lists = self._read(raw, "parent", TRAVERSE, state, model=model, right=EXECUTE)
        if self._guards == "listable":
            lists += self._read(raw, "parent", _LIST_FOLDER, state, model=model, right=READ)
        return lists

    def closed(self, role: Role, reason: str) -> tuple[AccessList, ...]:
        """Nobody, for a reason."""
        return (quarantine(self._meaning(role, self._model), reason),)

    def _read(
        self,
        raw: bytes,
        role: Role,
        bits: int,
        state: PosixState | None,
        *,
        model: str,
        right: int = READ,
    ) -> tuple[AccessList, ...]:
        try:
            descriptor = qualified(parse_descriptor(raw), self._server, same_ids=self._same_ids)
        except DescriptorError as error:
            return (quarantine(self._meaning(role, model), str(error), raw=raw),)
        lists: tuple[AccessList, ...] = ()
        if "nt" in model:
            lists += self._nt(descriptor, role, bits)
        if "posix" in model:
            lists += (self._posix(descriptor, role, bits, state, right),)
        return lists

    def _nt(self, descriptor: Descriptor, role: Role, bits: int) -> tuple[AccessList, ...]:
        meaning = self._meaning(role, "nt")
        if is_posix_shaped(descriptor):
            return (compile_posix_shaped(descriptor, _one_bit(bits), meaning, self._kind_of),)
        return compile_descriptor(descriptor, meaning, bits)

    def _posix(
        self, descriptor: Descriptor, role: Role, bits: int, state: PosixState | None, right: int
    ) -> AccessList:
        if state is None:
            meaning = self._meaning(role, "posix")
            return compile_posix_shaped(descriptor, _one_bit(bits), meaning, self._kind_of)
        if self._model == "posix" and not may_stand_for_mode(descriptor):
            reason = 'it has an NT list of its own, which model = "posix" leaves out; set "nt+posix"'
            return quarantine(self._meaning(role, "posix"), reason, raw=descriptor.raw)
        server = HOST if self._same_ids else self._server
        return compile_posix(state, right, Meaning(server, "posix", role))

    def _meaning(self, role: Role, model: str) -> Meaning:
        return Meaning(self._server, model, role, self._options)


def _one_bit(bits: int) -> int:
    return TRAVERSE if bits == TRAVERSE else READ_DATA
