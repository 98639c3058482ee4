"""The late check over the indexer's private socket: note ids go there, compiled lists come back."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from acl.live import NoteNow, from_wire
from db.latecheck import Indexed
from notewarden.errors import DirectoryUnreachable, ShareUnavailable

_PATIENCE = 15.0  # seconds for one reply
_MOST_BYTES = 64 << 20  # of a reply


def over_socket(path: Path) -> Callable[[Sequence[Indexed]], Mapping[int, NoteNow]]:
    """Return a late check that asks the indexer at `path`.

    It raises ShareUnavailable for no reply or one that makes no sense, DirectoryUnreachable where the indexer
    cannot tell who is meant.
    """
    return lambda notes: _ask(path, [note.note_id for note in notes])


def _ask(path: Path, note_ids: Sequence[int]) -> Mapping[int, NoteNow]:
    try:
        told = json.loads(_exchange(path, json.dumps({"notes": list(note_ids)}).encode() + b"\n"))
        if told.get("error") == "directory":
            raise DirectoryUnreachable
        return {int(note_id): from_wire(one) for note_id, one in told["notes"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ShareUnavailable(
            "The indexer does not answer, so permissions cannot be checked on the share; see whether "
            "`notewarden run` is up."
        ) from error


def _exchange(path: Path, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(_PATIENCE)
        line.connect(os.fspath(path))
        line.sendall(request)
        pieces, total = [], 0
        while piece := line.recv(1 << 16):
            pieces.append(piece)
            total += len(piece)
            if total > _MOST_BYTES:
                raise ValueError("the reply is too long")
    return b"".join(pieces)
