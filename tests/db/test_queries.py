"""Named queries from files: found by name, refused when a file is not in order."""

from __future__ import annotations

from importlib.resources import files

import pytest

from db.queries import load, parse


def test_a_query_is_the_text_between_its_name_and_the_next() -> None:
    queries = parse(
        "x.sql", "-- about\n-- name: one\nselect 1\n  from a\n\n-- name: two\n-- why\nselect 2;\n"
    )
    assert queries.one == "select 1\n  from a"
    assert queries["two"] == "-- why\nselect 2;"
    assert list(queries) == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("-- name: one\nselect 1\n-- name: one\nselect 2", "two queries named one"),
        ("-- name: one\n-- nothing here\n-- name: two\nselect 2", "empty query named one"),
        ("select 1\n-- name: one\nselect 2", "before its first"),
    ],
)
def test_a_file_out_of_order_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse("x.sql", text)


def test_an_unknown_name_raises_at_once() -> None:
    queries = parse("x.sql", "-- name: one\nselect 1")
    with pytest.raises(AttributeError, match=r"x\.sql holds no query named two"):
        _ = queries.two
    with pytest.raises(KeyError, match="two"):
        queries["two"]
    with pytest.raises(FileNotFoundError):
        load("no_such_file")


def test_every_file_of_ours_can_be_loaded() -> None:
    names = [path.name for path in (files("db") / "sql").iterdir() if path.name.endswith(".sql")]
    assert names
    for name in names:
        assert len(load(name.removesuffix(".sql"))) > 0
