"""What the audit keeps of a question: its text, a keyed hash of it, or nothing, as configured."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from answerer.identity import Asker
from db import audit
from db.pool import Connection
from notewarden.errors import ConfigError
from notewarden.settings import Settings

_KEY_BYTES = 32


@dataclass(frozen=True)
class Entry:
    """What was done: `path` is what a show asked for, `notes` what is given out, as SHARE:PATH.

    `detail` holds counts and names of ours, never text of a question or a note.
    """

    action: str
    question: str = ""
    path: str = ""
    notes: tuple[str, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)


class Auditor:
    """Writes the row that must stand before any text leaves."""

    def __init__(self, settings: Settings) -> None:
        self._mode = settings.privacy.questions
        self._key_file = Path(os.environ.get("STATE_DIRECTORY") or settings.state_dir) / "audit-key"

    def record(self, conn: Connection, asker: Asker, entry: Entry) -> None:
        """Write and commit one row on `conn`, which stands outside any transaction.

        A question's text is kept as the configuration says, paths as they are. Raises what the database
        raises, and then nothing may leave.
        """
        detail: dict[str, Any] = {"notes": [_storable(one) for one in entry.notes]} if entry.notes else {}
        detail |= entry.detail
        if asker.acts_for_another:
            detail["as"] = True
        subject = _storable(entry.path) or self._kept(_storable(entry.question))
        audit.add(conn, audit.Act(asker.actor, asker.account.sid, entry.action, subject, detail))

    def _kept(self, question: str) -> str:
        if self._mode == "keep":
            return question
        if self._mode == "drop":
            return ""
        return "hmac-sha256:" + hmac.new(self._key(), question.encode("utf-8"), "sha256").hexdigest()

    def _key(self) -> bytes:
        try:
            with suppress(FileExistsError):
                _create(self._key_file)
            key = self._key_file.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"The key for hashed questions, {self._key_file}, cannot be used: {error.strerror}."
            ) from error
        if len(key) < _KEY_BYTES:
            raise ConfigError(f"The key for hashed questions, {self._key_file}, is cut short; remove it.")
        return key


def _create(file: Path) -> None:
    """Make the key file whole or not at all."""
    draft = file.with_name(f"{file.name}.{os.getpid()}-{secrets.token_hex(4)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(secrets.token_bytes(_KEY_BYTES))
    try:
        os.link(draft, file)
    finally:
        draft.unlink()


def _storable(text: str) -> str:
    """Text columns take neither NUL nor what is no Unicode."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
