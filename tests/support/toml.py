"""Configuration as TOML: nested mappings and lists of mappings, plain values first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def to_toml(table: Mapping[str, Any], prefix: str = "") -> str:
    """Return a table as TOML."""
    lines = [f"{json.dumps(key)} = {_value(value)}" for key, value in table.items() if not _nested(value)]
    for key, value in table.items():
        name = f"{prefix}{json.dumps(key)}"
        for entry in [value] if isinstance(value, Mapping) else value if _nested(value) else []:
            lines += [
                f"[{name}]" if isinstance(value, Mapping) else f"[[{name}]]",
                to_toml(entry, f"{name}."),
            ]
    return "\n".join(lines) + "\n"


def _nested(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
    )


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(str(value) if isinstance(value, Path) else value)
