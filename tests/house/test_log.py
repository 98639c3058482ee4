"""What is logged, in which form, and what never is."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from notewarden.log import HIDDEN, configure_logging, get_logger
from notewarden.settings_sections import LogSettings

PRIVATE = [
    "password", "api_key", "voyage_api_key", "token", "text", "chunk_text", "content", "question", "quote",
    "prompt", "Authorization", "headers", "database_url",
]  # fmt: skip


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_off_a_terminal_each_line_is_json_with_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogSettings())
    get_logger("indexer.poll").info("The poll ended.", share="hr", notes=3, path=b"caf\xe9.md")
    (line,) = lines(capsys)
    assert (line["event"], line["share"], line["notes"]) == ("The poll ended.", "hr", 3)
    assert (line["level"], line["logger"], line["path"]) == ("info", "indexer.poll", r"caf\xe9.md")


@pytest.mark.parametrize("key", PRIVATE)
def test_secrets_and_note_text_are_hidden_however_deep(capsys: pytest.CaptureFixture[str], key: str) -> None:
    configure_logging(LogSettings())
    get_logger("x").warning("Something.", **{key: "hush"})
    get_logger("x").warning("Something.", seen=[{"inner": {key: ["hush"]}}])
    shown = lines(capsys)
    assert "hush" not in json.dumps(shown)
    assert shown[0][key] == HIDDEN


def test_a_count_is_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogSettings())
    get_logger("x").info("Embedded.", text=3, max_tokens=240)
    assert lines(capsys)[0]["text"] == 3


def test_an_error_is_logged_by_type_and_place_without_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogSettings())
    try:
        raise ValueError("hush: a line of a note")
    except ValueError:
        get_logger("x").error("The poll failed.", exc_info=True)
        logging.getLogger("another_package").exception("A library failed.")
    ours, theirs = lines(capsys)
    assert ours["error"] == theirs["error"] == "ValueError"
    assert any("test_log.py" in place for place in ours["at"])
    assert "hush" not in json.dumps([ours, theirs])


def test_libraries_are_heard_from_warning_on(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogSettings(level="debug"))
    for name in ("voyage", "urllib3", "httpx", "anthropic"):
        logging.getLogger(name).info("a request with hush in it")
    logging.getLogger("voyage").warning("It is slow.")
    assert [line["event"] for line in lines(capsys)] == ["It is slow."]


def test_the_level_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogSettings(level="warning"))
    get_logger("x").info("Small talk.")
    get_logger("x").warning("Careful.")
    assert [line["event"] for line in lines(capsys)] == ["Careful."]


def test_for_people_nothing_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogSettings(format="human"))
    get_logger("x").info("Read.", path="a\x1b[31m\u202e\n.md")
    shown = capsys.readouterr().err
    assert r"a\x1b[31m\u202e\x0a.md" in shown
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 1
