"""Secrets come from files of their own or from the environment, never from the configuration itself."""

from __future__ import annotations

import os
from pathlib import Path

from notewarden.errors import ConfigError
from notewarden.trust import read_trusted


def read_secret(file: Path | None, variable: str) -> str | None:
    """Return the secret in `file`, else in the file that $variable_PATH names, else in $variable, else None.

    Raises ConfigError for a file that is missing, empty or not trusted; the secret is in no message.
    """
    named = file or (Path(os.environ[f"{variable}_PATH"]) if os.environ.get(f"{variable}_PATH") else None)
    if named is None:
        return os.environ.get(variable) or None
    try:
        secret = read_trusted(named).decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise ConfigError(f"The secret file {named} is not text.") from error
    if not secret:
        raise ConfigError(f"The secret file {named} is empty.")
    return secret
