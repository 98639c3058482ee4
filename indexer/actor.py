"""Who runs an admin command, for the audit."""

from __future__ import annotations

import os

from acl.directory import Directory
from acl.sid import HOST, Sid, unix_user
from notewarden.errors import AskerUnknown


def actor_of(directory: Directory) -> Sid:
    """Return the SID of the account that runs this command; root is often in no directory."""
    uid = os.geteuid()
    try:
        return directory.user_by_uid(uid).sid
    except AskerUnknown:
        return unix_user(uid, HOST)
