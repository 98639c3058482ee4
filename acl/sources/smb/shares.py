"""A share's own descriptor, asked from the server's SRVSVC (MS-SRVS 3.1.4.8, level 502) through impacket.

NetShareGetInfo may answer success without a descriptor; NetShareEnum does not. What cannot be asked is
unknown, and unknown is nobody.
"""

from __future__ import annotations

from typing import Any

from acl.sources.smb.client import Login

EXTRA = "notewarden[nas]"
_LEVEL = 502


class ShareUnknown(Exception):
    """The share's own descriptor cannot be had; the text says why."""


def share_descriptor(login: Login) -> bytes:
    """The raw descriptor of the share itself. Raises ShareUnknown."""
    try:
        from impacket.dcerpc.v5 import srvs, transport
    except ImportError as error:
        raise ShareUnknown(f"the package impacket is not installed (pip install '{EXTRA}')") from error
    domain, name = login.account
    try:
        rpc: Any = transport.SMBTransport(
            login.host, login.port, r"\srvsvc", username=name, password=login.password, domain=domain
        )
        rpc.set_connect_timeout(login.timeout_s)
        dce = rpc.get_dce_rpc()
        dce.connect()
        try:
            dce.bind(srvs.MSRPC_UUID_SRVS)
            answer = srvs.hNetrShareEnum(dce, _LEVEL)
        finally:
            dce.disconnect()
        return _find(answer["InfoStruct"]["ShareInfo"]["Level502"]["Buffer"], login.share)
    except ShareUnknown:
        raise
    except Exception as error:  # impacket raises dozens of kinds, down to plain Exception
        word = " ".join(str(error).split())
        raise ShareUnknown(f"the server does not tell it to this account ({word[:120]})") from error


def _find(shares: Any, name: str) -> bytes:
    for one in shares:
        if one["shi502_netname"].rstrip("\0").lower() == name.lower():
            raw = one["shi502_security_descriptor"]
            if not raw:
                raise ShareUnknown("the server answers without it")
            return b"".join(part if isinstance(part, bytes) else bytes([part]) for part in raw)
    raise ShareUnknown("the server does not list this share")
