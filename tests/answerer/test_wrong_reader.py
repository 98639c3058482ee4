"""Nobody gets through any path what the rules do not give them, and everybody gets all that they give."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import answer_house as names

from acl.directory import Account
from answerer.engine import Where
from answerer.identity import Asker
from answerer.paths import NOT_THERE
from db.search import Reading, Scope, reading
from notewarden.display import show_path
from notewarden.errors import AskerUnknown, NotewardenError, NotInNotes

PEOPLE = ["anna", "ben", "cleo"]


def shown(notes: set[tuple[str, bytes]]) -> set[tuple[str, str]]:
    return {(share, show_path(path)) for share, path in notes}


@pytest.mark.parametrize("person", PEOPLE)
def test_search_gives_all_readable_notes_and_no_other(house: names.House, person: str) -> None:
    for question in names.QUESTIONS:
        rows = house.engine.search(house.asker(person), question, k=500).result.results
        assert {(row.share, row.path) for row in rows} == shown(names.readable_by(person))


@pytest.mark.parametrize("person", PEOPLE)
def test_an_answer_cites_readable_notes_only(house: names.House, person: str) -> None:
    may = shown(names.readable_by(person))
    for question in names.QUESTIONS:
        answer = house.engine.ask(house.asker(person), question).result
        assert {(one.share, one.path) for one in answer.citations} <= may
        assert answer.found == bool(answer.citations) == bool(answer.answer)


@pytest.mark.parametrize("person", PEOPLE)
def test_show_gives_readable_notes_and_one_sentence_for_all_others(house: names.House, person: str) -> None:
    asker, may = house.asker(person), names.readable_by(person)
    for share, path in names.NOTES:
        if (share, path) in may:
            found = house.engine.show(asker, os.fsdecode(path), share).result
            assert (found.share, found.path) == (share, show_path(path))
        else:
            with pytest.raises(NotInNotes) as hidden:
                house.engine.show(asker, os.fsdecode(path), share)
            assert str(hidden.value) == NOT_THERE
    with pytest.raises(NotInNotes, match=NOT_THERE):
        house.engine.show(asker, "it/no such note.md")


@pytest.mark.parametrize("person", PEOPLE)
def test_status_counts_readable_notes_only(house: names.House, person: str) -> None:
    state = house.engine.status(house.asker(person)).result
    assert state.notes == len(names.readable_by(person))
    assert state.user == person


def test_the_one_who_may_is_answered(house: names.House) -> None:
    answer = house.engine.ask(house.asker("anna"), "What is the zebrafish bonus?").result
    assert [one.path for one in answer.citations][:1] == ["hr/salaries.md"]
    assert not house.engine.ask(house.asker("ben"), "What is the zebrafish bonus?").result.found


def test_without_a_token_nothing_is_asked(house: names.House) -> None:
    nobody = Asker(house.asker("anna").actor, Account(house.asker("anna").actor, "anna"), None, True)
    for call in (house.engine.ask, house.engine.search, house.engine.show):
        with pytest.raises(AskerUnknown):
            call(nobody, "handbook/leave.md")


def test_without_the_token_setting_every_read_is_empty(house: names.House) -> None:
    with house.database.reader() as conn, reading(conn, house.asker("ben").token) as held:
        everything = held.any_chunks(1000)
        note_ids = [note_id for note_id, _, _ in held.notes()]
        term_ids = list(held.term_ids(["~vpn", "~gateway"]).values())
    assert everything and note_ids and term_ids
    with house.database.reader() as conn, conn.transaction():
        bare = Reading(conn)
        assert bare.sizes() == (0, 0)
        assert bare.any_chunks(1000) == [] and bare.passages(everything) == []
        assert bare.notes() == [] and bare.folders() == [] and bare.shares() == []
        assert bare.vectors(everything) == {} and bare.matching([], []) == []
        assert len(bare.postings(term_ids).chunk_ids) == 0
        assert [bare.pieces(note_id) for note_id in note_ids] == [[]] * len(note_ids)
        assert [bare.head(note_id) for note_id in note_ids] == [None] * len(note_ids)


def test_a_scope_only_narrows(house: names.House) -> None:
    with house.database.reader() as conn, reading(conn, house.asker("cleo").token) as held:
        held.narrow(Scope(None, (b"hr",)))
        held.narrow(Scope(None, (b"",)))
        assert held.notes() == []


def test_a_hidden_note_moves_no_score(build_house: Callable[..., names.House]) -> None:
    one, other = build_house(name="one"), build_house(name="other")
    hidden = other.folder / "notes" / "it" / "leave of absence.md"
    hidden.write_text("# Leave\n\n" + "leave days thirty year everybody " * 40, "utf-8")
    other.sync()
    rows = [
        house.engine.search(house.asker("cleo"), "leave days thirty year", k=50).result.results
        for house in (one, other)
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("folder", ["hr", "no-such-folder", "hr/", "notes:hr"])
def test_a_hidden_folder_is_as_empty_as_an_unknown_one(house: names.House, folder: str) -> None:
    result = house.engine.search(house.asker("cleo"), "salaries", Where(folders=(folder,))).result
    unknown = house.engine.search(house.asker("cleo"), "salaries", Where(folders=("unknown",))).result
    assert result == unknown
    assert result.results == []


def test_twins_are_folded_only_among_readable_ones(house: names.House) -> None:
    first = {
        person: house.engine.search(house.asker(person), "lunch in the canteen", k=1).result.results[0].path
        for person in ("anna", "cleo")
    }
    assert first["cleo"] == "handbook/twin.md"
    rows = house.engine.search(house.asker("anna"), "lunch in the canteen", k=50).result.results
    twins = [at for at, row in enumerate(rows) if row.path.endswith("twin.md")]
    assert len(twins) == 2 and twins[1] - twins[0] > 1, "the second one is only a fill-up"


def test_askers_at_the_same_time_do_not_mix(house: names.House) -> None:
    def found(person: str) -> tuple[str, set[tuple[str, str]]]:
        rows = house.engine.search(house.asker(person), "leave salaries vpn", k=500).result.results
        answer = house.engine.ask(house.asker(person), "What is the zebrafish bonus?").result
        return person, {(row.share, row.path) for row in [*rows, *answer.citations]}

    with ThreadPoolExecutor(8) as pool:
        for person, places in pool.map(found, PEOPLE * 20):
            assert places == shown(names.readable_by(person))


def test_the_audit_stands_before_the_text_and_no_audit_means_no_text(
    build_house: Callable[..., names.House],
) -> None:
    house = build_house()
    with house.database.owner() as conn:
        conn.execute("truncate nw.audit")
        house.engine.search(house.asker("anna"), "salaries")
        rows = conn.execute("select actor, asker, action, subject from nw.audit").fetchall()
        sid = house.asker("anna").account.sid
        assert rows == [(sid, sid, "search", "salaries")]
        conn.execute("revoke insert on nw.audit from notewarden_reader")
    for call in (house.engine.ask, house.engine.search, house.engine.show):
        with pytest.raises(NotewardenError):
            call(house.asker("anna"), "handbook/leave.md")
