"""Follow-ups: what they mean, what of earlier turns may be used, and that a conversation is its owner's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.fake_claude import Failure, Reply, question_of, search_results
from support.model_house import ModelHouse

from acl.sid import Sid
from answerer.engine import Thread
from answerer.followups import meaning
from notewarden.errors import UsageError

Build = Callable[..., ModelHouse]

PAY = {"hr/pay.md": "# Pay\n\nThe zebrafish bonus is 4711 EUR.\n", "open.md": "# O\n\nHours.\n"}
FIRST = "How long are backups kept?"


@pytest.mark.parametrize(
    ("question", "means"),
    [
        ("Can you repeat that?", "repeat"),
        ("repeat that please", "repeat"),
        ("Again?", "repeat"),
        ("What did you say?", "repeat"),
        ("Kannst du das wiederholen?", "repeat"),
        ("Noch einmal bitte", "repeat"),
        ("Summarize that in one sentence", "rework"),
        ("Can you translate it to German?", "rework"),
        ("shorter please", "rework"),
        ("auf Deutsch", "rework"),
        ("And weekly?", "follow-up"),
        ("Who tests them?", "follow-up"),
        ("Why?", "follow-up"),
        ("What about the gateway in hall three?", "follow-up"),
        ("Und wie lange gilt das?", "follow-up"),
        ("How do I renew the VPN certificate?", "new"),
        ("When is lunch served in the canteen?", "new"),
        ("Where do I repeat the test of the generator?", "new"),
    ],
)
def test_what_a_question_means_after_another(question: str, means: str) -> None:
    assert meaning(question) == means


def test_a_repetition_needs_no_model_and_no_search(asked: Build) -> None:
    house = asked()
    first = house.ask(FIRST)
    again = house.ask("Can you repeat that?", continued=True)
    assert len(house.fake.requests) == 1
    assert (again.answer, again.citations) == (first.answer, first.citations)
    assert again.usage == {"input_tokens": 0, "output_tokens": 0}
    assert house.audit()[-1][0] == "ask"


def test_a_follow_up_is_searched_with_what_it_goes_on_from(asked: Build) -> None:
    house = asked()
    house.ask("What is the zebrafish bonus?")
    house.ask("And why is it so high?", continued=True)
    body = house.fake.requests[-1].body
    assert search_results(body)[0]["source"] == "notes:hr/pay.md"
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "user"]
    assert "zebrafish" in body["messages"][0]["content"][0]["text"]
    assert body["messages"][1]["content"][0]["text"] == "The zebrafish bonus is 4711 EUR."
    assert question_of(body) == "And why is it so high?"


def test_without_c_nothing_is_remembered(asked: Build) -> None:
    house = asked()
    house.ask(FIRST)
    house.ask("And weekly?")
    assert len(house.fake.requests[-1].body["messages"]) == 1


def test_a_rework_uses_the_passages_of_the_last_answer(asked: Build) -> None:
    house = asked()
    house.ask(FIRST, k=1)
    before = [one["source"] for one in search_results(house.fake.requests[-1].body)]
    house.fake.script.append(Reply([("Kept 30 days.", [(0, 1, 2)])]))
    answer = house.ask("Shorter please", continued=True)
    assert [one["source"] for one in search_results(house.fake.requests[-1].body)] == before
    assert answer.answer == "Kept 30 days. [1]"


def test_a_small_model_rewords_if_there_is_one(asked: Build) -> None:
    house = asked(small_model="claude-small")
    house.ask("What is the zebrafish bonus?")
    house.fake.script.append(Reply([("When is the certificate of the VPN renewed?", [])]))
    house.ask("And that of the other thing?", "anna", continued=True)
    rewording, answering = house.fake.requests[-2:]
    assert rewording.body["model"] == "claude-small" and not search_results(rewording.body)
    assert answering.body["model"] == "claude-test"
    assert question_of(answering.body) == "And that of the other thing?"
    assert [row[1] for row in house.usage()][-2:] == ["claude-small", "claude-test"]
    assert [row[0] for row in house.audit()][-3:] == ["reword", "ask", "answer"]


def test_a_small_model_that_fails_costs_no_answer(asked: Build) -> None:
    house = asked(small_model="claude-small")
    house.ask(FIRST)
    house.fake.script.append(Failure(400))
    assert house.ask("And who tests them every month?", continued=True).model == "claude-test"


def narrow(house: ModelHouse, folder: str, readers: list[str]) -> ModelHouse:
    """Give a folder other readers, and sync."""
    text = house.settings.file.read_text("utf-8")
    rule = f'"folder" = "{folder}"\n"readers" = '
    before = text[text.index(rule) + len(rule) :].split("\n")[0]
    house.settings.file.write_text(
        text.replace(f"{rule}{before}", f"{rule}{readers}".replace("'", '"')), "utf-8"
    )
    from support.model_house import open_house

    from notewarden.settings import load_settings

    house = open_house(house.folder, house.fake, load_settings(house.settings.file), house.database)
    house.sync()
    return house


def test_a_turn_whose_notes_may_no_longer_be_read_is_as_if_it_had_never_been(model_house: Build) -> None:
    house = model_house(
        {"hr/pay.md": "# Pay\n\nThe zebrafish bonus is 4711 EUR.\n", "open.md": "# O\n\nHours.\n"}
    )
    assert "4711" in house.ask("What is the zebrafish bonus?").answer
    house = narrow(house, "hr", ["it"])
    house.fake.requests.clear()
    for question in ("Can you repeat that?", "Why is it so high?", "Shorter please"):
        answer = house.ask(question, continued=True)
        assert "4711" not in answer.answer + "".join(house.shown)
    assert "4711" not in house.fake.wire and "zebrafish" not in house.fake.wire
    assert all(len(one.body["messages"]) == 1 for one in house.fake.requests)


def test_a_later_turn_falls_with_the_earlier_one_it_was_made_with(model_house: Build) -> None:
    house = model_house(
        {"hr/pay.md": "# Pay\n\nThe zebrafish bonus is 4711 EUR.\n", "open.md": "# O\n\nHours.\n"}
    )
    house.ask("What is the zebrafish bonus?")
    house.fake.script.append(Reply([("As said, 4711. Hours.", [(0, 1, 2)])]))
    house.ask("And what are the hours of it?", continued=True)
    house = narrow(house, "hr", ["it"])
    house.fake.requests.clear()
    house.ask("And why?", continued=True)
    assert "4711" not in house.fake.wire


def test_what_no_longer_stands_there_is_repeated_as_changed(model_house: Build) -> None:
    house = model_house({"a.md": "# A\n\nBackups are kept for 30 days.\n"})
    house.ask(FIRST)
    (house.folder / "notes" / "a.md").write_text("# A\n\nBackups are kept for 60 days.\n", "utf-8")
    house.sync()
    again = house.ask("Can you repeat that?", continued=True)
    assert [one.freshness for one in again.citations] == ["changed"]


def test_a_conversation_is_its_owners(asked: Build) -> None:
    house = asked()
    house.ask("What is the zebrafish bonus?", "anna")
    house.ask("And why is it so?", "ben", continued=True)
    assert len(house.fake.requests[-1].body["messages"]) == 1
    anna = house.asker("anna")
    admin = replace(anna, actor=Sid("S-1-22-1-0"))
    with pytest.raises(UsageError, match="belongs to who led it"):
        house.engine.ask(admin, "And why?", thread=Thread(True))
    house.engine.ask(admin, "How long are backups kept?")
    house.ask("repeat that", "anna", continued=True)
    with house.database.owner() as conn:
        owners = {row[0] for row in conn.execute("select owner from nw.conversation")}
    assert owners == {house.asker("anna").actor, house.asker("ben").actor}


def test_a_sync_drops_what_is_older_than_configured(asked: Build) -> None:
    house = asked(history="2d")
    house.ask(FIRST, "anna")
    with house.database.owner() as conn:
        conn.execute("update nw.conversation set touched_at = touched_at - interval '1 day'")
    house.sync()
    with house.database.owner() as conn:
        assert conn.execute("select count(*) from nw.turn").fetchone() == (1,)
        conn.execute("update nw.conversation set touched_at = touched_at - interval '2 days'")
    house.sync()
    with house.database.owner() as conn:
        assert conn.execute("select count(*) from nw.turn").fetchone() == (0,)


def test_forget_deletes_ones_own(asked: Build) -> None:
    house = asked()
    house.ask(FIRST, "anna")
    house.ask(FIRST, "ben")
    assert house.engine.forget(house.asker("anna")).result.conversations == 1
    house.ask("And why is it?", "anna", continued=True)
    assert len(house.fake.requests[-1].body["messages"]) == 1
    house.ask("And why is it?", "ben", continued=True)
    assert len(house.fake.requests[-1].body["messages"]) == 3
    assert ("forget", "", {}) in house.audit()


def test_history_off_keeps_nothing(asked: Build) -> None:
    house = asked(history="off")
    house.ask(FIRST)
    with house.database.owner() as conn:
        assert conn.execute("select count(*) from nw.turn").fetchone() == (0,)
    with pytest.raises(UsageError, match="not kept here"):
        house.ask("And?", continued=True)


@pytest.mark.parametrize("questions", ["hash", "drop"])
def test_where_questions_are_not_kept_no_conversation_is(model_house: Build, questions: str) -> None:
    house = model_house(PAY, tables={"privacy": {"questions": questions}})
    house.ask("What is the zebrafish bonus?")
    with house.database.owner() as conn:
        assert conn.execute("select count(*) from nw.turn").fetchone() == (0,)


def test_extracts_have_conversations_too(asked: Build) -> None:
    house = asked(provider="extracts")
    first = house.ask("What is the zebrafish bonus?")
    assert first.model == "extracts" and first.found
    again = house.ask("repeat that", continued=True)
    assert (again.answer, again.model, again.usage) == (first.answer, "extracts", None)
    assert house.ask("zebrafish and what about it?", continued=True).found
    assert house.fake.requests == []


def test_a_long_conversation_is_cut_from_its_beginning(asked: Build) -> None:
    house = asked()
    house.fake.otherwise = Reply([("Backups are kept for 30 days. " * 150, [(0, 1, 2)])], piece=400)
    for _ in range(5):
        house.ask("How long are backups kept?", continued=bool(house.fake.requests))
    sent: list[Any] = house.fake.requests[-1].body["messages"]
    assert 1 < len(sent) < 9 and sent[0]["role"] == "user" and sent[-1]["role"] == "user"
    assert sum(len(str(one)) for one in sent[:-1]) < 14_000


def test_an_answer_from_a_share_that_stays_here_is_never_sent_as_history(model_house: Build) -> None:
    notes = {"notes": PAY, "lab": {"q.md": "# Quokka\n\nQuokka burrows are kept secret.\n"}}
    house = model_house(notes, rules={"lab": {"": ["everyone"]}})
    assert house.ask("quokka burrows kept secret", share="lab").model == "extracts"
    house.ask("And what is the zebrafish bonus of it?", continued=True)
    assert "burrows are kept" not in house.fake.wire and len(house.fake.requests[-1].body["messages"]) == 1
    assert "burrows" in house.ask("quokka burrows kept secret", share="lab").answer
    assert "burrows" in house.ask("repeat that", continued=True).answer, "it may still be shown"
    assert "burrows are kept" not in house.fake.wire
