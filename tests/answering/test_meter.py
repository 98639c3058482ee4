"""Tokens that a provider of vectors bills for questions: booked on who asked, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from support.fake_voyage import GOOD_KEY, FakeVoyage, serving
from support.model_house import NOTES, ModelHouse

from db import status
from notewarden.embedding import voyage

PRICE = 120_000.0  # dollars per million tokens, so that one token shows


@pytest.fixture
def fake() -> Iterator[FakeVoyage]:
    with serving(FakeVoyage(dimension=256)) as running:
        yield running


@pytest.fixture
def house(
    model_house: Callable[..., ModelHouse], fake: FakeVoyage, monkeypatch: pytest.MonkeyPatch
) -> ModelHouse:
    """A house measured by the fake provider; what the indexer used is booked already."""
    monkeypatch.setenv("VOYAGE_API_KEY", GOOD_KEY)
    monkeypatch.setattr(voyage, "_LONGEST_WAIT_S", 0.01)
    model = {"provider": "voyage", "model": "voyage-4-large", "query_model": "voyage-4-lite"}
    table = {**model, "dimension": 256, "base_url": fake.url, "price": PRICE}
    made = model_house(NOTES, answer={"provider": "extracts"}, tables={"embedding": table})
    assert {row[0] for row in made.usage()} == {""}
    return made


def booked(house: ModelHouse) -> Counter[str]:
    """Questions' tokens by person."""
    names = {str(house.asker(person).actor): person for person in ("anna", "ben", "cleo")}
    made: Counter[str] = Counter()
    for asker, _, tokens, _, _ in house.usage():
        if asker:
            made[names[asker]] += tokens
    return made


def test_a_question_and_a_search_are_booked_on_who_asked(house: ModelHouse) -> None:
    before = house.usage()
    house.ask("How long are backups kept?", "anna")
    house.engine.search(house.asker("ben"), "backups")
    rows = house.usage()[len(before) :]
    anna, ben = (str(house.asker(person).actor) for person in ("anna", "ben"))
    assert rows == [(who, "voyage-4-lite", 1, 0, Decimal("0.12")) for who in (anna, ben)]
    with house.database.owner() as conn:
        found = status.usage(conn)
    assert found.input_tokens == sum(row[2] for row in house.usage())
    assert found.cost == pytest.approx(0.12 * found.input_tokens)


def test_what_was_billed_for_a_reply_of_no_use_is_booked_too(house: ModelHouse, fake: FakeVoyage) -> None:
    fake.faults = ["nan", "500"]
    house.engine.search(house.asker("anna"), "backups")
    assert booked(house) == {"anna": 2}
    fake.faults = ["500"] * 3
    reply = house.engine.search(house.asker("anna"), "backups")
    assert any("words only" in notice for notice in reply.notices)
    assert booked(house) == {"anna": 2}


def test_questions_beside_each_other_are_booked_each_on_its_own_asker(house: ModelHouse) -> None:
    people = ["anna", "ben", "cleo", "anna"] * 6
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda who: house.engine.search(house.asker(who), "backups"), people))
    assert booked(house) == Counter(people)
    with house.database.owner() as conn:
        assert conn.execute("select count(*) from nw.usage where asker <> ''").fetchone() == (len(people),)
