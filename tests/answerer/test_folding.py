"""What counts as a copy, and that looking for copies stays cheap however many passages there are."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from answerer import folding
from answerer.folding import MOST_ALIKE, cap_and_fold

TEXT = (
    "The pump in hall nine is greased twice a year with the white paste from the cupboard beside the door, "
    "and never while it runs."
)


def passages(*texts: str) -> list[Any]:
    return [SimpleNamespace(note_id=number, content=text) for number, text in enumerate(texts)]


def shown(*texts: str) -> list[str]:
    return [one.content for one in cap_and_fold(passages(*texts), 3)[0]]


def test_a_copy_with_a_word_changed_is_folded_and_another_text_is_not() -> None:
    longer = TEXT * 3
    copy = longer.replace("cupboard", "shelf", 1)
    other = TEXT.replace("greased", "painted").replace("white paste", "red lead").replace("pump", "crane")
    assert shown(longer, copy, other) == [longer, other]


def test_texts_that_differ_in_numbers_only_are_shown_a_few_times() -> None:
    texts = [f"{TEXT} Sheet {number}." for number in range(10)]
    assert shown(*texts) == texts[:MOST_ALIKE]
    assert shown(texts[4], texts[4].upper() + " ") == [texts[4]]


def test_tables_of_figures_are_not_taken_for_each_other() -> None:
    tables = [
        f"| pressure | 1{n} | 2{n} | 3{n} | 4{n} | flow | 5{n} | 6{n} | 7{n} | 8{n} |" for n in range(5)
    ]
    assert shown(*tables) == tables


def test_what_is_left_out_comes_behind_in_its_order() -> None:
    first, left = cap_and_fold(passages("a b c d", "A  b c d", "x y z w", "a b c d "), 3)
    assert [one.content for one in first] == ["a b c d", "x y z w"]
    assert [one.content for one in left] == ["A  b c d", "a b c d "]


def test_only_what_shares_a_sketch_is_compared(monkeypatch: Any) -> None:
    chance, compared = random.Random(3), []
    words = [f"w{number}" for number in range(5_000)]
    texts = [" ".join(chance.choices(words, k=60)) for _ in range(400)]
    likeness = folding._likeness

    def counting(some: frozenset[int], others: frozenset[int]) -> float:
        compared.append(1)
        return likeness(some, others)

    monkeypatch.setattr(folding, "_likeness", counting)
    assert len(shown(*texts)) == 400
    assert len(compared) < 400, "not every pair: that would be 79,800"


def test_what_the_cap_keeps_back_comes_first_in_the_next_five() -> None:
    parts: list[Any] = [SimpleNamespace(note_id=1, content=f"long {n}") for n in range(8)]
    parts += [SimpleNamespace(note_id=n, content=f"other {n}") for n in range(2, 6)]
    first, left = cap_and_fold(parts, 3, 10)
    names = [one.content for one in first]
    assert names[:5] == ["long 0", "long 1", "long 2", "other 2", "other 3"]
    assert names[5:] == ["long 3", "long 4", "long 5", "other 4", "other 5"]
    assert [one.content for one in left] == ["long 6", "long 7"]
