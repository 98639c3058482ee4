"""How candidates become what is shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.answer_house import House

from acl.model import AccessList, Clause
from acl.token import Token
from answerer.folding import cap_and_fold
from answerer.latecheck import Gate, NoteNow
from answerer.retrieval import parse_words
from db.search import reading
from notewarden.errors import IndexTooOld, ShareUnavailable, UsageError
from notewarden.settings import SearchSettings


def rows(house: House, person: str, words: str, k: int = 500) -> list[Any]:
    return list(house.engine.search(house.asker(person), words, k=k).result.results)


def readable_chunks(house: House, person: str) -> int:
    with house.database.reader() as conn, reading(conn, house.asker(person).token) as held:
        return held.sizes()[0]


@pytest.mark.parametrize("person", ["anna", "ben", "cleo"])
def test_there_are_always_as_many_rows_as_asked_or_readable(house: House, person: str) -> None:
    readable = readable_chunks(house, person)
    for k in (1, 2, readable - 1, readable, readable + 1, 900):
        found = rows(house, person, "gateway", k)
        assert len(found) == min(k, readable)
        places = [(row.share, row.path, row.first_line, row.text) for row in found]
        assert len(set(places)) == len(places)


def test_at_most_three_of_a_note_come_first(house: House) -> None:
    found = [row.path for row in rows(house, "ben", "the gateway number stands in hall", 6)]
    assert found.count("it/many.md") == 3, "others fill the first rows"
    readable = readable_chunks(house, "ben")
    assert [row.path for row in rows(house, "ben", "gateway hall", readable)].count("it/many.md") > 3


def test_capped_and_folded_keep_their_order() -> None:
    parts = [(1, "a"), (1, "b"), (2, "A "), (1, "c"), (1, "d"), (3, "e")]
    passages: Any = [SimpleNamespace(note_id=note, content=text) for note, text in parts]
    first, left = cap_and_fold(passages, per_note=3)
    assert [one.content for one in first] == ["a", "b", "c", "e"]
    assert [one.content for one in left] == ["A ", "d"]


@pytest.mark.parametrize(
    ("words", "text", "phrases", "without"),
    [
        ("plain words", "plain words", (), ()),
        ('a "quoted phrase" b', "a b quoted phrase", ("quoted phrase",), ()),
        ("vpn -gateway", "vpn", (), ("gateway",)),
        ("well-known e-mail - dash", "well-known e-mail - dash", (), ()),
        ('"-kept whole" "" x', "x -kept whole", ("-kept whole",), ()),
    ],
)
def test_words_phrases_and_exclusions(
    words: str, text: str, phrases: tuple[str, ...], without: tuple[str, ...]
) -> None:
    query = parse_words(words)
    assert (query.text, query.phrases, query.without) == (text, phrases, without)


def test_a_search_cannot_be_made_endless_by_conditions(house: House) -> None:
    repeated = rows(house, "ben", "gateway " + "-hall " * 1_500)
    assert repeated == rows(house, "ben", "gateway -hall")
    assert len(parse_words(" ".join(f"-w{n}" for n in range(25)) + ' "a"' * 90).without) == 25
    with pytest.raises(UsageError, match="50"):
        rows(house, "ben", " ".join(f"-w{n}" for n in range(51)))
    with pytest.raises(UsageError, match="50"):
        rows(house, "ben", " ".join(f'"w{n}"' for n in range(51)))


def test_a_phrase_must_stand_and_a_word_must_not(house: House) -> None:
    every = rows(house, "ben", "gateway")
    phrase = rows(house, "ben", '"GATEWAY number  3 stands"')
    assert phrase and all("gateway number 3 stands" in row.text for row in phrase)
    without = rows(house, "ben", "gateway -Gateway")
    assert without and not any("gateway" in row.text.casefold() for row in without)
    assert len(without) == sum("gateway" not in row.text.casefold() for row in every)
    assert rows(house, "ben", '"zebrafish"') == []


def test_explain_is_for_admins(house: House) -> None:
    from dataclasses import replace

    from notewarden.errors import AskerNotAllowed

    with pytest.raises(AskerNotAllowed):
        house.engine.search(house.asker("ben"), "gateway", explain=True)
    admin = replace(house.asker("ben"), privileged=True)
    found = house.engine.search(admin, "gateway", k=3, explain=True).result.to_json()["results"]
    assert found[0]["keyword_rank"] and "vector_rank" in found[0]
    plain = house.engine.search(admin, "gateway", k=3).result.to_json()["results"]
    assert set(plain[0]) == {"share", "path", "heading", "first_line", "last_line", "text"}


def test_another_model_leaves_the_vectors_out_and_says_so(build_house: Callable[..., House]) -> None:
    house = build_house()
    with house.database.owner() as conn:
        conn.execute("update nw.generation set embedder = 'another'")
    reply = house.engine.search(house.asker("ben"), "gateway", k=4)
    assert len(reply.result.results) == 4
    assert any("another embedding model" in notice for notice in reply.notices)
    assert house.engine.ask(house.asker("ben"), "Where does gateway 3 stand?").result.found


@pytest.mark.parametrize("k", [0, -1, 1001])
def test_k_has_bounds(house: House, k: int) -> None:
    with pytest.raises(UsageError):
        house.engine.search(house.asker("ben"), "x", k=k)


def test_permissions_too_old_are_told_from_nothing_found(build_house: Callable[..., House]) -> None:
    house = build_house()
    with house.database.owner() as conn:
        conn.execute("update nw.share set swept_at = now() - interval '3 days', polled_at = swept_at")
        conn.execute("update nw.share set polled_at = swept_at")
    with pytest.raises(IndexTooOld):
        house.engine.ask(house.asker("ben"), "Where does gateway 3 stand?")


def test_a_fresh_share_that_one_cannot_see_hides_no_age(
    build_house: Callable[..., House], tmp_path: Path
) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/safe.md").write_text("# Safe\n\nThe safe stands in the cellar.\n")
    rule = 'source = "declared"\n[[share.acl.rule]]\nfolder = ""\nreaders = ["hr"]\n'
    house = build_house(f'[[share]]\nname = "vault"\npath = "{tmp_path}/vault"\n[share.acl]\n{rule}')
    with house.database.owner() as conn:
        conn.execute(
            "update nw.share set swept_at = now() - interval '3 days', polled_at = '2026-01-02 03:04:05+00'"
            " where name <> 'vault'"
        )
    for ask in (house.engine.ask, house.engine.search):
        with pytest.raises(IndexTooOld, match="2026-01-02T03:04:05"):
            ask(house.asker("ben"), "Where does gateway 3 stand?")
    assert house.engine.search(house.asker("anna"), "safe").result.results


def one_list(*allow: str) -> AccessList:
    clause = Clause(frozenset(allow), frozenset())  # type: ignore[arg-type]
    return AccessList(b"k" * 32, "s", "declared", "note", "ok", "", None, (clause,), b"", ())


def token() -> Token:
    sids: Any = frozenset({"S-1-1"})
    return Token(next(iter(sids)), "x", sids, sids)


def part(note_id: int) -> Any:
    return SimpleNamespace(note_id=note_id)


def test_the_late_check_drops_what_is_no_longer_readable() -> None:
    asked: list[list[int]] = []
    now = {
        1: NoteNow("current", (one_list("S-1-1"),)),
        2: NoteNow("changed", (one_list("S-1-1"), one_list("S-1-1", "S-1-2"))),
        3: NoteNow("current", (one_list("S-1-1"), one_list("S-1-2"))),
        4: NoteNow("gone", (one_list("S-1-1"),)),
        5: NoteNow("error"),
        6: NoteNow("current", ()),
    }

    def look(note_ids: Sequence[int]) -> Mapping[int, NoteNow]:
        asked.append(list(note_ids))
        return {at: now[at] for at in note_ids if at in now}

    gate = Gate("prefer", look, token())
    assert [one.note_id for one in gate.passed([part(n) for n in (1, 2, 3, 4, 5, 6, 7)])] == [1, 2]
    assert not gate.lets(3) and gate.lets(1)
    assert (gate.freshness(1), gate.freshness(2)) == ("current", "changed")
    assert asked == [[1, 2, 3, 4, 5, 6, 7]], "each note is asked about once"
    assert gate.notice is None


def test_an_unreachable_share_is_decided_by_the_configuration() -> None:
    def look(note_ids: Sequence[int]) -> Mapping[int, NoteNow]:
        raise ShareUnavailable

    prefer = Gate("prefer", look, token())
    assert len(prefer.passed([part(1)])) == 1 and prefer.notice
    with pytest.raises(ShareUnavailable):
        Gate("require", look, token()).passed([part(1)])
    with pytest.raises(IndexTooOld):
        Gate("require", None, token()).passed([part(1)])
    off = Gate("off", None, token())
    assert len(off.passed([part(1)])) == 1 and off.notice is None


def test_required_and_missing_nothing_leaves(build_house: Any, tmp_path: Path) -> None:
    nobody = tmp_path / "nobody.sock"
    house = build_house(f'[answerer]\nlate_check = "require"\nlate_check_socket = "{nobody}"\n')
    for call in (house.engine.ask, house.engine.search, house.engine.show):
        with pytest.raises(ShareUnavailable):
            call(house.asker("cleo"), "handbook/leave.md")


def test_weights_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot both be 0"):
        SearchSettings(vector_weight=0, keyword_weight=0)
    assert math.isclose(SearchSettings().vector_weight, 1)
