"""What the admin command does while a daemon is at work: ask it, show how far it is, end as it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from db import requests
from db.pool import Connection, Database
from db.requests import Kind, Standing
from indexer.context import Progress
from indexer.output import say
from indexer.progress import ProgressLine
from notewarden.display import show_path
from notewarden.errors import DatabaseUnavailable, NotewardenError

_LOOK_S = 0.2
_LOST_S = 60.0  # without a daemon, or without a database, that long: nobody will serve the request


class DaemonRefused(NotewardenError):
    """The daemon could not do it; it said why and with which exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        """`sentence` and `exit_code` are the daemon's."""
        super().__init__(sentence)
        self.exit_code = exit_code  # type: ignore[misc]


def ask_daemon(
    database: Database, kind: Kind, arguments: Mapping[str, Any], *, quiet: bool = False
) -> tuple[dict[str, Any], int] | None:
    """Let the daemon do it and wait; returns its result and exit code, None where no daemon runs.

    Raises DaemonRefused with what the daemon said, NotewardenError where it is gone for a minute,
    DatabaseUnavailable. Ctrl-C takes back a request that nobody has taken up.
    """
    with database.owner() as conn:
        holder = requests.daemon(conn)
        if holder is None:
            return None
        request_id = requests.put(conn, kind, arguments)
    if not quiet:
        say(f"{holder.name} is at work on this database; it does this now")
    try:
        standing = _followed(database, request_id, ProgressLine(terminal_only=quiet))
    except KeyboardInterrupt:
        with database.owner() as conn:
            requests.finish(conn, request_id, {"error": "interrupted"}, 130)
        raise
    result, code = standing.result or {}, standing.exit_code if standing.exit_code is not None else 1
    if "error" in result:
        raise DaemonRefused(str(result["error"]), code)
    return result, code


def argument_paths(paths: Sequence[str] | None) -> list[str] | None:
    """Return the paths of an argument list as JSON can hold them: bytes that are no UTF-8 as \\xNN."""
    return None if paths is None else [show_path(os.fsencode(path)) for path in paths]


def _followed(database: Database, request_id: int, line: ProgressLine) -> Standing:
    """Look until it has ended. A database or daemon that restarts meanwhile is waited for."""
    seen = time.monotonic()
    try:
        while True:
            try:
                with database.owner() as conn:
                    standing, alive = requests.look(conn, request_id), requests.daemon(conn) is not None
            except DatabaseUnavailable:
                if time.monotonic() - seen > _LOST_S:
                    raise
            else:
                if standing.ended:
                    return standing
                seen = time.monotonic() if alive else seen
                if time.monotonic() - seen > _LOST_S:
                    raise _lost(database, request_id)
                _show(line, standing)
            time.sleep(_LOOK_S)
    finally:
        line.close()


def _lost(database: Database, request_id: int) -> NotewardenError:
    with database.owner() as conn:
        _end(conn, request_id)
    return NotewardenError(
        f"The daemon ended and has not come back for {_LOST_S:.0f} s; run the command again without it."
    )


def _end(conn: Connection, request_id: int) -> None:
    requests.finish(conn, request_id, {"error": "the daemon was gone"}, 1)


def _show(line: ProgressLine, standing: Standing) -> None:
    made = dict(standing.progress or {})
    made.pop("elapsed_s", None)
    if made:
        line(Progress(**made))
    else:
        line.say("waiting for the note in work")
