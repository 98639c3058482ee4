"""How every admin command starts: its settings, and what it logs."""

from __future__ import annotations

import os
from pathlib import Path

from notewarden.log import configure_logging
from notewarden.settings import Settings, find_config, load_settings
from notewarden.settings_sections import LogSettings

DEBUG = "NOTEWARDEN_DEBUG"
"""Set in the environment, it shows tracebacks and everything that is logged."""


def quiet_logging(settings: LogSettings | None = None) -> None:
    """Log only errors: a command says itself what it did, the daemon's log is for what nobody watches."""
    given = settings or LogSettings()
    level = given.level if given.level == "debug" or os.environ.get(DEBUG) else "error"
    configure_logging(given.model_copy(update={"level": level}))


def settings_of(config: Path | None) -> Settings:
    """Return the configuration that this command works by. Raises ConfigError."""
    settings = load_settings(find_config(config))
    quiet_logging(settings.log)
    return settings
