"""A model's answer from end to end: what goes over the wire, what comes back, what is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.fake_claude import Reply, question_of, search_results
from support.model_house import ModelHouse

Build = Callable[..., ModelHouse]

NOTES = {
    "backup.md": "# Backup\n\nBackups are kept for 30 days.\n\n- nightly at 02:00\n- weekly on Sunday\n",
    "hr/pay.md": "# Pay\n\nThe zebrafish bonus is 4711 EUR.\n",
    "it/vpn.md": "# VPN\n\nRenew the certificate every 397 days.\n",
}


def test_an_answer_is_cited_line_by_line(model_house: Build) -> None:
    house = model_house(NOTES)
    answer = house.ask("How long are backups kept?")
    assert answer.found and answer.answer == "Backups are kept for 30 days. [1]"
    (one,) = answer.citations
    assert (one.n, one.path, one.first_line, one.last_line) == (1, "backup.md", 3, 3)
    assert one.quote == "Backups are kept for 30 days." and one.freshness == "current"
    assert (answer.model, answer.usage) == ("claude-test", {"input_tokens": 100, "output_tokens": 20})
    assert "".join(house.shown) == answer.answer


def test_the_request_is_what_the_real_sdk_sends(model_house: Build) -> None:
    house = model_house(NOTES)
    house.ask("How long are backups kept?", "cleo")
    (request,) = house.fake.requests
    assert request.path == "/v1/messages" and request.headers["authorization"] == "Bearer none"
    assert request.headers["user-agent"].startswith("Anthropic/Python")
    body = request.body
    assert body["stream"] is True and "tools" not in body and "temperature" not in body
    results = search_results(body)
    assert {one["source"] for one in results} == {"notes:backup.md"}, "cleo may read no other"
    (result,) = results
    assert result["title"].startswith("Backup (")
    assert [block["text"] for block in result["content"]] == [
        "# Backup",
        "Backups are kept for 30 days.",
        "- nightly at 02:00\n- weekly on Sunday",
    ]
    assert result["citations"] == {"enabled": True}
    assert question_of(body) == "How long are backups kept?"
    assert [block["type"] for block in body["messages"][-1]["content"]] == ["search_result", "text"]


def test_only_shares_that_may_leave_are_sent(model_house: Build) -> None:
    notes = {"notes": NOTES, "lab": {"open.md": "# Lab\n\nThe quokka backups are kept for 99 days.\n"}}
    house = model_house(notes, rules={"lab": {"": ["everyone"]}})
    reply = house.reply("How long are quokka backups kept?")
    assert "quokka backups are kept for 99" not in house.fake.wire and "lab:" not in house.fake.wire
    assert any("lab" in notice for notice in reply.notices)
    sent = len(house.fake.requests)
    reply = house.reply("How long are quokka backups kept?", share="lab")
    assert len(house.fake.requests) == sent, "nothing to send, so nothing is sent, the question neither"
    assert reply.result.model == "extracts"


def test_without_any_note_no_model_is_asked(model_house: Build) -> None:
    house = model_house({"hr/pay.md": "# Pay\n\nA.\n"}, rules={"notes": {"": ["everyone"], "hr": ["hr"]}})
    assert not house.ask("What is the pay?", "cleo").found
    assert house.fake.requests == []


def test_an_answer_without_citations_is_none(model_house: Build) -> None:
    house = model_house(NOTES)
    house.fake.script.append(Reply([("The capital of France is Paris.", [])]))
    answer = house.ask("What is the capital of France?")
    assert (answer.found, answer.answer, answer.citations) == (False, "", [])
    assert "[?]" in "".join(house.shown), "what was shown already is marked"


def test_the_system_prompt_is_the_same_in_every_request(model_house: Build) -> None:
    house = model_house(NOTES)
    for person in ("anna", "ben"):
        house.ask("How long are backups kept?", person)
        house.ask("When is the certificate renewed?", person)
    systems = {
        one.raw[one.raw.index(b'"system"') : one.raw.index(b'"messages"')] for one in house.fake.requests
    }
    assert len({str(one.body["system"]) for one in house.fake.requests}) == 1 or len(systems) == 1


@pytest.mark.parametrize("thinking", ["", "hmm"])
def test_thinking_comes_first_and_is_no_answer(model_house: Build, thinking: str) -> None:
    house = model_house(NOTES)
    house.fake.script.append(Reply([("Kept for 30 days.", [(0, 1, 2)])], thinking=thinking))
    assert house.ask("How long are backups kept?", "cleo").answer == "Kept for 30 days. [1]"


def test_the_audit_stands_before_anything_leaves(model_house: Build) -> None:
    house = model_house(NOTES)
    seen: list[list[str]] = []
    house.fake.otherwise = Reply(
        lambda body: (seen.append([row[0] for row in house.audit()]), [("x", [])])[1]
    )
    house.ask("How long are backups kept?")
    assert seen and seen[0][-1] == "ask"
    house.fake.requests.clear()
    with house.database.owner() as conn:
        conn.execute("revoke insert on nw.audit from notewarden_reader")
    with pytest.raises(Exception, match="refused"):
        house.ask("How long are backups kept?")
    assert house.fake.requests == []


def test_usage_is_booked_with_its_price(model_house: Build) -> None:
    house = model_house(NOTES, answer={"prices": {"claude-test": {"input": 2.0, "output": 10.0}}})
    usage = {
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 10,
    }
    house.fake.script.append(Reply([("30 days.", [(0, 1, 2)])], usage=usage))
    answer = house.ask("How long are backups kept?", "cleo")
    assert answer.usage == {"input_tokens": 1110, "output_tokens": 20}
    ((asker, model, into, out, cost),) = house.usage()
    assert (asker, model, into, out) == (house.asker("cleo").actor, "claude-test", 1110, 20)
    assert float(cost) == pytest.approx((100 * 2 + 1000 * 0.2 + 10 * 2.5 + 20 * 10) / 1e6)
