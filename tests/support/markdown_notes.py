# ruff: noqa: E501 - a case a line
"""Hypothesis strategies for notes: Markdown of all kinds, well formed and not."""

from __future__ import annotations

from hypothesis import strategies as st

_WORDS = st.sampled_from(
    ["boiler", "mill", "Hanne", "Straße", "über", "e\u0301t\u00e9", "锅炉", "한국어", "👩‍👩‍👧", "x" * 130, "a_b", "3.5", "z.", "B.", "--force", "\u00a0", "\u200b", "\x00", "\ufeff", "\u2028", "\x0b", "\x1c", "\x85", "[SEP]", "İ", "ﬃ", "**", "`", "[a](b)", "|"]
)  # fmt: skip
_LINE = st.lists(_WORDS, max_size=12).map(" ".join)
_LONG = st.builds(
    lambda words, times: " ".join(words * times), st.lists(_WORDS, min_size=1), st.integers(1, 60)
)
_BLOB = st.builds(lambda piece, times: piece * times, st.text(min_size=1, max_size=8), st.integers(1, 900))
_HEADING = st.builds(lambda level, text: f"{'#' * level} {text}", st.integers(1, 7), _LINE)
_SETEXT = st.builds(lambda text, mark: f"{text or 'x'}\n{mark * 3}", _LINE, st.sampled_from("=-"))
_FENCE = st.builds(
    lambda mark, lines, closed: "\n".join([mark, *lines, mark if closed else ""]),
    st.sampled_from(["```", "~~~", "`````", "  ```sh"]),
    st.lists(st.one_of(_LINE, _HEADING), max_size=30),
    st.booleans(),
)
_LIST = st.lists(
    st.builds(lambda depth, mark, text: f"{'  ' * depth}{mark} {text}", st.integers(0, 12), st.sampled_from(["-", "1.", "- -", "> -"]), _LINE),
    min_size=1, max_size=25,
).map("\n".join)  # fmt: skip
_QUOTE = st.lists(
    st.builds(lambda depth, text: f"{'>' * depth} {text}", st.integers(0, 4), _LINE), min_size=1, max_size=12
).map("\n".join)
_TABLE = st.builds(
    lambda cells, rows: "\n".join(["|" + "|".join(cells) + "|", "|" + "---|" * len(cells), *(f"| {row} |" for row in rows)]),
    st.lists(_LINE.map(lambda text: text.replace("|", "")), min_size=1, max_size=5),
    st.lists(_LINE, max_size=30),
)  # fmt: skip
_HTML = st.sampled_from(
    [
        "<!-- # a",
        "-->",
        "<div>\n# b\n",
        "</div>",
        "[r]: https://example.org 'x'",
        "    # code",
        "\t\tcode",
        "***",
    ]
)
_FRONT = st.sampled_from(
    ["", "", "---\ntitle: T\ntags: [a]\n---\n", "+++\ntitle = 'T'\n+++\n", "---\nopen\n", "\ufeff", "\n \n"]
)

BLOCKS = st.one_of(_LINE, _HEADING, _HEADING, _SETEXT, _FENCE, _LIST, _QUOTE, _TABLE, _HTML, _LONG, _BLOB)


@st.composite
def notes(draw: st.DrawFn) -> str:
    """Draw the text of a note, with line ends of one kind or mixed."""
    text = draw(_FRONT) + "".join(
        block + draw(st.sampled_from(["\n", "\n\n", "\n\n\n", ""]))
        for block in draw(st.lists(BLOCKS, max_size=9))
    )
    ends = draw(st.sampled_from(["\n", "\r\n", "\r", "mixed"]))
    if ends != "mixed":
        return text.replace("\n", ends)
    kinds = ["\n", "\r\n", "\r", "\n\r", "\r\r\n"]
    return "".join(kinds[i % 5] if char == "\n" else char for i, char in enumerate(text))


def raw_notes() -> st.SearchStrategy[bytes]:
    """Draw the bytes of a note in one of the encodings that occur, now and then damaged."""
    encodings = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
    encoded = st.builds(
        lambda text, encoding: text.encode(encoding, "replace"), notes(), st.sampled_from(encodings)
    )
    damaged = st.builds(
        lambda raw, at, bad: raw[:at] + bad + raw[at:], encoded, st.integers(0, 500), st.binary(max_size=3)
    )
    return st.one_of(encoded, encoded, damaged)
