"""The laws of chunks on notes of all kinds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.chunk_laws import check, tiles
from support.markdown_notes import notes, raw_notes

from indexer.chunking import as_json, chunk
from notewarden.errors import NoteSkipped

EVALUATION = os.environ.get("NOTEWARDEN_EVAL")  # read here: tests run without our variables

FIXED = {
    "empty": b"",
    "BOM": b"\xef\xbb\xbf",
    "white space": b" \r\n\t\n",
    "front matter": b"---\ntitle: x\n---\n",
    "front matter and blank lines": b"---\ntitle: x\n---\n\n\n",
    "one character": b"a",
    "a word of a megabyte": b"x" * 1_000_000,
    "base64": b"QWxhZGRpbjpvcGVu+IHNlc/2FtZQ" * 1_000,
    "no spaces": "锅炉每周一检查由两兄弟负责".encode() * 300,
    "syllables of several tokens": "한국어".encode() * 900,
    "joined emoji": "👩‍👩‍👧".encode() * 600,
    "a heading over the budget": b"# " + b"word " * 3_000 + b"\n\ntext\n",
    "headings only": b"".join(b"#" * (n % 6 + 1) + b" h\n" for n in range(300)),
    "a table header over the budget": b"|" + b"head " * 500 + b"|b|\n|-|-|\n" + b"|x|y|\n" * 100,
    "a table row over the budget": b"|a|b|\n|-|-|\n|" + b"long row text " * 900 + b"|x|\n|1|2|\n" * 50,
    "spaces without end": b"# a\n\nb" + b" " * 100_000 + b"c\n",
    "blank lines without end": b"a" + b"\n" * 100_000 + b"b",
    "CRLF everywhere": b"\r\n".join([b"some words in a line"] * 400),
}


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("max_tokens", [32, 240])
def test_chunks_of_odd_notes_tile_within_the_budget(name: str, max_tokens: int) -> None:
    check(FIXED[name], max_tokens=max_tokens)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(notes(), st.sampled_from([32, 60, 240]))
def test_chunks_of_any_markdown_tile_within_the_budget(text: str, max_tokens: int) -> None:
    check(b"\xef\xbb\xbf" + text.encode(), max_tokens=max_tokens)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(raw_notes(), st.binary(min_size=1, max_size=60))
def test_chunks_tile_in_any_encoding_under_any_path(raw: bytes, path: bytes) -> None:
    try:
        check(raw, path, max_tokens=100)
    except NoteSkipped as skipped:
        assert "binary" in skipped.reason


@given(st.binary(max_size=400))
def test_chunks_of_any_bytes_tile_or_are_a_binary(raw: bytes) -> None:
    try:
        note = chunk(raw, b"x.md", max_tokens=40)
    except NoteSkipped:
        return
    tiles(note.chunks, len(raw))


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=25)
@given(notes())
def test_the_same_bytes_give_the_same_chunks(text: str) -> None:
    raw = b"\xef\xbb\xbf" + text.encode()
    assert chunk(raw, b"x.md") == chunk(raw, b"x.md")


def test_an_empty_file_has_no_chunk_and_a_blank_one_has_one() -> None:
    assert chunk(b"", b"x.md").chunks == ()
    assert len(chunk(b"\n\n", b"x.md").chunks) == 1


def test_the_json_form_says_how_a_file_is_cut() -> None:
    assert as_json(chunk("# Grüße\r\n\r\nHallo\r\n".encode("cp1252"), b"a/\xff.md")) == {
        "path": "a/\\xff.md",
        "encoding": "cp1252",
        "chunks": [
            {
                "seq": 0,
                "heading": ["Grüße"],
                "first_line": 1,
                "last_line": 3,
                "start": 0,
                "end": 18,
                "text": "# Grüße\r\n\r\nHallo\r\n",
            }
        ],
    }


@pytest.mark.prove
def test_every_note_of_the_evaluation_set_keeps_the_laws() -> None:
    if not EVALUATION:
        pytest.fail("NOTEWARDEN_EVAL is not set; set it to a folder of Markdown notes to prove chunking on.")
    files = sorted(Path(EVALUATION).rglob("*.md"))
    assert files, f"no .md file below {EVALUATION}"
    for file in files:
        check(file.read_bytes(), os.fsencode(file.relative_to(EVALUATION)))
