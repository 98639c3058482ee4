# ruff: noqa: E501 - a case a line
"""Hand-made notes and the heading trails their chunks must have, in order."""

from __future__ import annotations

import pytest

from indexer.chunking import chunk

# More than 20 tokens, so that no section is joined to another.
T = "The boiler in the cellar of the old mill is looked after by Hanne and her two brothers, every Monday at nine.\n"

CASES: dict[str, tuple[str, list[list[str]]]] = {
    "no heading at all": (T, [[]]),
    "one heading": (f"# One\n\n{T}", [["One"]]),
    "text before the first heading": (f"{T}\n# One\n\n{T}", [[], ["One"]]),
    "blank lines before the first heading": (f"\n\n\n# One\n\n{T}", [["One"]]),
    "six levels": (
        "".join(f"{'#' * n} L{n}\n\n{T}\n" for n in range(1, 7)),
        [[f"L{k}" for k in range(1, n + 1)] for n in range(1, 7)],
    ),
    "seven marks are text": (f"# One\n\n{T}\n####### Seven\n\n{T}", [["One"]]),
    "mark without a space is text": (f"# One\n\n{T}\n#tag and more\n\n{T}", [["One"]]),
    "tab behind the mark": (f"#\tOne\n\n{T}", [["One"]]),
    "three spaces of indent": (f"   # One\n\n{T}", [["One"]]),
    "four spaces of indent are code": (f"# One\n\n{T}\n    # two\n\n{T}", [["One"]]),
    "tab of indent is code": (f"# One\n\n{T}\n\t# two\n\n{T}", [["One"]]),
    "four spaces behind a paragraph go on with it": (f"# One\n\n{T}    # two\n{T}", [["One"]]),
    "heading interrupts a paragraph": (f"# One\n{T}## Two\n{T}", [["One"], ["One", "Two"]]),
    "levels left out": (f"# One\n\n{T}\n#### Deep\n\n{T}\n## Two\n\n{T}", [["One"], ["One", "Deep"], ["One", "Two"]]),
    "back to the top": (f"## A\n\n{T}\n### B\n\n{T}\n# C\n\n{T}", [["A"], ["A", "B"], ["C"]]),
    "siblings": (f"# A\n\n{T}\n# B\n\n{T}", [["A"], ["B"]]),
    "closing marks": (f"## One ##\n\n{T}\n## Two ######   \n\n{T}", [["One"], ["Two"]]),
    "closing marks need a space": (f"# C#\n\n{T}\n# F# ##\n\n{T}", [["C#"], ["F#"]]),
    "escaped closing mark": (f"# One \\#\n\n{T}", [["One #"]]),
    "escaped opening mark": (f"# One\n\n{T}\n\\# Two\n\n{T}", [["One"]]),
    "setext": (f"One\n===\n\n{T}\nTwo\n---\n\n{T}", [["One"], ["One", "Two"]]),
    "setext with a short underline": (f"One\n=\n\n{T}\nTwo\n-\n\n{T}", [["One"], ["One", "Two"]]),
    "setext over two lines": (f"One\nand more\n===\n\n{T}", [["One and more"]]),
    "rule behind a blank line is no setext": (f"# One\n\n{T}\n---\n\n{T}", [["One"]]),
    "setext underline in a lazy line is none": (f"# One\n\n> quoted\n===\n\n{T}", [["One"]]),
    "fence": (f"# One\n\n```sh\n# not this\n```\n\n{T}", [["One"]]),
    "fence of tildes": (f"# One\n\n~~~\n# not this\n```\n# nor this\n~~~\n\n{T}\n## Two\n\n{T}", [["One"], ["One", "Two"]]),
    "longer fence holds a shorter one": (
        f"# One\n\n````md\n```\n# not this\n```\n# nor this\n````\n\n{T}\n## Two\n\n{T}",
        [["One"], ["One", "Two"]],
    ),
    "closing fence may be longer": (f"# One\n\n```\n# no\n`````\n\n{T}\n## Two\n\n{T}", [["One"], ["One", "Two"]]),
    "closing fence has no info": (f"# One\n\n```\na\n``` sh\n# no\n```\n\n{T}", [["One"]]),
    "unclosed fence runs to the end": (f"# One\n\n{T}\n```\n# no\n\n## nor this\n{T}", [["One"]]),
    "indented fence": (f"# One\n\n  ```\n  # no\n# nor this\n  ```\n\n{T}", [["One"]]),
    "fence in a list": (f"# One\n\n- step\n\n  ```sh\n  # no\n  ```\n\n{T}\n## Two\n\n{T}", [["One"], ["One", "Two"]]),
    "fence in a list ends with the list": (f"# One\n\n- ```\n  # no\n\n{T}\n## Two\n\n{T}", [["One"], ["One", "Two"]]),
    "fence in a quote": (f"# One\n\n> ```\n> # no\n\n{T}\n## Two\n\n{T}", [["One"], ["One", "Two"]]),
    "backticks in a line are no fence": (f"# One\n\n``` a ``` b\n\n{T}\n## Two\n\n{T}", [["One"], ["One", "Two"]]),
    "HTML comment": (f"# One\n\n<!--\n# no\n\n## nor this\n-->\n\n{T}\n## Two\n\n{T}", [["One"], ["One", "Two"]]),
    "HTML block": (f"# One\n\n<div>\n# no\n</div>\n\n{T}\n## Two\n\n{T}", [["One"], ["One", "Two"]]),
    "HTML block ends at a blank line": (f"<details>\n\n# One\n\n{T}\n</details>\n", [[], ["One"]]),
    "script block": (f"# One\n\n<script>\n\n# no\n\n</script>\n\n{T}", [["One"]]),
    "HTML heading is none": (f"# One\n\n{T}\n<h2>Two</h2>\n\n{T}", [["One"]]),
    "heading in a list item": (f"# One\n\n- # no\n- text\n  ## nor this\n\n{T}", [["One"]]),
    "heading behind a list": (f"# One\n\n- {T}\n# Two\n\n{T}", [["One"], ["Two"]]),
    "heading straight behind a list": (f"# One\n\n- {T}## Two\n{T}", [["One"], ["One", "Two"]]),
    "setext in a list item": (f"# One\n\n- no\n  ---\n\n{T}", [["One"]]),
    "heading in a quote": (f"# One\n\n> # no\n> text\n\n{T}", [["One"]]),
    "heading in a quote in a quote": (f"# One\n\n> > # no\n> > text\n> text\n\n{T}\n# Two\n\n{T}", [["One"], ["Two"]]),
    "heading straight behind a quote": (f"# One\n\n> quoted\n# Two\n{T}", [["One"], ["Two"]]),
    "table row": (f"# One\n\n| # | name |\n|---|------|\n| # a | b |\n\n{T}", [["One"]]),
    "heading ends a table": (f"# One\n\n| a | b |\n|---|---|\n| 1 | 2 |\n# Two\n{T}", [["One"], ["Two"]]),
    "emphasis": (f"# The *big* **red** ~~old~~ _button_\n\n{T}", [["The big red old button"]]),
    "code": (f"# The `--force` option of ``a`b``\n\n{T}", [["The --force option of a`b"]]),
    "link": (f"# See [the *handbook*](https://example.org/a_b) now\n\n{T}", [["See the handbook now"]]),
    "link by reference": (f"# See [the handbook][h] and [h]\n\n{T}\n[h]: https://example.org\n", [["See the handbook and h"]]),
    "brackets that link nowhere": (f"# [draft] plan\n\n{T}", [["[draft] plan"]]),
    "image": (f"# ![a *red* logo](logo.png) Brand\n\n{T}", [["a red logo Brand"]]),
    "autolink": (f"# Mail <hanne@example.org>\n\n{T}", [["Mail hanne@example.org"]]),
    "inline HTML": (f"# Ctrl <kbd>C</kbd><!-- hidden -->\n\n{T}", [["Ctrl C"]]),
    "entities": (f"# R&amp;D &lt;2026&gt; &#35;1\n\n{T}", [["R&D <2026> #1"]]),
    "escapes": (f"# 2 \\* 3 \\_x\\_\n\n{T}", [["2 * 3 _x_"]]),
    "underscores in a word": (f"# max_body_size\n\n{T}", [["max_body_size"]]),
    "slash and arrow in a heading": (f"# In/Out > Up\n\n{T}\n## a/b\n\n{T}", [["In/Out > Up"], ["In/Out > Up", "a/b"]]),
    "runs of space": (f"#    One    two   \n\n{T}", [["One two"]]),
    "heading without text": (f"# One\n\n{T}\n##\n\n{T}\n### Three\n\n{T}", [["One"], ["One"], ["One", "Three"]]),
    "heading without text under it": (f"# One\n\n## Two\n\n{T}", [["One"], ["One", "Two"]]),
    "front matter": (f"---\ntitle: X\n# remark: no heading\n---\n# One\n\n{T}", [["One"]]),
    "front matter right before text": (f"---\ntitle: X\n---\n{T}\n# One\n\n{T}", [[], ["One"]]),
    "unclosed front matter is text": (f"---\ntitle: X\n\n# One\n\n{T}", [[], ["One"]]),
    "rules around prose are no front matter": (f"---\n\n{T}\n---\n\n# One\n\n{T}", [[], ["One"]]),
    "TOML front matter": (f"+++\ntitle = 'X'\n# no\n+++\n# One\n\n{T}", [["One"]]),
    "front matter later is a rule and a heading": (f"# One\n\n{T}\n---\ntitle: X\n---\n\n{T}", [["One"], ["One", "title: X"]]),
    "CRLF": (f"# One\n\n{T}\n## Two ##\n\n{T}".replace("\n", "\r\n"), [["One"], ["One", "Two"]]),
    "CR alone": (f"One\n===\n\n{T}\n## Two\n\n{T}".replace("\n", "\r"), [["One"], ["One", "Two"]]),
    "mixed line ends": (f"# One\r\r\n{T}\r## Two\n\r\n{T}", [["One"], ["One", "Two"]]),
    "line separators end no line": (f"# One\u2028# no\x0b# no\x0c# no\x85# no\n\n{T}", [["One # no # no # no # no"]]),
    "NUL in a heading": (f"# On\x00e\n\n{T}", [["On\ufffde"]]),
    "umlauts and emoji": (f"# Grüße 👋 aus Köln\n\n{T}", [["Grüße 👋 aus Köln"]]),
    "lists of 64 levels": (
        f"# One\n\n{T}\n" + "".join(f"{'  ' * n}- # no\n" for n in range(64)) + f"\n# Two\n\n{T}",
        [["One"], ["Two"]],
    ),
    "500 marks of a list in a line": (f"# One\n\n{T}\n{'- ' * 500}\n\n# Two\n\n{T}", [["One"], ["Two"]]),
    "500 marks of a quote in a line": (f"# One\n\n{T}\n{'>' * 500} a\n\n# Two\n\n{T}", [["One"], ["Two"]]),
}  # fmt: skip

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32")


def _trails(raw: bytes) -> list[list[str]]:
    """The trails of the chunks, where pieces of one section count once."""
    note = chunk(raw, b"a/note.md", max_tokens=2_000)
    assert not [piece for piece in note.chunks if piece.headings_inside]
    return [list(piece.heading) for piece in note.chunks]


@pytest.mark.parametrize("name", CASES)
def test_the_chunks_of_a_note_have_the_headings_a_reader_sees(name: str) -> None:
    text, expected = CASES[name]
    assert _trails(text.encode()) == expected


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", ["setext", "front matter", "link", "umlauts and emoji", "CRLF"])
def test_the_encoding_makes_no_difference(name: str, encoding: str) -> None:
    text, expected = CASES[name]
    assert _trails(text.encode(encoding)) == expected


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 40


def test_a_runaway_heading_is_cut_short() -> None:
    note = chunk(b"# " + b"[x](y " * 5_000 + b"\n\ntext\n", b"a.md")
    assert 100 < len(note.chunks[0].heading[0]) <= 1_001
