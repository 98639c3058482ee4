"""NT statuses (MS-ERREF 2.3) as sentences: what the server meant, and which setting meets which."""

from __future__ import annotations

ACCESS_DENIED = 0xC0000022
LOGON_FAILURE = 0xC000006D
NTLM_BLOCKED = 0xC0000418
NOT_SUPPORTED = 0xC00000BB
BAD_NETWORK_NAME = 0xC00000CC

GONE = frozenset({0xC0000034, 0xC000003A, 0xC000000F, 0xC0000056})  # no such name, path, file; being deleted
TOO_LONG = frozenset({0xC0000023, 0x80000005})  # the buffer is too small, in two words

_LOGON = {
    LOGON_FAILURE: "the user name or password is wrong, or the server refuses NTLM log-ins",
    0xC0000064: "there is no such user",
    0xC000006A: "the password is wrong",
    0xC0000071: "its password has expired",
    0xC0000224: "its password must be changed first",
    0xC0000072: "the account is disabled",
    0xC0000193: "the account has expired",
    0xC0000234: "the account is locked",
    0xC000006E: "the account is restricted",
    0xC000006F: "it may not log in at this hour",
    0xC0000070: "it may not log in from this machine",
    0xC000015B: "it may not log in over the network",
    0xC000018C: "the server does not trust the account's domain",
    0xC000018D: "the server has no trust with its domain",
    NTLM_BLOCKED: "the server's policy blocks NTLM log-ins",
    0xC000005E: "the server reaches no log-on server",
}
_FILE = {
    ACCESS_DENIED: "the service's account may not read its permissions",
    0xC0000043: "another program has it open for itself alone",
    0xC0000033: "its name cannot be said over SMB",
    0xC0000023: "its access list is too long",
    0x80000005: "its access list is too long",
    0x8000002D: "a link stands in its way; links are not followed",
    0xC00000BA: "it is a folder",
}


def why_no_login(status: int) -> str:
    """Why a log-in failed, "" if the status is not about the account."""
    return _LOGON.get(status, "")


def why_unreadable(status: int) -> str:
    """Why a note's permissions could not be read, for the ledger."""
    return _FILE.get(status, f"the file server refused its permissions (NT status {status:#010x})")
