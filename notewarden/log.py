"""Logging: for people on a terminal, JSON elsewhere, always to stderr; secrets and note text never."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from notewarden.display import printable, show_path
from notewarden.settings_sections import LogSettings

HIDDEN = "[hidden]"
_HIDDEN_KEYS = frozenset(
    {
        "answer", "api_key", "authorization", "body", "chunk", "content", "cookie", "credential", "dsn",
        "headers", "heading", "password", "passwd", "prompt", "query", "question", "quote", "secret", "text",
        "token", "url", "vector",
    }
)  # fmt: skip
_HIDDEN_ENDINGS = ("_key", "_password", "_secret", "_text", "_token", "_url")
_MOST_FRAMES = 5
_NOISY = (
    "voyage",
    "voyageai",
    "httpx",
    "httpcore",
    "urllib3",
    "asyncio",
    "apscheduler",
    "anthropic",
    "psycopg",
    "markdown_it",
)


def configure_logging(settings: LogSettings) -> None:
    """Set up this process's logging as `[log]` says; call it once, before the first line is logged.

    Libraries log through the same door from warning on, since their debug lines carry requests and texts.
    """
    shared = _processors()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(settings)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(settings.level.upper())),
        cache_logger_on_first_use=False,
    )


def get_logger(name: str) -> FilteringBoundLogger:
    """Return a logger: the event is a fixed sentence, everything variable goes into keys."""
    logger: FilteringBoundLogger = structlog.get_logger(name)
    return logger


def naming(**keys: Any) -> AbstractContextManager[None]:
    """Put `keys`, such as the number of a run, on every line that this thread logs inside the block."""
    return structlog.contextvars.bound_contextvars(**keys)


def hide_private(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace the values of keys that hold secrets or notes' text, however deep."""
    for key in list(event):
        event[key] = _safe(key, event[key])
    return event


def shorten_fault(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Put an exception's type and its innermost places into the event instead of its text.

    The text of a foreign error may quote a note, a query's values or a request's headers.
    """
    info = event.pop("exc_info", None)
    error = info if isinstance(info, BaseException) else info[1] if isinstance(info, tuple) else None
    if info is True:
        error = sys.exc_info()[1]
    if error is not None:
        event["error"] = type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
        event["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return event


def _safe(key: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value  # a count of texts or tokens is no text
    if _is_private(key):
        return HIDDEN
    if isinstance(value, Mapping):
        return {str(name): _safe(str(name), inner) for name, inner in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [_safe(key, inner) for inner in value]
    return show_path(value) if isinstance(value, bytes) else value


def _is_private(key: str) -> bool:
    name = key.lower().replace("-", "_")
    return name in _HIDDEN_KEYS or name.endswith(_HIDDEN_ENDINGS)


def _escape(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        event[key] = printable(value if isinstance(value, str) else str(value))
    return event


def _processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        shorten_fault,
        hide_private,
    ]


def _renderers(settings: LogSettings) -> list[Processor]:
    if settings.format == "human" or (
        settings.format == "auto" and sys.stderr.isatty() and not _in_journal()
    ):
        return [
            _escape,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty() and "NO_COLOR" not in os.environ),
        ]
    return [structlog.processors.JSONRenderer(default=str)]


def _in_journal() -> bool:
    """Tell whether stderr is systemd's journal; the variable alone is inherited by terminals too."""
    info = os.fstat(sys.stderr.fileno())
    return os.environ.get("JOURNAL_STREAM") == f"{info.st_dev}:{info.st_ino}"
