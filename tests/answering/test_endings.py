"""Every way in which a model can fail or break off: said plainly, audited, never shown as whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.fake_claude import Failure, HangUp, Reply, Silence, Step
from support.model_house import ModelHouse

from notewarden.errors import NotewardenError

Build = Callable[..., ModelHouse]

QUESTION = "backups kept for 30 days"
TEXT = [("Backups are kept for 30 days. ", [(0, 1, 2)]), ("They are tested every month.", [(0, 2, 3)])]

BROKEN = {
    "cut midway": (Reply(TEXT, cut_after=4), "cut", "incomplete"),
    "cut after a block": (Reply(TEXT, cut_after=7), "cut", "incomplete"),
    "no message_stop": (Reply(TEXT, ended=False), "cut", "incomplete"),
    "no stop_reason": (Reply(TEXT, stop_reason=None), "cut", "incomplete"),
    "an error event": (Reply(TEXT, error_after=5), "cut", "broke off"),
    "no JSON": (Reply(TEXT, garbage_after=5), "cut", "broke off"),
    "refusal": (Reply(TEXT, stop_reason="refusal"), "refusal", "refused"),
    "refusal without a word": (Reply([], stop_reason="refusal"), "refusal", "refused"),
    "max_tokens": (Reply(TEXT, stop_reason="max_tokens"), "max_tokens", "length limit"),
    "context": (
        Reply(TEXT, stop_reason="model_context_window_exceeded"),
        "context",
        "too long for the model",
    ),
    "a tool nobody offered": (Reply(TEXT, stop_reason="tool_use"), "cut", "incomplete"),
}
DOWN: dict[str, tuple[Step, int, str]] = {
    "401": (Failure(401), 1, "API key"),
    "403": (Failure(403), 1, "API key"),
    "404": (Failure(404), 1, "does not know the model"),
    "413": (Failure(413), 1, "413"),
    "429": (Failure(429, {"retry-after-ms": "5"}), 3, "429"),
    "500": (Failure(500, {"retry-after-ms": "5"}), 3, "500"),
    "529": (Failure(529, {"retry-after-ms": "5"}), 3, "529"),
    "hangs up": (HangUp(), 3, "cannot be reached"),
    "cut before a word": (Reply(TEXT, cut_after=1), 1, "before it said anything"),
    "error event at once": (Reply(TEXT, error_after=1), 1, "before it said anything"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_no_answer(asked: Build, name: str) -> None:
    step, ending, sentence = BROKEN[name]
    house = asked()
    house.fake.otherwise = step
    with pytest.raises(NotewardenError, match=sentence) as told:
        house.ask(QUESTION)
    assert told.value.exit_code == 8 and "\n" not in str(told.value)
    assert [(action, detail.get("ending")) for action, _, detail in house.audit()] == [
        ("ask", None),
        ("answer", ending),
    ]
    assert len(house.fake.requests) == 1, "what was begun is never begun anew"
    house.fake.otherwise = Reply(TEXT)
    assert house.ask("And that?", continued=True).found
    assert len(house.fake.requests[-1].body["messages"]) == 1, "a broken answer is no part of a conversation"


@pytest.mark.parametrize("name", DOWN)
def test_a_provider_that_is_down_gives_extracts_with_a_notice(asked: Build, name: str) -> None:
    step, calls, sentence = DOWN[name]
    house = asked(citations="native")
    house.fake.otherwise = step
    reply = house.reply(QUESTION)
    assert reply.result.model == "extracts" and reply.result.found and reply.result.usage is None
    assert any("extracts" in one and sentence in one for one in reply.notices), reply.notices
    assert len(house.fake.requests) == calls
    assert house.shown == []
    assert [(action, detail.get("ending")) for action, _, detail in house.audit()] == [
        ("ask", None),
        ("answer", "down"),
        ("ask", None),
    ]


@pytest.mark.parametrize("name", ["401", "529", "cut before a word"])
def test_without_a_fallback_it_is_exit_8(asked: Build, name: str) -> None:
    step, _, sentence = DOWN[name]
    house = asked(fallback="none")
    house.fake.otherwise = step
    with pytest.raises(NotewardenError, match=sentence) as told:
        house.ask(QUESTION)
    assert told.value.exit_code == 8


def test_a_server_that_says_nothing_is_given_up(asked: Build) -> None:
    house = asked(timeout="1s", fallback="none")
    house.fake.otherwise = Silence(3)
    with pytest.raises(NotewardenError, match="in time") as told:
        house.ask(QUESTION)
    assert told.value.exit_code == 8


def test_a_stream_that_falls_silent_is_cut(asked: Build) -> None:
    house = asked(timeout="1s")
    house.fake.otherwise = Reply(TEXT, hang_after=5)
    with pytest.raises(NotewardenError, match="broke off") as told:
        house.ask(QUESTION)
    assert told.value.exit_code == 8 and house.shown


def test_a_stream_that_drips_is_cut_at_the_time_limit(asked: Build) -> None:
    house = asked(timeout="1s")
    house.fake.otherwise = Reply([("word " * 400, [(0, 1, 2)])], piece=5, pause=0.02)
    with pytest.raises(NotewardenError, match="too long"):
        house.ask(QUESTION)


def test_passing_trouble_is_tried_again(asked: Build) -> None:
    house = asked()
    house.fake.script += [Failure(529, {"retry-after-ms": "5"}), Failure(429, {"retry-after-ms": "5"})]
    assert house.ask(QUESTION).model == "claude-test"
    assert len(house.fake.requests) == 3


def test_the_fallback_model_is_asked_before_extracts_are(asked: Build) -> None:
    house = asked(fallback_model="claude-other")
    house.fake.script.append(Failure(404))
    assert house.ask(QUESTION).model == "claude-other"


def test_who_asked_may_stop_it(asked: Build) -> None:
    house = asked()
    house.fake.otherwise = Reply(TEXT, pause=0.01)

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    from answerer.engine import Thread

    with pytest.raises(KeyboardInterrupt):
        house.engine.ask(house.asker("anna"), QUESTION, thread=Thread(False, stop))
    assert house.audit()[-1][2]["ending"] == "interrupted"


def test_what_a_broken_answer_used_is_booked(asked: Build) -> None:
    house = asked()
    house.fake.otherwise = Reply(TEXT, cut_after=4)
    with pytest.raises(NotewardenError):
        house.ask(QUESTION)
    assert [row[2] for row in house.usage()] == [100]
