"""The doors to the answerer: its socket if one is configured, else in this process. Never a silent fall."""

from __future__ import annotations

import http.client
import json
import os
import socket
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from notewarden import patient
from notewarden.display import show_path
from notewarden.errors import AnswererFailed, ConfigError, NotewardenError, UsageError
from notewarden.trust import read_trusted

_PATIENCE = 300.0  # seconds for one answer
_NOTICES = "Notewarden-Notice"
_LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Wish:
    """What is wanted: ask, judge (in process), search, show, status or forget, with that request's fields.

    `show` takes pieces of an answer as they come; `streams` says whether anybody wants them.
    """

    action: str
    fields: dict[str, Any]
    show: Callable[[str], None] = lambda _: None
    streams: bool = False


@dataclass(frozen=True)
class Told:
    """What came back: the documented JSON, and what the asker must be told besides."""

    body: dict[str, Any]
    notices: tuple[str, ...] = ()


Tell = Callable[[Wish], Told]


class Refused(NotewardenError):
    """The answerer refused; it said why and with which exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        """`sentence` and `exit_code` are the service's."""
        super().__init__(sentence)
        self.exit_code = exit_code  # type: ignore[misc]


@contextmanager
def open_door(config: Path | None, *, sync: bool) -> Iterator[Tell]:
    """Yield the function that answers, through the configured door.

    Raises ConfigError where there is none, AnswererFailed for a configured one that does not open.
    """
    file = _find(config)
    table = _read(file)
    path = table.get("answerer", {}).get("socket") if isinstance(table.get("answerer"), dict) else None
    if isinstance(path, str) and path:
        place = file.parent / Path(path).expanduser()
        yield lambda wish: _over_socket(place, wish)
        return
    if not _is_embedded(table):
        raise ConfigError(
            f'{file} names no answerer; set [answerer] socket = "/path" to that of the service.'
        )
    from answerer.local import open_local

    with open_local(file, sync=sync) as tell:
        yield tell


def _find(named: Path | None) -> Path:
    """Search where `notewarden` searches; kept apart from the settings, which take long to import."""
    chosen = named or (Path(os.environ["NOTEWARDEN_CONFIG"]) if os.environ.get("NOTEWARDEN_CONFIG") else None)
    if chosen is not None:
        if not patient.is_file(chosen):
            raise ConfigError(f"There is no configuration {chosen}; name another with --config.")
        return chosen.absolute()
    places = [Path("~/.config/notewarden/config.toml").expanduser(), Path("/etc/notewarden/config.toml")]
    if os.geteuid() != 0:  # root may stand in anybody's folder
        places.insert(0, Path("config.toml"))
    for place in places:
        if patient.is_file(place):
            return place.absolute()
    raise ConfigError(
        f"There is no configuration (looked at {', '.join(map(str, places))}); name one with --config FILE, "
        "or let `notewarden init --notes PATH` write one."
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_trusted(file).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8; save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}.") from error


def _is_embedded(table: dict[str, Any]) -> bool:
    section = table.get("database", {})
    return not isinstance(section, dict) or section.get("url", "embedded") == "embedded"


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_PATIENCE)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._path))


def _over_socket(path: Path, wish: Wish) -> Told:
    if wish.action == "judge":
        raise UsageError("--judge works where the index is embedded; the service judges nothing.")
    connection = _UnixConnection(path)
    try:
        _send(connection, wish)
        response = connection.getresponse()
        if response.headers.get("Content-Type") == _LINES:
            return _streamed(response, wish)
        raw = response.read()
        notices = tuple(unquote(value) for value in response.headers.get_all(_NOTICES, []))
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise AnswererFailed(
            f"The answerer at {path} does not answer ({reason}); is notewarden-answerer running?"
        ) from error
    finally:
        connection.close()
    return Told(_body(response.status, raw), notices)


def _send(connection: http.client.HTTPConnection, wish: Wish) -> None:
    if wish.action == "status":
        as_user = wish.fields.get("as")
        connection.request("GET", "/v1/status" + (f"?as={quote(as_user, safe='')}" if as_user else ""))
        return
    fields = {name: _sendable(value) for name, value in wish.fields.items()}
    headers = {"Content-Type": "application/json", **({"Accept": _LINES} if wish.streams else {})}
    connection.request("POST", f"/v1/{wish.action}", json.dumps(fields).encode("ascii"), headers)


def _streamed(response: http.client.HTTPResponse, wish: Wish) -> Told:
    """Show text as it comes; the last line is the whole answer, and without one there is none."""
    for line in response:
        event = _event(line)
        if "text" in event:
            wish.show(str(event["text"]))
        elif "answer" in event:
            return Told(dict(event["answer"]), tuple(map(str, event.get("notices", ()))))
        elif "error" in event:
            raise _refused(event)
    raise AnswererFailed("The answerer broke off; what was shown is incomplete.")


def _event(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError as error:
        raise AnswererFailed("The answerer broke off; what was shown is incomplete.") from error
    if not isinstance(event, dict):
        raise AnswererFailed("The answerer broke off, or what listens there is none.")
    return event


def _refused(body: dict[str, Any]) -> Refused:
    code = body.get("exit_code")
    return Refused(str(body.get("error", "The answerer refused.")), code if isinstance(code, int) else 8)


def _sendable(value: Any) -> Any:
    """Name bytes of an argument that are no UTF-8 as `\\xNN`, which the service reads back."""
    if isinstance(value, list):
        return [_sendable(one) for one in value]
    return show_path(os.fsencode(value)) if isinstance(value, str) and not value.isascii() else value


def _body(status: int, raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise AnswererFailed("The answerer broke off, or what listens there is none.") from error
    if not isinstance(body, dict):
        raise AnswererFailed("The answerer broke off, or what listens there is none.")
    if status != 200:
        raise _refused(body)
    return body
