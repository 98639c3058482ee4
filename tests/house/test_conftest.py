"""The shared fixtures themselves: what tests rely on to be isolated."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from notewarden.settings import Settings


def test_no_variable_of_ours_and_no_real_home_is_left(clean_environment: Path) -> None:
    ours = [name for name in os.environ if name.startswith(("NOTEWARDEN_", "VOYAGE_", "ANTHROPIC_", "PG"))]
    assert set(ours) <= {"NOTEWARDEN_REQUIRE_SERVICES"}
    assert Path.home() == clean_environment
    assert Path(os.environ["XDG_STATE_HOME"]).is_relative_to(clean_environment)


def test_settings_are_written_and_read_through_the_real_loader(
    settings_factory: Callable[..., Settings],
) -> None:
    made = settings_factory(search={"per_note": 5}, answer={"prices": {"a.b": {"input": 1, "output": 2.5}}})
    assert made.search.per_note == 5
    assert made.answer.prices["a.b"].output == 2.5
    assert [share.name for share in made.shares] == ["notes"]
    assert made.file.is_file()
