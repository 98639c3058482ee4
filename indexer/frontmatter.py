"""Front matter: the few keys that matter, read leniently and without executing anything."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LIMIT = 64 * 1024  # characters; whatever is longer is text
_VALUE_LIMIT = 500
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_YAML_KEY = re.compile(r"""(["']?)([^\W\d][\w .-]{0,60})\1[ \t]*:(?:[ \t]+|$)(.*)""")
_TOML_KEY = re.compile(r"""(["']?)([\w-]{1,60})\1[ \t]*=[ \t]*(.*)""")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ \t]*(?:#.*)?""")
_ESCAPE = re.compile(r"\\(.)")
_ITEM = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]*)\s*(?:,|$)""")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What a note says of itself. `end` is the character index in the text where the note proper begins."""

    end: int = 0
    title: str | None = None
    date: str | None = None
    tags: tuple[str, ...] = ()
    status: str | None = None
    language: str | None = None


def read_front_matter(text: str) -> FrontMatter:
    """Return the front matter at the start of `text`, `end` 0 if there is none.

    `---` … `---` or `...` (YAML-like) and `+++` … `+++` (TOML) on lines of their own, from the first
    line. An unclosed block, or one that holds prose, is text. Malformed lines in it are passed over.
    """
    block = _block(text)
    if block is None:
        return FrontMatter()
    fence, lines, end = block
    read = _toml if fence == "+++" else _yaml
    if not _looks_like_keys(lines, _TOML_KEY if fence == "+++" else _YAML_KEY):
        return FrontMatter()
    found = {key.lower(): value for key, value in read(lines).items()}
    return FrontMatter(
        end=end,
        title=_text(found.get("title")),
        date=_text(found.get("date")),
        tags=_tags(found.get("tags", found.get("tag"))),
        status=_text(found.get("status")),
        language=_text(found.get("lang", found.get("language"))),
    )


def _block(text: str) -> tuple[str, list[str], int] | None:
    """Return (fence, the lines inside, index behind the closing line)."""
    fence = text[:3]
    if fence not in ("---", "+++"):
        return None
    closing = ("---", "...") if fence == "---" else ("+++",)
    lines: list[str] = []
    for number, match in enumerate(_LINE.finditer(text, 0, LIMIT)):
        line = match.group().rstrip(" \t\r\n")
        if number == 0:
            if line != fence:
                return None
        elif line in closing:
            return fence, lines, match.end()
        else:
            lines.append(line)
    return None


def _looks_like_keys(lines: list[str], key: re.Pattern[str]) -> bool:
    """Tell keys from prose between two thematic breaks: most lines that start at the margin are keys."""
    margin = [line for line in lines if line and line[0] not in " \t#-]}[{"]
    keys = sum(1 for line in margin if key.match(line))
    return keys * 2 >= len(margin) if margin else not any(line.strip() for line in lines)


def _yaml(lines: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value, below in _entries(lines):
        if value in ("|", ">", "|-", ">-", "|+", ">+"):
            found[key] = " ".join(line.strip() for line in below)
        elif value.startswith("["):
            found[key] = _items(" ".join([value, *(_COMMENT.sub("", line) for line in below)]))
        elif value:
            continued = [line.strip() for line in below if line[:1] in " \t" and line.strip()]
            found[key] = " ".join([_scalar(value), *continued])
        else:
            found[key] = _below(below)
    return found


def _entries(lines: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (key, what stands behind the colon, the lines below it) of each key at the margin."""
    open_entry: tuple[str, str, list[str]] | None = None
    for line in lines:
        match = _YAML_KEY.match(line)
        if match is None:
            if open_entry is not None:
                open_entry[2].append(line)
            continue
        if open_entry is not None:
            yield open_entry
        value = match.group(3).strip()
        open_entry = (match.group(2).strip(), "" if value.startswith("#") else value, [])
    if open_entry is not None:
        yield open_entry


def _below(lines: list[str]) -> object:
    stripped = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    items = [_scalar(line[1:].strip()) for line in stripped if line.startswith("-")]
    return items if items else " ".join(_scalar(line) for line in stripped)


def _items(flow: str) -> list[str]:
    inner = flow.strip().removeprefix("[").rpartition("]")[0] or flow.strip().removeprefix("[")
    return [_scalar(match.group(1)) for match in _ITEM.finditer(inner) if match.group(1).strip()]


def _scalar(value: str) -> str:
    value = value.strip()
    quoted = _QUOTED.fullmatch(value)
    if quoted is None:
        return _COMMENT.sub("", value, count=1).strip()
    inner = quoted.group(1)
    if inner[0] == "'":
        return inner[1:-1].replace("''", "'")
    return _ESCAPE.sub(lambda match: match.group(1), inner[1:-1])


def _toml(lines: list[str]) -> Mapping[str, object]:
    try:
        return tomllib.loads("\n".join(lines))
    except (ValueError, RecursionError):  # a malformed block must not lose the note, nor its title
        matches = (_TOML_KEY.match(line) for line in lines)
        return {match.group(2): _loose(match.group(3)) for match in matches if match}


def _loose(value: str) -> object:
    return _items(value) if value.startswith("[") else _scalar(value)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, list | dict):
        return None
    return _plain(value) or None


def _tags(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        parts = [_plain(item) for item in value if isinstance(item, str | int | float)]
    elif isinstance(value, str):
        parts = value.split(",") if "," in value else value.split()
    else:
        return ()
    cleaned = (_plain(part).lstrip("#").strip() for part in parts)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))


def _plain(value: object) -> str:
    """Return a value on one line. TOML can spell a NUL, which no database takes, and a number without end."""
    try:
        shown = value.isoformat() if hasattr(value, "isoformat") else str(value)
    except ValueError:  # of more digits than Python writes
        return ""
    return " ".join(shown.replace("\0", "\ufffd").split())[:_VALUE_LIMIT]
