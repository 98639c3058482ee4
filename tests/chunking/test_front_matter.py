# ruff: noqa: E501 - a case a line
"""What front matter is, what it is not, and that nothing in it loses a note."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.chunking import chunk
from indexer.frontmatter import FrontMatter, read_front_matter

CASES: dict[str, tuple[str, dict[str, object]]] = {
    "plain": ("---\ntitle: Boiler\ndate: 2026-03-01\nstatus: draft\n---\n", {"title": "Boiler", "date": "2026-03-01", "status": "draft"}),
    "keys in capitals": ("---\nTitle: Boiler\n---\n", {"title": "Boiler"}),
    "colon in the value": ("---\ntitle: Boiler: the manual\n---\n", {"title": "Boiler: the manual"}),
    "double quotes": ('---\ntitle: "The \\"old\\" boiler: a # b"\n---\n', {"title": 'The "old" boiler: a # b'}),
    "single quotes": ("---\ntitle: 'Hanne''s boiler'\n---\n", {"title": "Hanne's boiler"}),
    "remark behind a value": ("---\ntitle: Boiler # old\n---\n", {"title": "Boiler"}),
    "number sign in a word": ("---\ntitle: C# notes\n---\n", {"title": "C# notes"}),
    "folded value": ("---\ntitle: >\n  The\n  boiler\n---\n", {"title": "The boiler"}),
    "value over two lines": ("---\ntitle: The\n  boiler\n---\n", {"title": "The boiler"}),
    "tags in brackets": ('---\ntags: [heat, "a, b", \'c\', ]\n---\n', {"tags": ("heat", "a, b", "c")}),
    "tags in brackets over lines": ("---\ntags: [\n  heat,\n  water\n]\n---\n", {"tags": ("heat", "water")}),
    "tags as a list": ("---\ntags:\n- heat\n  # remark\n  - '#water'\n---\n", {"tags": ("heat", "water")}),
    "tags with commas": ("---\ntags: heat, hot water\n---\n", {"tags": ("heat", "hot water")}),
    "tags with spaces": ("---\ntags: heat water heat\n---\n", {"tags": ("heat", "water")}),
    "closed by dots": ("---\ntitle: Boiler\n...\n", {"title": "Boiler"}),
    "CRLF": ("---\r\ntitle: Boiler\r\n---\r\n", {"title": "Boiler"}),
    "other keys": ("---\nlayout: post\nmeta:\n  title: not this\ntitle: Boiler\n---\n", {"title": "Boiler"}),
    "a broken line": ("---\ntitle: [Boiler\n\t}{ %%\nstatus: done\n---\n", {"status": "done"}),
    "a value that asks to be run": ("---\ntitle: !!python/object/apply:os.system ['true']\n---\n", {"title": "!!python/object/apply:os.system ['true']"}),
    "empty": ("---\n---\n", {}),
    "TOML": ("+++\ntitle = 'Boiler'\ndate = 2026-03-01\ntags = ['a', 'b']\n+++\n", {"title": "Boiler", "date": "2026-03-01", "tags": ("a", "b")}),
    "broken TOML": ("+++\ntitle = \"Boiler\"\ntags = [a, b]\nx = \n+++\n", {"title": "Boiler", "tags": ("a", "b")}),
    "TOML that spells a NUL": ('+++\ntitle = "a\\u0000b"\ntags = ["x\\u0000y"]\n+++\n', {"title": "a\ufffdb", "tags": ("x\ufffdy",)}),
    "TOML of a number without end": (f"+++\ntitle = 0x{'f' * 5000}\nstatus = 'draft'\ntags = [0x{'f' * 5000}]\n+++\n", {"status": "draft"}),
    "language": ("---\nlang: de\n---\n", {"language": "de"}),
}  # fmt: skip

TEXT = {
    "unclosed": "---\ntitle: Boiler\n\ntext\n",
    "prose between rules": "---\n\nHanne looks after it.\nShe is good.\n\n---\n",
    "not in the first line": "\n---\ntitle: Boiler\n---\n",
    "four dashes": "----\ntitle: Boiler\n----\n",
    "closed beyond any sense": "---\ntitle: x\n" + "a: b\n" * 20_000 + "---\n",
    "unclosed TOML": "+++\ntitle = 'x'\n",
}


@pytest.mark.parametrize("name", CASES)
def test_front_matter_is_read(name: str) -> None:
    text, expected = CASES[name]
    assert read_front_matter(text + "# Text\n") == FrontMatter(end=len(text), **expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TEXT)
def test_what_is_no_front_matter_stays_text(name: str) -> None:
    assert read_front_matter(TEXT[name]) == FrontMatter()


@given(st.text("abc:#-[]{}'\"|> \n\t,=&*!", max_size=80), st.sampled_from(["---", "+++"]))
def test_whatever_stands_in_it_the_note_is_kept(inner: str, fence: str) -> None:
    note = chunk(f"{fence}\n{inner}\n{fence}\nThe boiler.\n".encode(), b"a.md")
    assert "The boiler." in note.chunks[-1].text
    assert note.title


def test_the_title_is_the_front_matters_else_the_first_h1_else_the_file_name() -> None:
    assert chunk(b"---\ntitle: A\n---\n# B\n", b"x/c.md").title == "A"
    assert chunk(b"---\nstatus: A\n---\n## Z\n\n# B *b*\n", b"x/c.md").title == "B b"
    assert chunk(b"## Z\n", b"x/c.v2.md").title == "c.v2"
    assert chunk(b"", b"x/\xff.md").title == "\\xff"


def test_front_matter_lies_in_the_first_chunks_range_but_not_in_its_text() -> None:
    raw = b"\xef\xbb\xbf---\ntitle: A\n---\n\n# B\n\ntext\n"
    (piece,) = chunk(raw, b"c.md").chunks
    assert (piece.start, piece.end, piece.first_line, piece.last_line) == (0, len(raw), 1, 7)
    assert piece.text == "\n# B\n\ntext\n"


def test_a_file_of_front_matter_alone_has_one_chunk() -> None:
    raw = b"---\ntitle: A\n---"
    (piece,) = chunk(raw, b"c.md").chunks
    assert (piece.start, piece.end, piece.text, piece.last_line) == (0, len(raw), "", 3)
    assert piece.embedded == "c.md: A"
