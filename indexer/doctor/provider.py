"""What doctor looks at of the model provider. Only the answerer speaks to it, so its own check is called."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from indexer.doctor.machine import is_closed
from indexer.doctor.report import Check
from notewarden.secret_files import placed
from notewarden.settings import Settings

_GROUP = "notewarden.model_check"


def models(settings: Settings) -> list[Check]:
    """Each configured model, as its provider tells of it; none where answers are extracts.

    Raises ConfigError where there is no key.
    """
    key = settings.answer.api_key_file
    if settings.answer.provider != "anthropic":
        return []
    if key is not None and (is_closed(key) or _is_anothers(placed(key))):
        detail = f"The key {key} is not this account's to look at."
        return [
            Check("answer model", True, detail, "Run `notewarden doctor` as the answerer's account, too.")
        ]
    checks: list[Check] = []
    for entry in entry_points(group=_GROUP):
        look: Callable[[Settings], list[tuple[str, bool, str, str]]] = entry.load()
        checks += [Check(f"answer {name}", ok, detail, remedy) for name, ok, detail, remedy in look(settings)]
    return checks or [
        Check(
            "answer model", True, "Not asked for: the answerer is not installed here.", "Run `make install`."
        )
    ]


def _is_anothers(file: Path) -> bool:
    return file.exists() and not os.access(file, os.R_OK)
