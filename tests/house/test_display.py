"""Nothing that is shown steers a terminal; paths survive the way to JSON and back."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewarden.display import parse_path, path_candidates, printable, show_path

ANY_TEXT = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Grüße, 日本", "plain, Grüße, 日本"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\x00\x07\x7f\x85\x9b", r"a\x00\x07\x7f\x85\x9b"),
        ("a\nb\rc\td", r"a\x0ab\x0dc\x09d"),
        ("abc\u202etxt.exe\u2066", r"abc\u202etxt.exe\u2066"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("line\u2028end", r"line\u2028end"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("byte\udcff", r"byte\xff"),
        ("half\ud800", r"half\ud800"),
    ],
)
def test_controls_are_shown_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_text_of_lines_keeps_its_lines_and_nothing_else() -> None:
    assert printable("a\r\nb\n\tc\x1b]8;;x\x07", keep_newlines=True) == "a\nb\n    c\\x1b]8;;x\\x07"
    assert printable("a\rb", keep_newlines=True) == r"a\x0db"


@given(ANY_TEXT, st.booleans())
def test_no_control_ever_passes(text: str, keep: bool) -> None:
    shown = printable(text, keep_newlines=keep)
    left = [char for char in shown if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert set(left) <= ({"\n"} if keep else set())


@given(st.binary().filter(lambda raw: b"\\x" not in raw))
def test_a_shown_path_leads_back_to_its_bytes(raw: bytes) -> None:
    assert parse_path(show_path(raw)) == raw


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"hr/pay.md", "hr/pay.md"),
        ("Grüße.md".encode(), "Grüße.md"),
        ("Gru\u0308ße.md".encode(), "Gru\u0308ße.md"),
        (b"caf\xe9.md", r"caf\xe9.md"),
        (b"\xed\xa0\x80", r"\xed\xa0\x80"),
    ],
)
def test_paths_are_shown_as_on_disk(raw: bytes, shown: str) -> None:
    assert show_path(raw) == shown


def test_an_argument_means_its_own_bytes_first() -> None:
    assert path_candidates("hr/pay.md") == (b"hr/pay.md",)
    assert path_candidates("caf\udce9.md") == (b"caf\xe9.md",)
    assert path_candidates(r"caf\xe9.md") == (rb"caf\xe9.md", b"caf\xe9.md")
