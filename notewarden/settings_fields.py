"""Types of single configuration values: durations, times of day, paths, addresses."""

from __future__ import annotations

import ipaddress
import re
from contextvars import ContextVar
from datetime import time, timedelta
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, StringConstraints

BASE_FOLDER: ContextVar[Path | None] = ContextVar("base_folder", default=None)
"""The folder of the configuration being read: relative paths in it start there."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d{1,6})([smhd])")
_DAILY = re.compile(r"daily ([01]\d|2[0-3]):([0-5]\d)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_ACTIVE_SCHEMES = frozenset({"javascript", "vbscript", "data"})


def parse_duration(value: object) -> timedelta:
    """Return the length of "60s", "5m", "24h" or "2d". Raises ValueError for anything else, zero too."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    length = timedelta(**{_UNITS[found.group(2)]: int(found.group(1))}) if found else timedelta()
    if not length:
        raise ValueError('must be a length of time such as "60s", "5m", "24h" or "2d"')
    return length


def parse_daily(value: object) -> time | None:
    """Return the local time of day of "daily 03:00", None for "off". Raises ValueError for anything else."""
    if value == "off":
        return None
    found = _DAILY.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError('must be a time of day such as "daily 03:00", or "off"')
    return time(int(found.group(1)), int(found.group(2)))


def _duration(value: object) -> object:
    return value if isinstance(value, timedelta) else parse_duration(value)


def _duration_or_poll(value: object) -> object:
    return value if value == "poll" else _duration(value)


def _duration_or_off(value: object) -> object:
    return None if value in ("off", None) else _duration(value)


def _daily(value: object) -> object:
    return value if isinstance(value, time) else parse_daily(value)


def _own_path(value: Path) -> Path:
    """Relative paths start at the configuration's folder; `~` is the running account's home."""
    base = BASE_FOLDER.get() or Path.cwd()
    try:
        return base / value.expanduser()
    except RuntimeError as error:
        raise ValueError("starts with ~, but this account has no home folder") from error


def _share_root(value: Path) -> Path:
    if not value.is_absolute() or ".." in value.parts:
        raise ValueError("must be an absolute path without ..")
    return value


def _no_text_is_none(value: object) -> object:
    return None if value == "" else value


def _share_name(value: str) -> str:
    if not value.strip() or not value.isprintable() or set(value) & set(":/\\"):
        raise ValueError("must be a name without : / \\ and control characters")
    return value


def _link(value: str) -> str:
    scheme = _SCHEME.match(value)
    if not scheme or scheme.group().lower() in _ACTIVE_SCHEMES:
        raise ValueError('must start with a scheme such as "https:", "smb:" or "file:"')
    if "{path}" not in value or re.search(r"[{}]", value.replace("{path}", "")):
        raise ValueError("must contain {path}, and no other braces")
    return value


def _folder(value: str) -> str:
    """A rule's folder, relative to the share's root; "" is the root itself."""
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or "\0" in value:
        raise ValueError('must be a folder relative to the share, without ..; "" is its root')
    return "" if value in ("", ".") else str(path)


def _safe_address(value: str) -> str:
    """Keys and note text go there: in clear only to this machine itself."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise ValueError("must be an http or https address without a user name or password in it")
    if parts.scheme == "http" and not is_loopback(value):
        raise ValueError("may use plain http only to this machine itself; use https")
    return value


def is_loopback(address: str) -> bool:
    """Tell whether a web address is on this machine itself: 127.0.0.0/8, ::1 or the name localhost."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _metrics_door(value: object) -> object:
    """A Unix socket's absolute path, or a port of this machine itself: nothing that others could reach."""
    if value is None or value == "":
        return None
    text = str(value)
    if text.startswith("/"):
        return Path(text)
    host, colon, port = text.rpartition(":")
    if colon and port.isdigit() and 0 < int(port) < 65_536 and is_loopback(f"http://{host}:{port}"):
        return (host.strip("[]"), int(port))
    raise ValueError('must be the path of a socket, or a port of this machine such as "127.0.0.1:9464"')


def _database_url(value: str) -> str:
    if value != "embedded" and not value.startswith(("postgresql://", "postgres://")):
        raise ValueError('must be "embedded" or a postgresql:// address')
    return value


def _reader_url(value: str) -> str:
    if value == "embedded":
        raise ValueError("must be a postgresql:// address")
    return _database_url(value)


Duration = Annotated[timedelta, BeforeValidator(_duration)]
DurationOrPoll = Annotated[timedelta | Literal["poll"], BeforeValidator(_duration_or_poll)]
DurationOrOff = Annotated[timedelta | None, BeforeValidator(_duration_or_off)]
Daily = Annotated[time | None, BeforeValidator(_daily)]
OwnPath = Annotated[Path, AfterValidator(_own_path)]
OptionalPath = Annotated[OwnPath | None, BeforeValidator(_no_text_is_none)]
ShareRoot = Annotated[Path, AfterValidator(_share_root)]
ShareName = Annotated[str, StringConstraints(max_length=100), AfterValidator(_share_name)]
Link = Annotated[Annotated[str, AfterValidator(_link)] | None, BeforeValidator(_no_text_is_none)]
MetricsDoor = Annotated[Path | tuple[str, int] | None, BeforeValidator(_metrics_door)]
Folder = Annotated[str, AfterValidator(_folder)]
Address = Annotated[Annotated[str, AfterValidator(_safe_address)] | None, BeforeValidator(_no_text_is_none)]
DatabaseUrl = Annotated[str, AfterValidator(_database_url)]
ReaderUrl = Annotated[Annotated[str, AfterValidator(_reader_url)] | None, BeforeValidator(_no_text_is_none)]
Sha256 = Annotated[
    Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None, BeforeValidator(_no_text_is_none)
]
Name = Annotated[str, StringConstraints(min_length=1)]
