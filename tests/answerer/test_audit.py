"""What the audit keeps, as configured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.answer_house import House

from acl.sid import HOST, unix_user
from answerer.engine import Where
from notewarden.errors import ConfigError


def rows(house: House) -> list[tuple[Any, ...]]:
    with house.database.owner() as conn:
        return conn.execute(
            "select actor, asker, action, subject, detail from nw.audit order by audit_id"
        ).fetchall()


def test_each_call_is_one_row_with_what_was_given_out(build_house: Callable[..., House]) -> None:
    house = build_house()
    anna = house.asker("anna")
    house.engine.ask(anna, "What is the zebrafish bonus?")
    house.engine.show(anna, "handbook/leave.md")
    with pytest.raises(Exception, match="no such note"):
        house.engine.show(anna, "it/many.md")
    sid = anna.account.sid
    kept = rows(house)
    assert [row[:4] for row in kept] == [
        (sid, sid, "ask", "What is the zebrafish bonus?"),
        (sid, sid, "show", "handbook/leave.md"),
        (sid, sid, "show", "it/many.md"),
    ]
    assert "notes:hr/salaries.md" in kept[0][4]["notes"]
    assert [row[4] for row in kept[1:]] == [{"notes": ["notes:handbook/leave.md"]}, {}]


def test_acting_for_another_names_both(build_house: Callable[..., House]) -> None:
    house = build_house()
    root = unix_user(0, HOST)
    house.engine.search(replace(house.asker("ben"), actor=root, privileged=True), "gateway")
    assert rows(house)[0][:3] == (root, house.asker("ben").account.sid, "search")
    assert rows(house)[0][4]["as"] is True
    house.engine.status(house.asker("ben"))
    house.engine.status(replace(house.asker("ben"), actor=root))
    assert [row[:3] for row in rows(house)[1:]] == [(root, house.asker("ben").account.sid, "status")]


def test_what_no_text_column_takes_is_kept_in_another_form(build_house: Callable[..., House]) -> None:
    house = build_house()
    house.engine.search(house.asker("ben"), "gate\0way \ud800")
    house.engine.ask(house.asker("ben"), "gate\0way", Where("\0", ("\0", "\ud800")))
    assert [row[3] for row in rows(house)] == [r"gate\x00way \ud800", r"gate\x00way"]


@pytest.mark.parametrize("mode", ["drop", "hash"])
def test_questions_are_dropped_or_hashed_with_a_key(build_house: Callable[..., House], mode: str) -> None:
    house = build_house(f'[privacy]\nquestions = "{mode}"\n')
    house.settings.state_dir.mkdir(exist_ok=True)
    for words in ("gateway", "gateway", "walrus"):
        house.engine.search(house.asker("ben"), words)
    subjects = [row[3] for row in rows(house)]
    if mode == "drop":
        assert subjects == ["", "", ""]
        return
    assert subjects[0] == subjects[1] != subjects[2]
    assert all(one.startswith("hmac-sha256:") and "gateway" not in one for one in subjects)
    key = house.settings.state_dir / "audit-key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.write_bytes(b"short")
    with pytest.raises(ConfigError, match="cut short"):
        house.engine.search(house.asker("ben"), "gateway")
