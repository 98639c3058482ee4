"""Turns what pydantic found wrong into sentences that name section, key and remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_MOST_SHOWN = 3


def explain(error: ValidationError, data: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return the first few faults of `data` as one line; values are never repeated, they may be secrets."""
    found = [_fault(details, data, model) for details in error.errors(include_url=False, include_input=False)]
    shown = list(dict.fromkeys(found))
    more = len(shown) - _MOST_SHOWN
    return "; ".join(shown[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "") + "."


def _fault(details: ErrorDetails, data: Mapping[str, Any], model: type[BaseModel]) -> str:
    keys = _real_keys(details["loc"], data)
    place = _place(keys, data)
    kind, message = details["type"], details["msg"]
    if kind == "extra_forbidden":
        return f"{place} is not a known key{_nearest(keys, model)}"
    if kind == "missing":
        return f"{place} is missing"
    if kind in ("model_type", "model_attributes_type"):
        message = "must be a table"
    message = message.removeprefix("Value error, ")
    message = re.sub("^(Input|String|List) should", "must", message)
    return f"{place}: {message}" if place else message


def _real_keys(location: tuple[int | str, ...], data: Mapping[str, Any]) -> list[int | str]:
    """Leave out what pydantic adds to a location, such as the member of a union that was tried last."""
    keys: list[int | str] = []
    here: Any = data
    for number, key in enumerate(location):
        inner = _child(here, key)
        if inner is None and number < len(location) - 1 and not isinstance(here, Mapping | list):
            break
        keys.append(key)
        here = inner
        if not isinstance(here, Mapping | list):
            break
    return keys


def _place(keys: list[int | str], data: Mapping[str, Any]) -> str:
    """Say where, as `[share.acl] guards (share "hr")`: the section, the key, and which entry of an array."""
    names = [key for key in keys if isinstance(key, str)]
    entry_of_array = bool(keys) and isinstance(keys[-1], int)
    whole_section = isinstance(_at(keys, data), Mapping) or entry_of_array
    section, key = (names, "") if whole_section else (names[:-1], names[-1] if names else "")
    shown = " ".join(part for part in (_header(section, keys, data), key) if part)
    return shown + _which(keys, data)


def _header(section: list[str], keys: list[int | str], data: Mapping[str, Any]) -> str:
    if not section:
        return ""
    position = max(number for number, key in enumerate(keys) if key == section[-1])
    in_array = isinstance(_at(keys[: position + 1], data), list)
    return f"[[{'.'.join(section)}]]" if in_array else f"[{'.'.join(section)}]"


def _which(keys: list[int | str], data: Mapping[str, Any]) -> str:
    """Name the array entries on the way: a share by its name, a rule by its folder, others by number."""
    found = []
    here: Any = data
    for key, before in zip(keys, ["", *keys], strict=False):
        here = _child(here, key)
        if isinstance(key, int):
            label = here.get("name", here.get("folder")) if isinstance(here, Mapping) else None
            found.append(f'{before} "{label}"' if isinstance(label, str) else f"{before} number {key + 1}")
    return f" ({', '.join(found)})" if found else ""


def _at(keys: list[int | str], data: Mapping[str, Any]) -> Any:
    here: Any = data
    for key in keys:
        here = _child(here, key)
    return here


def _child(here: Any, key: int | str) -> Any:
    try:
        return here[key]
    except (KeyError, IndexError, TypeError):
        return None


def _nearest(keys: list[int | str], model: type[BaseModel]) -> str:
    known = _names_beside(keys, model)
    near = difflib.get_close_matches(str(keys[-1]), known, n=1) if keys else []
    if near:
        return f" (did you mean {near[0]}?)"
    return f" (known here: {', '.join(known)})" if known else ", nothing can be set here"


def _names_beside(keys: list[int | str], model: type[BaseModel]) -> list[str]:
    here: type[BaseModel] | None = model
    for key in keys[:-1]:
        if isinstance(key, str) and here is not None:
            here = _section(here, key)
    return [field.alias or name for name, field in here.model_fields.items()] if here else []


def _section(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    for name, field in model.model_fields.items():
        if key == (field.alias or name):
            return next((found for found in _types(field.annotation) if issubclass(found, BaseModel)), None)
    return None


def _types(annotation: Any) -> list[type]:
    found = [annotation] if isinstance(annotation, type) and not hasattr(annotation, "__args__") else []
    for argument in getattr(annotation, "__args__", ()):
        found.extend(_types(argument))
    return found
