"""What a model says it cites is checked: nothing but our own lines is ever quoted, byte for byte."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fake_claude import Reply
from support.markdown_notes import notes as markdown_notes
from support.model_house import ModelHouse

from answerer.citations import Composer, Location
from answerer.claims import invents_number, is_held
from answerer.privacy import Redactor
from answerer.prompt import make_sources
from answerer.units import cut_units
from db.search import Passage
from indexer.chunking.build import chunk
from notewarden.errors import NoteSkipped

Build = Callable[..., ModelHouse]


def passage(content: str, first_line: int = 1, chunk_id: int = 1) -> Passage:
    last = first_line + len(re.findall(r"\r\n|\n|\r", content.rstrip("\r\n")))
    now = datetime(2026, 11, 1, tzinfo=UTC)
    return Passage(
        chunk_id,
        chunk_id,
        0,
        "notes",
        b"a.md",
        None,
        "A",
        ["A"],
        first_line,
        last,
        content,
        now,
        "en",
        None,
        "",
    )


def composer(*contents: str, question: str = "What?", marks: bool = False) -> Composer:
    passages = [passage(text, chunk_id=at) for at, text in enumerate(contents, 1)]
    return Composer(make_sources(passages, {}, Counter()), Redactor("n"), question, marks=marks)


def said(one: Composer, text: str, *cites: tuple[int, int, int]) -> str:
    shown = one.feed(text)
    for cite in cites:
        one.cite(Location(*cite))
    return shown + one.close_block()


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("# H\n\none\ntwo\n\nthree\n", ["# H", "one\ntwo", "three"]),
        ("- a\n- b\n\n  more of b\n\ntext\n", ["- a\n- b\n\n  more of b", "text"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\nafter\n", ["| a | b |\n|---|---|\n| 1 | 2 |", "after"]),
        ("```sh\n# not a heading\n\nrun\n```\nafter\n", ["```sh\n# not a heading\n\nrun\n```", "after"]),
        ("~~~\n```\n~~~\nx\n", ["~~~\n```\n~~~", "x"]),
        ("text\n1. one\n2. two\n", ["text", "1. one\n2. two"]),
        ("one\r\n\r\ntwo\r\n", ["one", "two"]),
        ("> quoted\n> on\n\nx", ["> quoted\n> on", "x"]),
        ("\n\n   \n", []),
    ],
)
def test_units_are_paragraphs_lists_tables_and_code(text: str, units: list[str]) -> None:
    assert [text[one.start : one.end] for one in cut_units(text, text.count("\n"))] == units


@given(text=markdown_notes())
@settings(max_examples=60)
def test_every_unit_stands_in_its_lines(text: str) -> None:
    lines = re.split(r"\r\n|\n|\r", text.replace("\0", "\ufffd").removeprefix("\ufeff"))
    try:
        cut = chunk(text.encode(), b"a.md", max_tokens=128)
    except NoteSkipped:
        return
    for piece in cut.chunks:
        for unit in cut_units(piece.text, piece.last_line):
            own = re.sub(r"\r\n|\r", "\n", piece.text[unit.start : unit.end])
            assert own in "\n".join(lines[unit.first_line - 1 : unit.last_line])


CITES = st.tuples(st.integers(-3, 5), st.integers(-3, 6), st.integers(-3, 6))


@given(st.lists(st.tuples(st.text(alphabet="ab1 .\n", max_size=30), st.lists(CITES, max_size=3)), max_size=5))
@settings(max_examples=150)
def test_whatever_is_cited_is_our_text_or_falls(blocks: list[tuple[str, list[tuple[int, int, int]]]]) -> None:
    contents = ("# T\n\na b\n\n- a\n- b 1\n", "one\n\ntwo\n")
    one = composer(*contents)
    for text, cites in blocks:
        said(one, text, *cites)
    for cited in one.done.cited:
        lines = cited.passage.content.split("\n")[cited.first_line - 1 : cited.last_line]
        assert cited.text and cited.text in "\n".join(lines) and cited.text in cited.passage.content
    marks = [int(n) for n in re.findall(r"\[(\d+)\]", one.done.text)]
    assert set(marks) == set(range(1, len(one.done.cited) + 1))
    assert list(dict.fromkeys(marks)) == sorted(set(marks)), "numbered in order of appearance"


@pytest.mark.parametrize(
    "cite", [(0, 2, 9), (7, 0, 1), (-1, 0, 1), (0, -1, 1), (0, 1, 1), (0, 2, 1), (1, 0, 1), (0, 99, 100)]
)
def test_what_was_not_given_cannot_be_cited(cite: tuple[int, int, int]) -> None:
    one = composer("# T\n\nBackups are kept.\n")
    said(one, "Backups are kept.", cite)
    assert (one.done.cited, one.done.fallen, one.done.text) == ([], 1, "Backups are kept. [?]")


@pytest.mark.parametrize(
    ("sentence", "evidence", "invented"),
    [
        ("Kept for 30 days.", "Kept for 30 days.", False),
        ("Kept for 31 days.", "Kept for 30 days.", True),
        ("Kept for 30 days.", "Kept for thirty days.", False),
        ("It costs 1,500 EUR.", "Es kostet 1.500 EUR.", False),
        ("It costs 1500 EUR.", "It costs 1,500 EUR.", False),
        ("It costs 15.00 EUR.", "It costs 1,500 EUR.", True),
        ("On 1 February 2026.", "date 2026-02-01", False),
        ("On 2026-02-01.", "on 1 February 2026", False),
        ("On 2026-03-01.", "on 1 February 2026", True),
        ("1. First\n2. Second", "First and second", False),
        ("Error 4021 means no.", "E-4021: no", False),
        ("At 02:00.", "nightly at 2:00", False),
        ("Use port 8443.", "Use port 443.", True),
        ("It is 50 %.", "half of it", True),
        ("Rack X3920.", "rack X3920", False),
        ("Version 2.10", "Version 2.1", True),
        ("Call 0800 123.", "Call 0800 123.", False),
        ("It has ² things", "none", True),
    ],
)
def test_an_invented_number_is_caught(sentence: str, evidence: str, invented: bool) -> None:
    assert invents_number(sentence, evidence) is invented


def test_a_sentence_with_an_invented_number_loses_its_citation() -> None:
    one = composer("# T\n\nBackups are kept for 30 days.\n")
    said(one, "Backups are kept for 90 days. They are kept for 30 days.", (0, 1, 2))
    assert one.done.text == "Backups are kept for 90 days. [?] They are kept for 30 days. [1]"
    assert (one.done.fallen, one.done.uncited, len(one.done.cited)) == (1, 1, 1)


def test_every_cited_sentence_of_a_block_carries_the_number() -> None:
    one = composer("# T\n\nA thing. Another thing.\n", "Third.\n")
    said(one, "A thing. ", (0, 1, 2))
    said(one, "Third, e.g. this, and no. 3.\nMore ", (1, 0, 1), (0, 1, 2))
    assert one.done.text == "A thing. [1] Third, e.g. this, and no. 3. [?]\nMore [2][1] "


def test_numbers_like_ours_in_a_models_text_are_not_ours() -> None:
    one = composer("# T\n\nText.\n")
    shown = said(one, "It says [7] and, as [1], nothing. ", (0, 1, 2))
    assert "[7]" not in shown + one.done.text
    assert one.done.text.startswith("It says (7) and, as (1), nothing. [?]")


@pytest.mark.parametrize(
    "text",
    [
        "See https://evil.example/?q=secret now.",
        "See [the page](https://evil.example/?q=secret) now.",
        "![x](https://evil.example/p.png?d=secret)",
        "Go to www.evil.example/secret now.",
        "[a](javascript:alert(1)) b",
        "[a](data:text/html,hello) b",
    ],
)
def test_a_link_that_no_note_holds_is_removed(text: str) -> None:
    one = composer("# T\n\nSee https://intranet.example/vpn for it.\n")
    shown = said(one, text, (0, 1, 2))
    for whole in (shown, one.done.text):
        assert "evil" not in whole and "script:" not in whole and "data:" not in whole
        assert "[link removed]" in whole


def test_a_link_of_the_note_itself_stays() -> None:
    one = composer("# T\n\nSee https://intranet.example/vpn for it.\n")
    said(one, "See https://intranet.example/vpn.", (0, 1, 2))
    assert one.done.text == "See https://intranet.example/vpn. [1]"


def test_marks_are_verified_against_the_pieces() -> None:
    one = composer("# T\n\nBackups are kept for 30 days.\n\nThe canteen opens at noon.\n", marks=True)
    said(one, "Backups are kept for 30 days [1.2]. The moon is made of cheese [1.3]. ")
    said(one, "Kept for 99 days [1.2]. No. [9.9]")
    assert one.done.text == (
        "Backups are kept for 30 days. [1] The moon is made of cheese. [?] Kept for 99 days. [?] No. [?]"
    )
    assert [cited.text for cited in one.done.cited] == ["Backups are kept for 30 days."]


def test_words_must_be_shared_where_the_server_vouches_for_nothing() -> None:
    assert is_held("Backups are kept 30 days", "A backup is kept 30 days.", 0.5)
    assert not is_held("Backups may be deleted by anybody", "A backup is kept 30 days.", 0.5)


def test_a_model_that_cites_wrongly_throughout_is_refused(model_house: Build) -> None:
    house = model_house({"a.md": "# A\n\nBackups are kept for 30 days.\n"})
    house.fake.otherwise = Reply([("Backups are kept for 77 days.", [(0, 1, 2)]), (" Sure.", [(5, 0, 1)])])
    answer = house.ask("How long are backups kept?")
    assert (answer.found, answer.answer, answer.citations) == (False, "", [])
    assert house.audit()[-1][2] | {"fallen": 2, "found": False} == house.audit()[-1][2]
