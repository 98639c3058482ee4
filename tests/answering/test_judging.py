"""A model's opinion of answers: only when asked for, of what may leave alone, and at its price."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.fake_claude import Failure, Reply, quoting
from support.model_house import ModelHouse

from answerer.door import Tell, Told, Wish
from answerer.evaluation import Case, as_text, evaluate
from answerer.local import _reply
from notewarden.errors import LimitReached, ProviderFailed, UsageError

Build = Callable[..., ModelHouse]
QUESTION = "How long are backups kept?"
NOTE = "# Backup\n\nBackups are kept for 30 days. Ask root@example.com about backups kept longer.\n"


def verdict(supported: Any = True, answers: Any = True) -> Reply:
    return Reply([(json.dumps({"supported": supported, "answers": answers}), [])])


def is_judging(body: dict[str, Any]) -> bool:
    return "You check an answer" in json.dumps(body["system"])


def judging(supported: bool, answers: bool) -> Reply:
    """Quotes for answers, and gives this verdict when asked for one."""
    said = verdict(supported, answers).blocks
    return Reply(lambda body: said if is_judging(body) else quoting(body))


def teller(house: ModelHouse, person: str = "cleo") -> Tell:
    def tell(wish: Wish) -> Told:
        return Told(_reply(house.engine, house.asker(person), wish).result.to_json())

    return tell


def test_verdicts_are_counted_when_asked_for_and_nobody_is_asked_otherwise(asked: Build) -> None:
    house = asked(history="off", small_model="claude-small")
    house.fake.otherwise = judging(supported=True, answers=False)
    cases = [Case("1", QUESTION, None, True, ())]
    plain = evaluate(cases, teller(house))["all"]
    assert plain.judged == 0 and not any(is_judging(one.body) for one in house.fake.requests)
    assert "judged" not in as_text({"all": plain})
    figures = evaluate(cases, teller(house), judged=True)["all"]
    assert (figures.judged, figures.judged_supported, figures.judged_answering) == (1, 1, 0)
    assert "judged 1 answers: 1 borne out" in as_text({"all": figures})
    (request,) = [one.body for one in house.fake.requests if is_judging(one.body)]
    assert request["model"] == "claude-small"
    assert request["output_config"]["format"]["schema"]["required"] == ["supported", "answers"]


def test_what_is_judged_is_redacted_recorded_and_paid_for(model_house: Build) -> None:
    house = model_house({"backup.md": NOTE}, rules={"notes": {"": ["everyone"]}})
    house.fake.otherwise = judging(supported=True, answers=True)
    result = house.engine.judged(house.asker("cleo"), "Are backups kept longer, root@example.com?").result
    assert (result.judged, result.supported, result.answers) == (True, True, True)
    assert "root@example.com" in result.answer.answer
    assert "root@example.com" not in house.fake.wire
    assert [row[0] for row in house.audit()] == ["ask", "answer", "judge"]
    assert house.audit()[-1][2]["notes"] == ["notes:backup.md"]
    assert len(house.usage()) == 2


def test_text_of_a_share_that_stays_here_is_judged_by_nobody(model_house: Build) -> None:
    house = model_house({"here": {"backup.md": NOTE}}, external=(), rules={"here": {"": ["everyone"]}})
    result = house.engine.judged(house.asker("cleo"), "Are backups kept for 30 days?").result
    assert result.answer.found and not result.judged
    assert house.fake.requests == []


def test_an_answer_that_was_refused_is_judged_by_nobody(asked: Build) -> None:
    house = asked(history="off")
    house.fake.otherwise = Reply([("The notes do not say.", [])])
    assert not house.engine.judged(house.asker("cleo"), QUESTION).result.judged
    assert not any(is_judging(one.body) for one in house.fake.requests)


def test_a_note_taken_away_meanwhile_is_not_shown_again(model_house: Build) -> None:
    house = model_house({"backup.md": NOTE, "other.md": "# Other\n\nSomething else.\n"})
    asker = house.asker("anna")
    answer = house.ask(QUESTION, "anna")
    assert house.engine._models is not None
    assert answer.found
    with house.database.owner() as conn:
        conn.execute("update nw.note set path = 'moved.md' where path = 'backup.md'")
    assert not house.engine._models.judge.judge(house.engine._visit_of(asker), answer).judged
    with house.database.owner() as conn:
        conn.execute("update nw.note set path = 'backup.md' where path = 'moved.md'")
        conn.execute("update nw.acl set status = 'quarantined' where role = 'note'")
    assert not house.engine._models.judge.judge(house.engine._visit_of(asker), answer).judged
    assert not any(is_judging(one.body) for one in house.fake.requests)


@pytest.mark.parametrize("reply", [verdict(supported="yes"), Reply([("It is fine.", [])]), Failure(400)])
def test_a_verdict_that_is_none_is_a_failure(asked: Build, reply: Reply | Failure) -> None:
    house = asked(history="off", fallback="none")
    house.fake.script.extend([Reply(quoting), reply])
    with pytest.raises(ProviderFailed):
        house.engine.judged(house.asker("cleo"), QUESTION)


def test_a_judge_spends_no_more_than_the_budget(asked: Build) -> None:
    prices = {"claude-test": {"input": 1000.0, "output": 1000.0}}
    house = asked(history="off", prices=prices, budget_per_person=0.1)
    with pytest.raises(LimitReached):
        house.engine.judged(house.asker("cleo"), QUESTION)
    assert not any(is_judging(one.body) for one in house.fake.requests)


def test_without_a_model_there_is_no_judge(asked: Build) -> None:
    house = asked(provider="extracts")
    with pytest.raises(UsageError):
        house.engine.judged(house.asker("cleo"), QUESTION)


def test_the_service_is_no_judge(tmp_path: Path) -> None:
    from answerer.door import _over_socket

    with pytest.raises(UsageError, match="embedded"):
        _over_socket(tmp_path / "ask.sock", Wish("judge", {}))
