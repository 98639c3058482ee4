"""SQL lives in files: named queries read from ``db/sql/<name>.sql``."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)[ \t]*$", re.MULTILINE)


class Queries(Mapping[str, LiteralString]):
    """The queries of one file, by item or by attribute; an unknown name raises at once."""

    def __init__(self, source: str, queries: dict[str, LiteralString]) -> None:
        self._source = source
        self._queries = queries

    def __getitem__(self, name: str) -> LiteralString:
        try:
            return self._queries[name]
        except KeyError:
            raise KeyError(f"{self._source} holds no query named {name}") from None

    def __getattr__(self, name: str) -> LiteralString:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._queries[name]
        except KeyError:
            raise AttributeError(f"{self._source} holds no query named {name}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


def parse(source: str, text: str) -> Queries:
    """Cut a file into its queries. Each begins with a line ``-- name: some_name`` and ends before the next.

    `source` names the file in errors. Text before the first name may hold comments only.
    Raises ValueError for a name given twice, an empty query, or statements that have no name.
    """
    pieces = _NAME.split(text)
    if _without_comments(pieces[0]):
        raise ValueError(f"{source} has a statement before its first '-- name:' line")
    queries: dict[str, LiteralString] = {}
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if name in queries:
            raise ValueError(f"{source} has two queries named {name}")
        if not _without_comments(body):
            raise ValueError(f"{source} has an empty query named {name}")
        # The text comes from a file of this package, never from data: it is as good as a literal.
        queries[name] = cast(LiteralString, body.strip())
    return Queries(source, queries)


def _without_comments(sql: str) -> str:
    return re.sub(r"--[^\n]*", "", sql).strip()


@cache
def load(name: str) -> Queries:
    """The queries of ``db/sql/<name>.sql``. Raises FileNotFoundError, or ValueError for a malformed file."""
    path = files("db") / "sql" / f"{name}.sql"
    return parse(f"db/sql/{name}.sql", path.read_text(encoding="utf-8"))
