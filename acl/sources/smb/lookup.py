"""Whose SID is whose on the server: asked by LSARPC (MS-LSAT) through impacket."""

from __future__ import annotations

import time
from typing import Any

from acl.sid import Sid
from acl.sources.smb.client import Login
from acl.sources.smb.shares import EXTRA

_MAXIMUM_ALLOWED = 0x02000000
_PAUSE_S = 0.3


class LookupFailed(Exception):
    """The server does not tell."""


def own_sid(login: Login) -> Sid:
    """The SID of the account we log in with, as the server knows it. Raises LookupFailed."""
    try:
        return _asked(login)
    except LookupFailed:
        time.sleep(_PAUSE_S)  # its service may just be starting
        return _asked(login)


def _asked(login: Login) -> Sid:
    try:
        from impacket.dcerpc.v5 import lsad, lsat, transport
    except ImportError as error:
        raise LookupFailed(f"the package impacket is not installed (pip install '{EXTRA}')") from error
    domain, name = login.account
    try:
        rpc: Any = transport.SMBTransport(
            login.host, login.port, r"\lsarpc", username=name, password=login.password, domain=domain
        )
        rpc.set_connect_timeout(login.timeout_s)
        dce = rpc.get_dce_rpc()
        dce.connect()
        try:
            dce.bind(lsat.MSRPC_UUID_LSAT)
            policy = lsad.hLsarOpenPolicy2(dce, _MAXIMUM_ALLOWED)["PolicyHandle"]
            answer = lsat.hLsarLookupNames(dce, policy, (login.username,))
        finally:
            dce.disconnect()
        issuer = answer["ReferencedDomains"]["Domains"][0]["Sid"].formatCanonical()
        return Sid(f"{issuer}-{answer['TranslatedSids']['Sids'][0]['RelativeId']}")
    except Exception as error:  # impacket raises dozens of kinds, down to plain Exception
        raise LookupFailed(" ".join(str(error).split())[:120]) from error
