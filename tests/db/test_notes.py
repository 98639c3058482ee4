"""One note is one transaction: its rows go in whole or not at all, and leave nothing behind."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from acl.compile import Entry, Meaning, compile_entries
from acl.sid import EVERYONE, Sid
from db import generations, ledger, shares
from db.audiences import AudienceStore
from db.errors import DatabaseFault
from db.generations import Recipe
from db.lists import ListStore, stored
from db.notes import About, FileState, Guard, Narrowed, NewChunk, NewNote, NoteStore
from db.pool import Connection, Database

RECIPE = Recipe("chunker 1", "template 1", "model", 8)


class Names:
    """A directory in which every SID is called after itself."""

    def name_of(self, sid: Sid) -> str | None:
        return f"name of {sid}"

    def enumerable(self, sid: Sid) -> bool:
        return True


@dataclass
class Store:
    """The repositories of one share on one connection."""

    conn: Connection
    share_id: int
    lists: ListStore
    audiences: AudienceStore
    notes: NoteStore
    generation: int

    def list_id(self, sid: str = EVERYONE) -> int:
        entries = [Entry("allow", Sid(sid), "x")]
        one = compile_entries(entries, Meaning("host", "x", "note"), 1, raw=sid.encode())
        return self.lists.ids([one])[0]

    def save(self, path: str, *texts: str, own: tuple[int, ...] = (), note_id: int | None = None) -> int:
        return self.notes.save(self.generation, made(path, texts, own or (self.list_id(),), note_id))

    def count(self, table: str) -> int:
        return self.one(f"select count(*) from nw.{table}")

    def one(self, query: str, *values: Any) -> Any:
        row = self.conn.execute(query, values).fetchone()
        assert row is not None
        return row[0]

    def sizes(self) -> list[tuple[int, int]]:
        return self.conn.execute(
            "select n_chunks::int, sum_length::int from nw.audience_size where n_chunks > 0 order by 1, 2"
        ).fetchall()


def made(path: str, texts: tuple[str, ...], own: tuple[int, ...], note_id: int | None = None) -> NewNote:
    chunks = tuple(
        NewChunk(
            seq=seq,
            heading=("Title", "Part"),
            lines=(seq + 1, seq + 1),
            span=(seq, seq + 1),
            content=text,
            embed_key=hashlib.sha256(text.encode()).digest(),
            terms=Counter(text.split()),
            vector=np.eye(8, dtype=np.float32)[len(text) % 8],
        )
        for seq, text in enumerate(texts)
    )
    digest = hashlib.sha256("".join(texts).encode()).digest()
    state = FileState(digest, 10, datetime(2026, 1, 1, tzinfo=UTC), b"hint", hint_trusted=True)
    return NewNote(path.encode(), Guard((), own), state, About("Title", "utf-8"), chunks, note_id)


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with database.owner() as conn:
        generation, _ = generations.target(conn, RECIPE)
        share = shares.declare(conn, "notes", "/notes", None, timedelta(hours=24))
        audiences = AudienceStore(conn, share.share_id)
        notes = NoteStore(conn, share.share_id, audiences)
        yield Store(conn, share.share_id, ListStore(conn, Names()), audiences, notes, generation)


def test_a_note_is_stored_with_all_its_rows(store: Store) -> None:
    note_id = store.save("hr/a.md", "one two two", "three")
    assert [store.count(table) for table in ("note", "note_chunk", f"vectors_{store.generation}")] == [
        1,
        2,
        2,
    ]
    rows = store.conn.execute(
        "select t.term, p.tf, p.length from nw.posting p join nw.term t using (term_id) order by 1"
    ).fetchall()
    assert rows == [("one", 1, 3), ("three", 1, 1), ("two", 2, 3)]
    assert store.sizes() == [(2, 4)]
    known = store.notes.known()[b"hr/a.md"]
    assert (known.note_id, known.hint, known.absent, known.stale) == (note_id, b"hint", False, False)


def test_a_replaced_note_keeps_its_id_and_none_of_its_rows(store: Store) -> None:
    note_id = store.save("a.md", "old words", "older words", "oldest words")
    assert store.save("a.md", "new", note_id=note_id) == note_id
    assert [store.count(table) for table in ("note", "note_chunk", "posting")] == [1, 1, 1]
    assert store.count(f"vectors_{store.generation}") == 1
    assert store.sizes() == [(1, 1)]


def test_a_refused_note_leaves_the_old_one_as_it_was(store: Store) -> None:
    note_id = store.save("a.md", "old words")
    before = store.conn.execute("select * from nw.note_chunk").fetchall()
    with pytest.raises(DatabaseFault):
        store.save("a.md", "good", "bad \x00 text", note_id=note_id)
    assert store.conn.execute("select * from nw.note_chunk").fetchall() == before
    assert store.sizes() == [(1, 2)]


def test_after_a_refused_note_nothing_it_taught_is_used(store: Store) -> None:
    """Ids of terms and audiences that were rolled back with it must not serve the next note."""
    with pytest.raises(DatabaseFault):
        store.save("new/a.md", "fresh words", "bad \x00 text")
    store.notes.forget()
    store.save("new/b.md", "fresh words")
    assert store.one("select count(*) from nw.posting p join nw.term t using (term_id)") == 2
    assert store.one("select folder from nw.note join nw.audience using (audience_id)") == b"new"


def test_terms_learnt_ahead_serve_and_one_that_is_refused_costs_no_other_note(store: Store) -> None:
    good, bad = (
        made(path, (text,), (store.list_id(),)) for path, text in (("a", "fresh words"), ("b", "\x00"))
    )
    for expected in ([good], [good, bad]):
        store.notes.expect(expected)
    store.notes.save(store.generation, good)
    assert store.one("select count(*) from nw.posting p join nw.term t using (term_id)") == 2
    with pytest.raises(DatabaseFault):
        store.notes.save(store.generation, bad)


def test_headings_are_stored_as_they_are(store: Store) -> None:
    headings = (
        (),
        ("",),
        ("NULL",),
        ('say "so"', "back\\slash", "{a,b}"),
        (" spaces ", "línea\nnueva", "\x1f"),
    )
    note = made("a.md", tuple("abcde"), (store.list_id(),))
    chunks = tuple(replace(one, heading=heading) for one, heading in zip(note.chunks, headings, strict=True))
    store.notes.save(store.generation, replace(note, chunks=chunks))
    rows = store.conn.execute("select heading from nw.note_chunk order by seq").fetchall()
    assert [tuple(row[0]) for row in rows] == list(headings)


def test_a_note_of_many_chunks_is_stored_whole(store: Store) -> None:
    note_id = store.save("a.md", *(f"word{number}" for number in range(1_203)))
    for table in ("note_chunk", "posting", f"vectors_{store.generation}"):
        assert store.count(table) == 1_203
    assert store.sizes() == [(1_203, 1_203)]
    pairs = "from nw.note_chunk c join nw.posting p using (chunk_id) join nw.term t using (term_id)"
    assert (
        store.one(f"select count(*) {pairs} where t.term = c.content and c.seq = right(c.content, -4)::int")
        == 1_203
    )
    store.save("a.md", "one", note_id=note_id)
    assert (store.count("note_chunk"), store.sizes()) == (1, [(1, 1)])


def test_a_stored_note_is_out_of_trouble(store: Store) -> None:
    for path in (b"a.md", b"b.md"):
        ledger.record(store.conn, store.share_id, path, ("pending", "trouble"))
    store.save("a.md", "text")
    assert set(ledger.of_share(store.conn, store.share_id)) == {b"b.md"}


def test_a_deleted_note_leaves_no_row(store: Store) -> None:
    gone, kept = store.save("hr/a.md", "one two"), store.save("hr/b.md", "three")
    store.notes.delete([gone])
    assert [store.count(table) for table in ("note", "note_chunk", "posting")] == [1, 1, 1]
    assert store.count(f"vectors_{store.generation}") == 1
    assert store.sizes() == [(1, 1)]
    store.notes.delete([kept])
    store.audiences.drop_empty()
    assert [store.count(table) for table in ("audience", "audience_size", "posting")] == [0, 0, 0]


def test_a_moved_note_takes_all_its_rows_along(store: Store) -> None:
    first, second = store.save("hr/a.md", "one two"), store.save("hr/b.md", "three")
    old = store.one("select audience_id from nw.note where note_id = %s", first)
    new = store.audiences.id_for(b"it", [store.list_id("S-1-5-21-1-2-3-4")])
    store.audiences.move([first], new, [old])
    for table in ("note", "note_chunk", "posting", f"vectors_{store.generation}"):
        assert store.one(f"select count(*) from nw.{table} where audience_id = %s", new) >= 1
    assert store.one("select count(*) from nw.posting where audience_id = %s", old) == 1
    assert store.one("select audience_id from nw.note where note_id = %s", second) == old
    assert store.sizes() == [(1, 1), (1, 2)]


def test_a_row_edited_in_place_shows_its_new_readers(store: Store) -> None:
    store.save("hr/a.md", "text", own=(store.list_id("S-1-5-21-1-2-3-4"),))
    audience = store.one("select audience_id from nw.note")
    assert store.one("select readers from nw.audience") == ["S-1-5-21-1-2-3-4"]
    other = store.list_id("S-1-5-21-1-2-3-5")
    store.audiences.edit(audience, [other])
    assert store.one("select readers from nw.audience") == ["S-1-5-21-1-2-3-5"]
    assert store.audiences.id_for(b"hr", [other]) == audience
    assert store.audiences.id_for(b"hr", [store.list_id("S-1-5-21-1-2-3-4")]) != audience
    shown = store.conn.execute("select share, path, readers from nw.chunk_readers").fetchall()
    assert shown == [("notes", b"hr/a.md", ["S-1-5-21-1-2-3-5"])]


def test_vectors_are_found_by_the_exact_string_alone(store: Store) -> None:
    store.save("a.md", "one", "two")
    keys = [hashlib.sha256(text.encode()).digest() for text in ("one", "One", "two")]
    found = store.notes.vectors(store.generation, keys)
    assert set(found) == {keys[0], keys[2]}
    assert np.array_equal(found[keys[0]], np.eye(8, dtype=np.float32)[3])


def test_hidden_notes_are_counted_until_they_are_found(store: Store) -> None:
    note_id = store.save("a.md", "text")
    store.notes.hide([note_id])
    store.notes.hide([note_id])
    assert store.notes.held() == [(note_id, b"a.md", 2)]
    assert shares.held(store.conn, store.share_id) == 1
    assert store.notes.known()[b"a.md"].absent
    store.notes.found([note_id])
    assert (store.notes.held(), store.notes.known()[b"a.md"].absent) == ([], False)


def test_two_notes_with_one_path_cannot_be(store: Store) -> None:
    store.save("a.md", "text")
    with pytest.raises(DatabaseFault):
        store.save("a.md", "text")
    assert store.count("note") == 1


def test_paths_are_bytes(store: Store) -> None:
    raw = b"\xff/e\xcc\x81\n.md"
    store.notes.save(store.generation, replace(made("x", ("text",), (store.list_id(),)), path=raw))
    assert set(store.notes.known()) == {raw}


def test_extremes_of_counts_and_times_are_stored(store: Store) -> None:
    store.save("long.md", "word " * 40_000)
    assert store.conn.execute("select tf, length from nw.posting").fetchall() == [(32767, 32767)]
    assert store.sizes() == [(1, 40_000)]


def test_equal_lists_are_stored_once_and_used_ones_are_kept(store: Store) -> None:
    own = store.list_id("S-1-5-21-1-2-3-4")
    assert store.list_id("S-1-5-21-1-2-3-4") == own
    beside = store.list_id("S-1-5-21-1-2-3-5")
    unused = store.list_id("S-1-5-21-1-2-3-6")
    note_id = store.save("a.md", "text", own=(own,))
    store.notes.keep_narrow(note_id, Narrowed((own,), (beside,)))
    store.lists.drop_unused()
    assert set(stored(store.conn, [own, beside, unused])) == {own, beside}
    assert store.list_id("S-1-5-21-1-2-3-6") not in (own, beside, unused)
    assert set(store.conn.execute("select acl_id from nw.acl").fetchall()) >= {(own,), (beside,)}


def test_a_switch_of_generations_keeps_only_the_new_rows(store: Store) -> None:
    both = store.save("a.md", "text")
    lacking = store.save("b.md", "text")
    new, serves = generations.target(store.conn, replace(RECIPE, dimension=8, embedder="other"))
    assert (new != store.generation, serves) == (True, False)
    assert generations.target(store.conn, replace(RECIPE, embedder="other")) == (new, False)
    store.notes.save(new, made("a.md", ("text",), (store.list_id(),), both))
    assert store.count("note_chunk") == 3
    assert store.notes.unindexed(new) == {lacking}
    generations.switch(store.conn, new)
    assert generations.all_ids(store.conn) == [new]
    generations.drop_retired(store.conn)
    assert store.conn.execute("select distinct generation_id from nw.note_chunk").fetchall() == [(new,)]
    table = "select count(*) from pg_class where relname = %s", f"vectors_{store.generation}"
    assert store.one(*table) == 1  # for readings that began before
    store.conn.execute("update nw.generation set retired_at = retired_at - interval '1 hour'")
    generations.drop_retired(store.conn)
    assert store.one(*table) == 0
    assert store.conn.execute("select generation_id from nw.generation").fetchall() == [(new,)]
    stale = store.conn.execute("select note_id from nw.note where stale").fetchall()
    assert stale == [(lacking,)]


def test_an_edit_while_a_generation_is_built_takes_the_old_text_away(store: Store) -> None:
    note_id = store.save("a.md", "the old text")
    new, _ = generations.target(store.conn, replace(RECIPE, embedder="other"))
    store.notes.save(new, made("a.md", ("the new text",), (store.list_id(),), note_id))
    assert store.conn.execute("select content from nw.note_chunk").fetchall() == [("the new text",)]


def test_attempts_and_since_in_the_ledger(store: Store) -> None:
    def record(state: ledger.State, hint: bytes | None) -> tuple[int, datetime]:
        ledger.record(store.conn, store.share_id, b"a.md", (state, "why"), hint)
        stands = ledger.of_share(store.conn, store.share_id)[b"a.md"]
        return stands.attempts, stands.since

    first, since = record("pending", b"1")
    assert (first, record("pending", b"1")) == (1, (2, since))
    assert record("pending", None) == (3, since)
    assert record("pending", b"1")[0] == 4
    assert record("pending", b"2")[0] == 1
    attempts, later = record("unreadable", b"2")
    assert (attempts, later > since) == (2, True)
