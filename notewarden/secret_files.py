"""Secrets come from files of their own or from the environment, never from the configuration itself."""

from __future__ import annotations

import os
from pathlib import Path

from notewarden.errors import ConfigError
from notewarden.trust import read_trusted


def placed(file: Path) -> Path:
    """Return where the secret `file` is to be read: systemd's copy of it, if this service was given one.

    A unit hands its service a folder of secrets (LoadCredential=secret:FOLDER) as "secret_NAME" in a folder
    that no other account sees. The configuration goes on naming the file itself, so one configuration serves
    both services and root's own commands.
    """
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return file
    copy = Path(folder) / f"secret_{file.name}"
    return copy if copy.exists() else file


def read_secret(file: Path | None, variable: str) -> str | None:
    """Return the secret in `file` (or systemd's copy), in the file that $variable_PATH names, or $variable.

    The first that is set counts; None where none is. Raises ConfigError for a file that is missing, empty or
    not trusted; the secret is in no message.
    """
    named = file or (Path(os.environ[f"{variable}_PATH"]) if os.environ.get(f"{variable}_PATH") else None)
    if named is None:
        return os.environ.get(variable) or None
    named = placed(named)
    try:
        secret = read_trusted(named).decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise ConfigError(f"The secret file {named} is not text.") from error
    if not secret:
        raise ConfigError(f"The secret file {named} is empty.")
    return secret
