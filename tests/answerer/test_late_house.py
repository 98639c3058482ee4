"""What happened to a note since the last poll counts at once, on every way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.answer_house import House

from answerer.paths import NOT_THERE
from notewarden.errors import NotInNotes

EMBEDDED = '[answerer]\nlate_check = "require"\n'


def places(result: Any) -> set[str]:
    return {one.path for one in (getattr(result, "citations", None) or getattr(result, "results", []))}


def test_a_note_that_is_gone_leaves_no_way(build_house: Callable[..., House]) -> None:
    house = build_house(EMBEDDED)
    asker = house.asker("cleo")
    assert places(house.engine.ask(asker, "walrus password").result) == {"handbook/evil.md"}
    (house.folder / "notes/handbook/evil.md").unlink()
    assert "handbook/evil.md" not in places(house.engine.ask(asker, "walrus password").result)
    assert "handbook/evil.md" not in places(house.engine.search(asker, "walrus", k=500).result)
    with pytest.raises(NotInNotes, match=NOT_THERE):
        house.engine.show(asker, "handbook/evil.md")


def test_a_changed_note_is_marked(build_house: Callable[..., House]) -> None:
    house = build_house(EMBEDDED)
    with (house.folder / "notes/handbook/evil.md").open("ab") as note:
        note.write(b"\nOne more line.\n")
    answer = house.engine.ask(house.asker("cleo"), "walrus password").result
    assert [one.freshness for one in answer.citations if one.path == "handbook/evil.md"] == ["changed"]
    fresh = house.engine.ask(house.asker("cleo"), "quokka").result
    assert {one.freshness for one in fresh.citations} == {"current"}


def test_a_checked_answer_needs_no_notice(build_house: Callable[..., House]) -> None:
    house = build_house()
    assert house.engine.ask(house.asker("cleo"), "walrus password").notices == ()
