"""Extracts: what is quoted stands in the note, in the lines that are named, and nothing answers nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from support.answer_house import NOTES, QUESTIONS, House

from answerer.extracts import is_answerable, rare_words
from answerer.keyword import Word
from answerer.sentences import line_range, spans

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")

ODD = {
    "crlf.md": "# Odd\r\n\r\nThe okapi sleeps. It eats\r\nleaves in the morning.\r\n",
    "cr.md": "# Odd\r\rThe okapi sleeps.\rIt eats leaves.\r",
    "front.md": "---\ntitle: x\ntags: [a]\n---\n\n\n# Odd\n\nThe okapi sleeps. It eats leaves.\n\n\n\n",
    "no-end.md": "# Odd\n\nThe okapi sleeps.\n\n- The okapi eats leaves",
    "separators.md": "# Odd\n\nAn okapi\u2028sleeps\u0085on\x0b and \x0c on. It eats.\n\nIt wakes.\n",
    "bom.md": "\ufeff# Odd\n\n> The okapi is\n> quoted.\n\n| okapi | n |\n|---|---|\n| okapi | 2 |\n",
    "fence.md": "# Odd\n\n```sh\n# no heading okapi\nfeed --okapi leaves\n```\n\nThe okapi waits.\n",
    "long.md": "# Odd\n\n" + "The okapi sleeps at night, as every child knows. It eats leaves. " * 60 + "\n",
}


def text_of(raw: bytes) -> str:
    return raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8")


def stands_in(note: str, quote: str, first: int, last: int) -> bool:
    lines = [found.group() for found in _LINE.finditer(note) if found.group()]
    return quote in "".join(lines[first - 1 : last]) and 1 <= first <= last <= len(lines)


@pytest.mark.parametrize("name", ODD)
def test_a_quote_stands_byte_for_byte_in_its_lines(build_house: Callable[..., House], name: str) -> None:
    house = build_house()
    raw = ODD[name].encode("utf-8")
    (house.folder / "notes" / "handbook" / name).write_bytes(raw)
    house.sync()
    answer = house.engine.ask(house.asker("cleo"), "okapi").result
    assert answer.found and answer.citations[0].path == f"handbook/{name}"
    for one in answer.citations:
        note = text_of((house.folder / one.share / one.path).read_bytes())
        assert stands_in(note, one.quote, one.first_line, one.last_line)
        for first, last in ((one.first_line + 1, one.last_line), (one.first_line, one.last_line - 1)):
            assert first > last or not stands_in(note, one.quote, first, last), "no line too many"


def test_numbers_follow_the_sentences_in_order(house: House) -> None:
    for question in QUESTIONS:
        answer = house.engine.ask(house.asker("ben"), question).result
        assert [int(n) for n in re.findall(r"\[(\d+)\]", answer.answer)] == [
            one.n for one in answer.citations
        ]
        assert [one.n for one in answer.citations] == list(range(1, len(answer.citations) + 1))


def test_what_looks_like_a_number_in_a_note_is_not_one_of_ours(house: House) -> None:
    answer = house.engine.ask(house.asker("cleo"), "walrus password").result
    assert "red (7)." in answer.answer
    assert any("red [7]." in one.quote for one in answer.citations)


@pytest.mark.parametrize("question", ["Where is the xylophone?", "Who owns a zeppelin?", "???"])
def test_a_question_without_an_answer_is_refused(house: House, question: str) -> None:
    answer = house.engine.ask(house.asker("ben"), question).result
    assert (answer.found, answer.answer, answer.citations) == (False, "", [])
    assert answer.model == "extracts" and answer.usage is None and answer.as_of


def test_meaning_alone_answers_with_a_real_model(build_house: Callable[..., House]) -> None:
    house = build_house(provider="local")
    answer = house.engine.ask(house.asker("cleo"), "What must I hand in when I am sick?").result
    assert answer.found
    assert answer.citations[0].quote == "Bring a doctor's note from the fourth day."
    assert answer.citations[0].heading[-1] == "Illness"
    assert not house.engine.ask(house.asker("cleo"), "How many moons has Jupiter?").result.found


def test_links_are_percent_encoded_from_the_template(house: House) -> None:
    answer = house.engine.ask(house.asker("cleo"), "quokka").result
    assert answer.citations[0].link == "https://nas.example/notes/handbook/latin%E9.md"
    assert answer.citations[0].path == "handbook/latin\\xe9.md"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("# Heading\n\nOne. Two!\n", ["One.", "Two!"]),
        ("Title\n=====\n\nText here.", ["Text here."]),
        ("See e.g. The Book. Then z. B. Das Buch.", ["See e.g. The Book.", "Then z. B. Das Buch."]),
        ("- [ ] first\n- second\n  goes on\n3. third", ["first", "second\n  goes on", "third"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", ["| 1 | 2 |"]),
        ("~~~~\n# code\n~~~\nmore\n~~~~\nafter", ["# code", "more", "after"]),
        ("<!-- hidden\nstill -->\nseen", ["seen"]),
        ("---\n***\n\n", []),
        ("Ends 3. March. Next day.", ["Ends 3. March.", "Next day."]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in spans(text)] == sentences


def test_what_has_no_sentences_is_quoted_in_pieces() -> None:
    for text in ("word " * 400, "x" * 1500, "a\nb " * 300):
        found = spans(text)
        assert all(0 < end - start <= 600 for start, end in found)
        assert (
            "".join(text[start:end] for start, end in found).replace(" ", "") == text.replace(" ", "")
            or "\n" in text
        )
        assert [start for start, _ in found] == sorted({start for start, _ in found})


def test_lines_are_counted_from_the_end() -> None:
    text = "a\r\nb\rc\nd"
    assert [line_range(text, (at, at + 1), 40)[0] for at in (0, 3, 5, 7)] == [37, 38, 39, 40]
    assert line_range(text + "\n", (7, 8), 40) == (40, 40)
    assert line_range(text, (0, 8), 40) == (37, 40)


def test_rare_words_decide_where_no_passage_is_near() -> None:
    common, rare = Word(("~a",), 0.5, np.array([1, 2])), Word(("~b",), 3.0, np.array([2]))
    absent = Word(("~c",), 4.0, np.array([], dtype=np.int64))

    class At:
        def __init__(self, chunk_id: int) -> None:
            self.chunk_id = chunk_id

    assert rare_words([common, rare]) == [rare]
    assert is_answerable([At(2)], [common, rare], {2: 0.1}, 0.4)  # type: ignore[list-item]
    assert not is_answerable([At(1)], [common, rare], {1: 0.39}, 0.4)  # type: ignore[list-item]
    assert is_answerable([At(1)], [common, rare], {1: 0.4}, 0.4)  # type: ignore[list-item]
    assert not is_answerable([At(2)], [rare, absent], {}, 0.4)  # type: ignore[list-item]
    assert not is_answerable([At(2)], [], {}, 0.4)  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("question", "found"), [("What does E-4021 mean?", True), ("What does E-9134 mean?", False)]
)
def test_a_code_nobody_wrote_down_is_not_answered_by_another(
    build_house: Callable[..., House], question: str, found: bool
) -> None:
    house = build_house(provider="local")
    codes = "# Codes\n\nError code E-4021 means that the period is closed.\n\nE-4022 means not open yet.\n"
    (house.folder / "notes" / "handbook" / "codes.md").write_text(codes, "utf-8")
    house.sync()
    assert house.engine.ask(house.asker("cleo"), question).result.found is found


def test_every_note_of_the_house_was_indexed(house: House) -> None:
    with house.database.owner() as conn:
        assert conn.execute("select count(*) from nw.note").fetchone() == (len(NOTES),)
