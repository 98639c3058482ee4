"""A section cut for its length: a model is given what stands right before and after the passage found."""

from __future__ import annotations

from collections.abc import Callable

from support.fake_claude import search_results
from support.model_house import ModelHouse

Build = Callable[..., ModelHouse]


def _sentences(first: int, last: int) -> str:
    return "\n\n".join(
        f"Step {n} of the move concerns rack {n} and nothing else." for n in range(first, last)
    )


def _shelves() -> str:
    return "\n\n".join(f"Shelf {n} stays in the old room." for n in range(20))


LONG = f"# Move\n\n{_sentences(0, 60)}\n\nThe quokka crane is ordered.\n\n{_sentences(60, 120)}\n"
NOTES = {
    "move.md": f"{LONG}\n# After\n\nAnother section, of the wombat.\n\n{_shelves()}\n",
    "other.md": "# Other\n\nNothing of this.\n",
}


def _sent(house: ModelHouse, question: str) -> list[str]:
    results = search_results(house.fake.requests[-1].body)
    assert all(one["source"] == "notes:move.md" for one in results)
    return ["\n".join(block["text"] for block in one["content"]) for one in results]


def test_the_pieces_beside_come_in_the_notes_order(model_house: Build) -> None:
    house = model_house(NOTES, answer={"max_passages": 1})
    house.ask("quokka crane ordered", k=1)
    pieces = _sent(house, "quokka crane ordered")
    assert len(pieces) == 3 and "quokka" in pieces[1]
    steps = [
        int(part.split()[1]) for piece in pieces for part in piece.split("\n") if part.startswith("Step")
    ]
    assert steps == list(range(steps[0], steps[-1] + 1)), "one run of the note, nothing twice"


def test_another_section_is_no_neighbour(model_house: Build) -> None:
    house = model_house(NOTES, answer={"max_passages": 1})
    house.ask("wombat", k=1)
    (piece,) = _sent(house, "wombat")
    assert "wombat" in piece and "Step" not in piece
