"""The name under which a file server's own ids are known: what its relative SIDs are qualified by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from acl.model import Descriptor
from acl.sid import HOST, UNIX_GROUPS, UNIX_USERS, Sid, qualify, relative_class, smb_server_id

if TYPE_CHECKING:
    from notewarden.settings_sections import ShareAclSettings


def smb_server(acl: ShareAclSettings) -> str:
    """The identity of a share's SMB server, as in ``S-1-5-32-545@nas``: its name, the port if not 445."""
    return smb_server_id(acl.server, acl.port)


def qualified(descriptor: Descriptor, server: str, *, same_ids: bool) -> Descriptor:
    """The descriptor with every relative SID qualified; unix ids are this host's where `same_ids` says so."""
    if not same_ids:
        return descriptor.qualified(server)
    aces = descriptor.aces
    return replace(
        descriptor,
        owner=None if descriptor.owner is None else _shared(descriptor.owner),
        group=None if descriptor.group is None else _shared(descriptor.group),
        aces=None if aces is None else tuple(replace(ace, sid=_shared(ace.sid)) for ace in aces),
    ).qualified(server)


def _shared(sid: Sid) -> Sid:
    return qualify(sid, HOST) if relative_class(sid) in (UNIX_USERS, UNIX_GROUPS) else sid
