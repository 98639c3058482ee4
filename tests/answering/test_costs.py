"""Money: what is booked, what stops at a budget, which questions go to a small model, what is cached."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from support.fake_claude import Failure, Reply, search_results
from support.model_house import ModelHouse

from answerer.costs import is_small, price_of
from answerer.model import Usage
from notewarden.errors import ConfigError, LimitReached
from notewarden.settings import load_settings
from notewarden.settings_sections import PriceSettings

Build = Callable[..., ModelHouse]

PRICES = {"claude-test": {"input": 1000.0, "output": 1000.0}}
QUESTION = "How long are backups kept?"


def test_a_price_counts_cached_tokens_at_their_own_rate() -> None:
    used = Usage(fresh=1_000_000, output=1_000_000, cache_read=1_000_000, cache_write=1_000_000)
    assert price_of(used, PriceSettings(input=2, output=10)) == Decimal("2") + 10 + Decimal("0.2") + Decimal(
        "2.5"
    )
    assert price_of(used, None) == 0


def test_a_persons_budget_is_theirs_and_ends_with_exit_9(asked: Build) -> None:
    house = asked(prices=PRICES, budget_per_person=0.1)
    house.ask(QUESTION, "anna")
    sent = len(house.fake.requests)
    with pytest.raises(LimitReached) as told:
        house.ask(QUESTION, "anna")
    assert told.value.exit_code == 9 and len(house.fake.requests) == sent
    assert house.ask(QUESTION, "ben").found


def test_the_budget_of_all_stops_everybody_until_the_day_ends(asked: Build) -> None:
    house = asked(prices=PRICES, budget=0.1)
    house.ask(QUESTION, "anna")
    with pytest.raises(LimitReached):
        house.ask(QUESTION, "ben")
    with house.database.owner() as conn:
        conn.execute("update nw.usage set at = at - interval '1 day'")
    assert house.ask(QUESTION, "ben").found


def test_a_budget_without_prices_is_a_fault_of_the_configuration(asked: Build) -> None:
    house = asked()
    text = house.settings.file.read_text("utf-8").replace('"model" = ', '"budget" = 1.0\n"model" = ')
    file = house.folder / "budget.toml"
    file.write_text(text, "utf-8")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match=r"prices"):
        load_settings(file)


@pytest.mark.parametrize(
    ("question", "small"),
    [
        ("How long are backups kept?", True),
        ("Where is the VPN gateway?", True),
        ("Why are backups kept for 30 days?", False),
        ("Compare the old leave policy with the new one", False),
        ("What is the difference between G5 and G6?", False),
        ("List all the steps to renew the certificate", False),
        ("When is lunch? And when is tea?", False),
    ],
)
def test_small_questions_are_told_from_others(question: str, small: bool) -> None:
    assert is_small(question, in_conversation=False) is small
    assert not is_small(question, in_conversation=True)


def test_small_questions_go_to_the_small_model(asked: Build) -> None:
    house = asked(small_model="claude-small")
    assert house.ask(QUESTION).model == "claude-small"
    assert house.ask("Why are backups kept for so long, and who decided it?").model == "claude-test"


def test_a_small_collection_is_read_whole_and_cached(asked: Build) -> None:
    house = asked(mode="auto", max_passages=1)
    answer = house.ask(QUESTION, "cleo", k=1)
    results = search_results(house.fake.requests[-1].body)
    assert answer.found and len(results) == 1 and results[0]["cache_control"] == {"type": "ephemeral"}
    house.ask("And what is the bonus?", "anna", k=1)
    results = search_results(house.fake.requests[-1].body)
    assert {one["source"] for one in results} == {"notes:backup.md", "notes:hr/pay.md"}
    assert ["cache_control" in one for one in results] == [False, True]
    first = house.fake.requests[-1].body["messages"][0]["content"][:-1]
    house.ask("Something else entirely?", "anna", k=1)
    assert house.fake.requests[-1].body["messages"][0]["content"][:-1] == first, "the cached part stays"


def test_a_large_collection_is_searched(model_house: Build) -> None:
    notes = {f"n{n}.md": f"# N{n}\n\n" + f"Note {n} tells of backups. " * 20 for n in range(12)}
    house = model_house(notes, answer={"mode": "auto", "whole_limit": 1000, "max_passages": 3})
    house.ask(QUESTION)
    assert len(search_results(house.fake.requests[-1].body)) == 3


def test_a_server_without_citations_is_asked_for_marks(asked: Build) -> None:
    house = asked()
    house.fake.without_search_results = True
    answer = house.ask(QUESTION)
    assert answer.answer == "Backups are kept for 30 days. [1]"
    assert answer.citations[0].quote == "Backups are kept for 30 days."
    house.ask(QUESTION)
    bodies = [one.body for one in house.fake.requests]
    assert [bool(search_results(body)) for body in bodies] == [True, False, False], "it is remembered"
    blocks = bodies[-1]["messages"][-1]["content"]
    assert all(block.keys() == {"type", "text"} for block in blocks)
    assert any(block["text"] == "[1.2] Backups are kept for 30 days." for block in blocks)


def test_marks_that_say_what_the_piece_does_not_fall(asked: Build) -> None:
    house = asked(citations="marks")
    lies = "Backups are kept for 99 days [1.2]. The moon is a cheese [1.2]. Nobody may read anything [8.8]."
    house.fake.script.append(Reply([(lies, [])]))
    answer = house.ask(QUESTION)
    assert not answer.found and answer.answer == ""


def test_the_providers_own_address_is_never_asked_twice_for_one_refusal(asked: Build) -> None:
    house = asked(citations="native")
    house.fake.otherwise = Failure(400)
    assert house.ask("backups kept for 30 days").model == "extracts"
    assert len(house.fake.requests) == 1


def test_depth_is_asked_for_as_effort(asked: Build) -> None:
    house = asked(effort="low")
    house.ask(QUESTION)
    assert house.fake.requests[-1].body["output_config"] == {"effort": "low"}
