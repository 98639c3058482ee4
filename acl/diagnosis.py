"""What a look at a share recognises about its configuration: findings with their remedies, for an admin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notewarden.settings_sections import ShareSettings


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at in one share. `remedy` is "" where it is fine."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def diagnose(share: ShareSettings) -> list[Finding]:
    """Look at a share's server as it is now; nothing for sources that ask no server.

    Raises ConfigError for settings that cannot work. A server that cannot be used is a finding.
    """
    if share.acl.source != "smb":
        return []
    from acl.sources.smb.diagnose import diagnose_smb

    return diagnose_smb(share)
