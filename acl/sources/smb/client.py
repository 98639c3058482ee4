"""Asking an SMB server about its files: one interface, two libraries behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from acl.sources.smb import wire
from acl.sources.smb.status import NTLM_BLOCKED, why_no_login
from notewarden.errors import NotewardenError

REPARSE_POINT = 0x400
FOLDER = 0x10


@dataclass(frozen=True)
class Login:
    """Where and as whom to ask. `password` is in no repr. `share` is the one that people use."""

    host: str
    port: int
    share: str
    username: str
    password: str
    require_signing: bool = False
    timeout_s: float = 30.0
    admin_share: str = ""

    @property
    def account(self) -> tuple[str, str]:
        """Domain and name of the account, the domain "" where none was given before a backslash."""
        domain, _, name = self.username.rpartition("\\")
        return domain, name

    @property
    def tree(self) -> str:
        """The share that files are asked on: the administrators' one, where there is one."""
        return self.admin_share or self.share

    def __repr__(self) -> str:
        return f"Login({self.username!r} at {self.host}:{self.port}/{self.share})"


@dataclass(frozen=True)
class Answer:
    """What the server tells of one file. `status` other than 0: it refused, and nothing else counts.

    `write_time` is a FILETIME (100 ns since 1601); `raw` the descriptor's bytes.
    """

    status: int
    file_id: int = 0
    size: int = 0
    write_time: int = 0
    attributes: int = 0
    raw: bytes = b""


class SmbRefused(NotewardenError):
    """The file server cannot be used; the sentence says which setting meets which.

    `demands_more`: another client may well succeed. `guest`: it would let us in, but as nobody in particular.
    `status` is the NT status, 0 if there was none. `unreachable`: no connection could be made at all.
    """

    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        demands_more: bool = False,
        guest: bool = False,
        status: int = 0,
        unreachable: bool = False,
    ) -> None:
        super().__init__(message)
        self.unreachable = unreachable
        self.demands_more = demands_more
        self.guest = guest
        self.status = status


class SmbGone(NotewardenError):
    """The connection to the file server broke off."""

    exit_code = 4


class SmbClient(Protocol):
    """One session with one share, for one thread at a time. Raises SmbGone when the connection breaks."""

    @property
    def name(self) -> str:
        """The library's name."""
        ...

    @property
    def dialect(self) -> str:
        """The protocol spoken, as people write it."""
        ...

    @property
    def guest(self) -> bool:
        """Whether the server let us in as a guest, whatever account we named."""
        ...

    def answers(self, paths: Sequence[str]) -> list[Answer]:
        """Ask for the descriptors of files or folders (``a\\b.md``, "" for the root), several in flight."""
        ...

    def maximal_access(self, path: str) -> int | None:
        """The rights this session has on a file or folder as the server sees it, None if it does not tell."""
        ...

    def read(self, path: str, most: int) -> bytes:
        """Read a file from its start, at most `most` bytes. Raises OSError if it is refused."""
        ...

    def close(self) -> None:
        """End the session; never raises."""
        ...


def refused_account(login: Login, status: int) -> SmbRefused:
    """The refusal of our account."""
    remedy = "correct username and password_file in [share.acl]"
    if status == NTLM_BLOCKED:
        remedy = "allow NTLMv2 there for this account (`ntlm auth`); Kerberos is not spoken"
    told = why_no_login(status) or f"NT status {status:#010x}"
    return SmbRefused(f"{login.host} does not let {login.username!r} in: {told}; {remedy}.", status=status)


def as_guest(login: Login) -> str:
    """What it means that the server takes our account for a guest."""
    return (
        f"{login.host} takes {login.username!r} for a guest (`map to guest`), so nobody knows whose rights "
        "it shows: correct username and password_file in [share.acl], or set `map to guest = never` there"
    )


_THEN = (
    (wire.QUERY_INFO, wire.query_file_id()),
    (wire.QUERY_INFO, wire.query_security()),
    (wire.CLOSE, wire.close()),
)


def question(path: str) -> list[tuple[int, bytes]]:
    """The requests of one question about one file, to be sent as one packet."""
    return [(wire.CREATE, wire.create(path)), *_THEN]


def as_answer(replies: Sequence[tuple[int, bytes]]) -> Answer:
    """One answer from the (status, body) of the replies to `question`; the first status that fails counts."""
    failed = next((status for status, _ in replies[:3] if status), 0)
    if failed:
        return Answer(failed)
    try:
        told, number = wire.opened(replies[0][1]), wire.payload(replies[1][1])
        raw = wire.payload(replies[2][1])
    except ValueError as error:
        raise SmbGone(f"The file server's answer is not understood ({error}).") from error
    return Answer(0, int.from_bytes(number[:8], "little"), told.size, told.write_time, told.attributes, raw)
