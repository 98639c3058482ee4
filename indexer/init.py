"""`notewarden init`: a configuration for one folder of notes, readable by whoever may read them here."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import tomllib
from pathlib import Path

from acl.mounts import mount_of
from acl.sources.posix import why_not_enforced
from notewarden import patient
from notewarden.errors import ConfigError, ShareUnavailable, UsageError
from notewarden.settings import parse_settings
from notewarden.trust import require_trusted

_TEMPLATE = """\
# Written by `notewarden init`. Every key and its default: config.example.toml.

# The index: whoever owns this folder can read every note in it.
state_dir = {state_dir}

[database]
url = "embedded"

[[share]]
name = {name}
path = {path}

# Whoever may read a file on this machine may find it.
[share.acl]
source = "posix"
model = "posix"
guards = "posix_x"

[directory]
source = "nss"

[embedding]
provider = "local"
"""

_FORBIDDEN_IN_NAME = re.compile(r"[:/\\\x00-\x1f\x7f-\x9f]|[^\S ]")


def write_config(notes: Path, target: Path, *, force: bool = False) -> Path:
    """Write the configuration for the folder `notes` to `target` (mode 0600) and return the notes' path.

    Raises UsageError for a folder that is none or a `target` that exists, ConfigError where the result could
    not be used: no real modes on this mount, or configuration or index inside the notes; ShareUnavailable for
    a mount that does not answer.
    """
    target = target.absolute()
    for path in (notes.absolute(), target):
        if not patient.answers(path, patient.FIRST_S):
            raise ShareUnavailable(
                f"The file system of {path} does not answer; check the mount and its server."
            )
    if os.path.lexists(target) and not force:
        raise UsageError(f"{target} exists already; give --force to replace it.")
    notes = _folder(notes)
    _require_modes(notes)
    state_dir = state_dir_for(notes)
    _require_outside(target, notes, "The configuration", "name another place with --config")
    _require_outside(state_dir, notes, "The index", "set XDG_STATE_HOME to a folder outside")
    _write(target, _text(notes, state_dir), notes, force=force)
    return notes


def state_dir_for(notes: Path) -> Path:
    """Return the folder below the user's state home that is this notes folder's alone."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    base = given if given.is_absolute() else Path.home() / ".local/state"
    plain = re.sub(r"[^A-Za-z0-9]+", "-", notes.name).strip("-").lower()[:24] or "notes"
    return base / "notewarden" / f"{plain}-{hashlib.sha256(os.fsencode(notes)).hexdigest()[:12]}"


def _folder(given: Path) -> Path:
    notes = given.absolute()
    if ".." in notes.parts:
        notes = notes.resolve()
    if not notes.is_dir():
        raise UsageError(f"{given} is not a folder; give the folder that holds the notes.")
    if not os.access(notes, os.R_OK | os.X_OK):
        raise UsageError(f"{notes} may not be listed by this account; run as one that may read the notes.")
    return notes


def _require_modes(notes: Path) -> None:
    try:
        trouble = why_not_enforced(mount_of(notes))
    except ShareUnavailable as error:
        raise ConfigError(str(error)) from error
    if trouble:
        raise ConfigError(
            f"{notes} cannot be indexed with the permissions that show on it: {trouble}; write a "
            'configuration by hand with [share.acl] source = "declared" and a [[share.acl.rule]] for each '
            "folder (see config.example.toml), or index a local disk or an NFSv3 view of the same notes."
        )


def _require_outside(path: Path, notes: Path, what: str, remedy: str) -> None:
    root = notes.resolve()
    if path.absolute().is_relative_to(notes) or path.resolve().is_relative_to(root):
        raise ConfigError(f"{what} would lie inside the notes, at {path}, where others may see it; {remedy}.")


def _text(notes: Path, state_dir: Path) -> str:
    name = _FORBIDDEN_IN_NAME.sub("-", notes.name).strip()[:100] or "notes"
    name = "".join(char if char.isprintable() else "-" for char in name)
    return _TEMPLATE.format(state_dir=_quoted(state_dir), name=_quoted(name), path=_quoted(notes))


def _quoted(value: Path | str) -> str:
    """Return a TOML basic string. Raises ConfigError for a path that is not UTF-8, which TOML cannot hold."""
    text = str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ConfigError(f"{text!r} is not UTF-8, so no configuration can name it; rename it.") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write(target: Path, text: str, notes: Path, *, force: bool) -> None:
    """Put the file there whole or not at all, after a look at it with the eyes of the loader."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        try:
            _require_usable(draft, target, text, notes)
            _put(draft, target, force=force)
        finally:
            draft.unlink(missing_ok=True)
    except FileExistsError as error:
        raise UsageError(f"{target} exists already; give --force to replace it.") from error
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}.") from error


def _put(draft: Path, target: Path, *, force: bool) -> None:
    if force:
        draft.replace(target)
    else:
        os.link(draft, target)  # unlike a rename it never replaces what came there meanwhile


def _require_usable(draft: Path, target: Path, text: str, notes: Path) -> None:
    parse_settings(tomllib.loads(text), target)
    try:
        require_trusted(draft, [notes])
    except ConfigError as error:
        raise ConfigError(str(error).replace(str(draft), str(target))) from None
