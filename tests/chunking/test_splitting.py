"""Where an over-long section is cut, what is joined, and what a chunk's embedded string says."""

from __future__ import annotations

import pytest
from support.chunk_laws import check

from indexer.chunking import ChunkedNote, chunk
from notewarden.errors import NoteSkipped
from notewarden.wordpiece import count_tokens

T = "The boiler in the cellar of the mill is looked after by Hanne and her two brothers, each Monday at nine."
PARAGRAPH = " ".join([T] * 5)


def _note(text: str, **options: int) -> ChunkedNote:
    return chunk(text.encode(), b"mill/boiler.md", **options)


def _texts(text: str, **options: int) -> list[str]:
    return [piece.text for piece in check(text.encode(), **options).chunks]


def test_a_section_over_the_budget_is_cut_between_blocks() -> None:
    paragraphs = [f"Paragraph {n}. {PARAGRAPH}\n\n" for n in range(6)]
    texts = _texts("# One\n\n" + "".join(paragraphs))
    assert len(texts) == 6
    assert texts[0] == "# One\n\n" + paragraphs[0]
    assert texts[1:] == paragraphs[1:]


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    texts = _texts("# One\n\n" + f"{T} " * 40)
    assert len(texts) > 4
    assert all(text.rstrip().endswith("nine.") for text in texts)


def test_no_sentence_ends_at_an_abbreviation_or_a_small_letter() -> None:
    sentence = "Der Kessel wird z. B. von Dr. Meier bzw. Frau Ott ca. um neun gewartet, d. h. vor dem Start"
    texts = _texts(f"{sentence}. " * 40)
    assert len(texts) > 2
    assert all(text.rstrip().endswith("Start.") for text in texts)


def test_chinese_sentences_end_without_a_space() -> None:
    texts = _texts("锅炉每周一检查，由两兄弟负责。" * 60)
    assert len(texts) > 2
    assert all(text.endswith("。") for text in texts)


def test_a_long_sentence_is_cut_between_words() -> None:
    texts = _texts("boiler mill " * 600)
    assert len(texts) > 3
    assert all(
        text.startswith(("boiler ", "mill ")) and text.endswith((" boiler ", " mill ")) for text in texts
    )


def test_a_long_word_is_cut_between_characters() -> None:
    texts = _texts("x" * 20_000)
    assert len(texts) > 3
    assert "".join(texts) == "x" * 20_000


def test_a_character_is_never_cut_in_two() -> None:
    for text in ("e\u0301\u0323" * 3_000, "👋🏽" * 3_000, "👩\u200d👩\u200d👧" * 2_000):
        pieces = _texts(text)
        assert len(pieces) > 1
        assert not any(piece[0] in "\u0301\u0323\u200d" for piece in pieces)


def test_code_is_cut_between_lines_and_keeps_its_indent() -> None:
    line = "        total = boiler.pressure + mill.pressure  # e.g. Two. Three\n"
    texts = _texts("```python\n" + line * 60 + "```\n")
    assert len(texts) > 3
    assert all(text.startswith(("```python\n", line)) and text.endswith("\n") for text in texts)


def test_a_list_is_cut_between_items() -> None:
    texts = _texts("# One\n\n" + "".join(f"- {T}\n  - {T}\n" for _ in range(20)))
    assert len(texts) > 3
    assert all(text.lstrip().startswith(("# One", "- ")) for text in texts)
    assert all(text.endswith("\n") for text in texts)


def test_a_heading_is_never_parted_from_its_text() -> None:
    for words in range(60, 230, 5):
        for body in (
            "word " * 300,
            f"| a | b |\n|---|---|\n| {'c ' * 90}| d |\n" * 3,
            "```\n" + "word " * 230 + "\n```\n",
        ):
            first = _texts("# Head\n\n" + "start " * 3 + "\n\n## " + "boil " * (words // 4) + "\n\n" + body)
            (holder,) = [text for text in first if "## boil" in text]
            assert holder.split("\n\n## ")[-1].partition("\n\n")[2].strip()


def test_a_table_repeats_its_header_row_in_what_is_embedded_only() -> None:
    rows = [f"| pump {n} | {T} |\n" for n in range(30)]
    note = check(
        ("# Pumps\n\n| Machine | Remark |\n|---------|--------|\n" + "".join(rows) + "\nEnd.\n").encode()
    )
    assert len(note.chunks) > 4
    for piece in note.chunks:
        assert piece.embedded.count("| Machine | Remark |") == 1
        assert piece.text.count("| Machine | Remark |") == (1 if piece.seq == 0 else 0)
        assert piece.text.rstrip().endswith(("|", "End."))


def test_a_table_header_never_stands_without_a_row() -> None:
    for words in range(1, 200, 7):
        text = "word " * words + "\n\n| Machine | Remark |\n|---------|--------|\n" + f"| pump | {T} |\n" * 12
        (holder,) = [piece for piece in _texts(text) if "| Machine |" in piece]
        assert "| pump |" in holder


def test_a_short_section_is_joined_to_its_elder_sister() -> None:
    (piece,) = _note("## A *one*\n\nshort\n\n## B *two*\n\nalso short\n\n## C\n\nand this\n").chunks
    assert (piece.heading, piece.headings_inside) == (("A one",), ("B two", "C"))


def test_twenty_tokens_of_its_own_text_keep_a_section_apart() -> None:
    for words, chunks in ((19, 1), (20, 2)):
        note = _note("## A\n\nshort\n\n## A much longer heading that does not count\n\n" + "word " * words)
        assert len(note.chunks) == chunks


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("# A\n\nshort\n\n## B\n\nshort\n", [("A",), ("A", "B")]),  # not into the parent
        ("# A\n\n## B\n\nshort\n\n# C\n\nshort\n", [("A",), ("A", "B"), ("C",)]),  # nor into a niece
        ("short\n\n# A\n\nshort\n", [(), ("A",)]),  # nor into what stands before all headings
        ("# A\n\n### B\n\nshort\n\n## C\n\nshort\n", [("A",), ("A", "B")]),  # sisters of another level
    ],
)
def test_a_section_is_joined_to_a_sister_only(text: str, headings: list[tuple[str, ...]]) -> None:
    assert [piece.heading for piece in _note(text).chunks] == headings


def test_sections_are_joined_only_while_the_budget_holds() -> None:
    note = check("".join(f"## Part {n}\n\nshort text here\n\n" for n in range(120)).encode())
    assert 3 < len(note.chunks) < 30
    seen = [name for piece in note.chunks for name in (*piece.heading, *piece.headings_inside)]
    assert seen == [f"Part {n}" for n in range(120)]


def test_the_embedded_string_names_path_title_trail_and_text() -> None:
    note = _note(f"---\ntitle: The mill\n---\n# Heat\r\n\r\n## Boiler\r\n\r\n{T}\r\n\r\n\r\n")
    assert note.chunks[-1].embedded == f"mill/boiler.md: The mill > Heat > Boiler\n## Boiler\n\n{T}"


def test_white_space_around_a_passage_does_not_change_what_is_embedded() -> None:
    one = _note(f"# A\n\n{T}\n\n# B\n\n{T}\n")
    other = _note(f"\n# A\n\n{T}\n\n\n\n# B\n\n{T}\n\n".replace("\n", "\r\n"))
    assert [piece.embedded for piece in one.chunks] == [piece.embedded for piece in other.chunks]


def test_a_change_in_one_section_changes_one_embedded_string() -> None:
    text = "# Book\n\n" + "".join(f"## Part {n}\n\n{T} Number {n}.\n\n" for n in range(200))
    before = [piece.embedded for piece in _note(text).chunks]
    after = [piece.embedded for piece in _note(text.replace("Number 77", "Figure 77")).chunks]
    assert len(before) == len(after) == 201
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_a_long_prefix_is_shortened_in_its_middle() -> None:
    path = b"/".join([b"very-long-folder-name"] * 40) + b"/boiler.md"
    raw = ("# " + "Heat and water " * 30 + f"\n\n## The last heading\n\n{PARAGRAPH}\n").encode()
    note = check(raw, path)
    prefix = note.chunks[-1].embedded.partition("\n")[0]
    assert 50 <= count_tokens(prefix) <= 64
    assert prefix.startswith("very-long-folder-name/")
    assert " … " in prefix
    assert prefix.endswith("> The last heading")


def test_a_note_of_too_many_chunks_is_skipped_whole() -> None:
    text = "".join(f"# H{n}\n\n{T}\n\n" for n in range(50))
    assert len(_note(text, max_chunks=50).chunks) == 50
    with pytest.raises(NoteSkipped, match="max_chunks") as caught:
        _note(text, max_chunks=49)
    assert caught.value.permanent


def test_a_budget_without_room_for_text_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 32"):
        _note("text", max_tokens=31)
