"""What people see on a terminal, and what counts as a hit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from answerer.evaluation import is_hit, read_questions
from answerer.present import as_json, as_text
from notewarden.errors import UsageError

CITATION = {
    "n": 1,
    "share": "notes",
    "path": "a\x1b]0;x\x07/b.md",
    "heading": ["One\u202e", "Two"],
    "first_line": 3,
    "last_line": 3,
    "quote": "q",
    "link": "https://nas.example/a/b.md",
    "modified": "2026-01-02T03:04:05Z",
    "freshness": "changed",
}


def shown(terminal: bool, **changes: Any) -> str:
    body = {
        "answer": "It is so.\x9b [1]",
        "model": "extracts",
        "as_of": None,
        "citations": [{**CITATION, **changes}],
    }
    return as_text("answer", body, terminal)


def test_links_are_for_terminals_only() -> None:
    text = shown(True)
    assert "\x1b]8;;https://nas.example/a/b.md\x1b\\notes:a\\x1b]0;x\\x07/b.md\x1b]8;;\x1b\\" in text
    assert text.count("\x1b") == 4
    assert "\x1b" not in shown(False)
    assert "line 3" in text and "changed since" in text and r"\u202e" in text and r"\x9b" in text


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)",
        "JavaScript:x",
        "data:text/html,x",
        "https://a/\x1b\\x",
        "https://a/ b",
        "nolink",
        None,
    ],
)
def test_a_link_that_a_terminal_must_not_open_is_text(link: str | None) -> None:
    assert "\x1b" not in shown(True, link=link)


def test_json_stays_json_and_shows_no_control() -> None:
    body = {"a\u200b": "é \u202e \x9b \x1b \x7f 😀 \U000e0001 \u2028", "n": [1, None]}
    text = as_json(body)
    assert json.loads(text) == body
    assert "é" in text and "😀" in text
    assert not set(text) & set("\u202e\x9b\x1b\x7f\u200b\u2028\U000e0001")


ROW = {
    "share": "s",
    "path": "Über.md",
    "heading": ["Top", "Straße"],
    "first_line": 5,
    "last_line": 9,
    "text": "Ein Café",
}


@pytest.mark.parametrize(
    ("gold", "hit"),
    [
        ({"path": "U\u0308ber.md", "heading": "STRASSE"}, True),
        ({"path": "Über.md", "heading": "Stra"}, False),
        ({"path": "Über.md", "share": "t", "heading": "Top"}, False),
        ({"path": "other.md", "heading": "Top"}, False),
        ({"path": "Über.md", "lines": [9, 20]}, True),
        ({"path": "Über.md", "lines": [1, 5]}, True),
        ({"path": "Über.md", "lines": [10, 20]}, False),
        ({"path": "Über.md", "text": "cafe\u0301"}, True),
        ({"path": "Über.md", "text": "tea"}, False),
    ],
)
def test_what_counts_as_a_hit(gold: dict[str, Any], hit: bool) -> None:
    assert is_hit(ROW, gold) is hit


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"id": 1}',
        '{"id": 1, "question": "q", "gold": [{"path": "x"}]}',
        '{"id": 1, "question": "q", "gold": [{"path": "x", "lines": [1]}]}',
    ],
)
def test_a_malformed_question_names_its_line(tmp_path: Any, line: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"id": "a", "question": "q", "gold": []}\n\n' + line + "\n", "utf-8")
    with pytest.raises(UsageError, match="line 3"):
        read_questions(file)
