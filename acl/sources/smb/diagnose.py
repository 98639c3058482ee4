"""What a look at an SMB share recognises about its configuration: each finding with its remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from acl.diagnosis import Finding
from acl.posix_shaped import is_posix_shaped, may_stand_for_mode
from acl.sources.smb.probe import Sample, samples, shows_one_user
from acl.sources.smb.session import Connect, SmbSession, connect_with, login_of
from acl.sources.smb.shares import ShareUnknown, share_descriptor
from notewarden.errors import ShareUnavailable

if TYPE_CHECKING:
    from notewarden.settings_sections import ShareSettings


def diagnose_smb(share: ShareSettings, connect: Connect | None = None) -> list[Finding]:
    """Look at a share with source "smb" as it is now. Raises ConfigError for settings that cannot work.

    A server that cannot be used is a finding too; then nothing else can be told.
    """
    acl = share.acl
    chosen = connect or (lambda login: connect_with(acl.client, login))
    session = SmbSession(login_of(share.name, acl), chosen)
    try:
        if not session.open():
            return [_failed("smb log-in", session.closed)]
        return list(_findings(share, session))
    except ShareUnavailable as error:
        return [_failed("smb server", str(error))]
    finally:
        session.reset()


def _findings(share: ShareSettings, session: SmbSession) -> Iterator[Finding]:
    prefix = share.acl.share.strip("/").partition("/")[2]
    yield Finding("smb client", True, session.described() + _why(share, session))
    forced = shows_one_user(session, share.path, prefix)
    yield Finding("smb one user", not forced, forced or "it acts as whoever logs in", _remedy(forced))
    found = list(samples(session, share.path, prefix))
    yield _readable(share, found)
    yield _model(share, found)
    yield _modes(share)
    yield _gates(share, session)


def _failed(name: str, sentence: str) -> Finding:
    """A refusal of ours says what to do behind its last colon or semicolon."""
    detail, _, remedy = re.sub(r"; (?=[^;]*$)", "\n", sentence.rstrip(".")).partition("\n")
    return Finding(name, False, detail, remedy or "look at the server")


def _why(share: ShareSettings, session: SmbSession) -> str:
    """Why it is the slower client, where that was left to us."""
    if share.acl.client != "auto" or "smbprotocol" not in session.described():
        return ""
    if share.acl.require_signing:
        return ", since require_signing is set"
    return ", since the server demands more than pysmb speaks (SMB 2.1 or higher, or encryption)"


def _remedy(forced: str) -> str:
    return 'take force user off the share, or use source = "declared" with rules by folder' if forced else ""


def _readable(share: ShareSettings, found: list[Sample]) -> Finding:
    if found:
        return Finding("smb descriptors", True, f"{len(found)} looked at, and readable")
    return Finding(
        "smb descriptors",
        False,
        f"no note's permissions can be read by {share.acl.username!r}",
        "give that account READ_CONTROL everywhere, or set admin_share to a hidden share of the same path in "
        "which it is an administrator",
    )


def _model(share: ShareSettings, found: list[Sample]) -> Finding:
    """Whether the declared model fits what is served: lists that stand for unix modes, or stored NT ones."""
    model = share.acl.model or ""
    shaped = sum(is_posix_shaped(one.descriptor) for one in found)
    if shaped and "posix" not in model:
        return Finding(
            "smb model",
            False,
            f"{shaped} of {len(found)} lists allow nothing in places: they stand for modes",
            'set model = "posix", or "nt+posix" where the share has vfs objects = acl_xattr',
        )
    stored = sum(not may_stand_for_mode(one.descriptor) for one in found)
    if stored and model == "posix":
        return Finding(
            "smb model",
            False,
            f"{stored} of {len(found)} lists are NT lists of their own, which no unix mode is shown as",
            'set model = "nt+posix": the share has vfs objects = acl_xattr, and both count',
        )
    return Finding("smb model", True, f"model {model!r} fits the {len(found)} lists looked at")


def _modes(share: ShareSettings) -> Finding:
    if "posix" in (share.acl.model or "") and share.acl.posix_path is None:
        return Finding(
            "smb modes",
            False,
            "a chmod on the server does not show over SMB; modes are guessed from the lists",
            "set posix_path to the server's own disk or an NFS view of the same tree",
        )
    return Finding("smb modes", True, "nothing hangs on modes that do not show")


def _gates(share: ShareSettings, session: SmbSession) -> Finding:
    """What the share itself admits: asked from the server, or declared, since `valid users` never shows."""
    declared = share.acl.share_readers is not None
    try:
        share_descriptor(session.login)
        told = "the server tells the share's own permissions"
    except ShareUnknown as error:
        if not declared:
            return Finding(
                "smb share permissions",
                False,
                f"unknown, so nobody is shown anything: {error}",
                "declare share_readers in [share.acl], or let the account be an administrator on IPC$ (for "
                "Samba `admin users` in [global])",
            )
        told = f"declared, since {error}"
    if not declared:
        told += "; `valid users` and the like show nowhere: where the share has them, declare share_readers"
    return Finding("smb share permissions", True, told)
