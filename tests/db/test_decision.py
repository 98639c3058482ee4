"""The heart: what the database lets a reader see is what walking the access lists allows, exactly."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.posix_acls import posix_states
from support.random_acls import PEOPLE, USERS, descriptors, rights, tokens, unresolvables

from acl.compile import Entry, Meaning, compile_entries, quarantine
from acl.evaluate import readable
from acl.model import READ_DATA, AccessList, Role
from acl.nt import compile_descriptor
from acl.posix import READ, compile_posix
from acl.sid import AUTHENTICATED, EVERYONE, NETWORK, Sid
from acl.token import Token
from db import generations, shares
from db.audiences import AudienceStore
from db.errors import DatabaseFault, NotPermitted
from db.lists import ListStore
from db.notes import About, FileState, Guard, NewChunk, NewNote, NoteStore
from db.pool import Database
from db.search import Scope, reading
from db.tokenvectors import TokenStore
from notewarden.embedding.tokens import FORM
from notewarden.errors import AskerUnknown

TABLES = ("share", "audience", "note", "note_chunk", "audience_size", "posting", "vectors_1", "token_vectors")
CLOSED_TABLES = (
    "acl",
    "acl_clause",
    "principal",
    "term",
    "ledger",
    "narrowed",
    "generation",
    "run",
    "recall_check",
    "conversation",
    "turn",
)
WRITE_ONLY = ("audit", "usage", "request")
WHO = Token(USERS[0], "somebody", frozenset({USERS[0], EVERYONE}), frozenset({USERS[0], EVERYONE}))


class Names:
    """A directory for ListStore: nobody has a name, and the members of `lost` cannot be told."""

    def __init__(self, lost: frozenset[Sid] = frozenset()) -> None:
        self.lost = lost

    def name_of(self, sid: Sid) -> str | None:
        return None

    def enumerable(self, sid: Sid) -> bool:
        return sid not in self.lost


SERVERS = ("host", "nfs:nas:/notes")
Layer = tuple[AccessList, ...]


@st.composite
def layers(draw: st.DrawFn, role: Role) -> Layer:
    """The lists of one layer as any source makes them; several rights make several lists."""
    server = draw(st.sampled_from(SERVERS))
    shape = draw(st.sampled_from(["nt", "nt", "posix", "declared", "quarantined"]))
    meaning = Meaning(server, shape, role, (str(draw(st.integers(0, 10**9))),))
    if shape == "nt":
        drawn = draw(descriptors)  # made without bytes, by which a list's key tells it from others
        return compile_descriptor(replace(drawn, raw=repr(drawn).encode()), meaning, draw(rights))
    if shape == "posix":
        state = draw(posix_states([1000, 1001], [998, 999]))
        return (compile_posix(state, READ, meaning),)
    if shape == "quarantined":
        return (quarantine(meaning, "not understood"),)
    pairs = draw(st.lists(st.tuples(st.sampled_from(["allow", "deny"]), st.sampled_from(PEOPLE)), max_size=4))
    entries = [Entry("allow" if verb == "allow" else "deny", sid, "declared") for verb, sid in pairs]
    return (
        compile_entries(
            [*entries, Entry("allow", EVERYONE, "all")], meaning, READ_DATA, raw=repr(pairs).encode()
        ),
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Layer, list[Layer], frozenset[Sid], list[Token]]:
    """A share's own lists (at times none), its audiences as flat lists, SIDs nobody can enumerate, askers."""
    open_share = (
        compile_entries([Entry("allow", EVERYONE, "all")], Meaning("host", "x", "share"), 1, raw=b"e"),
    )
    share = draw(st.one_of(st.just(open_share), st.just(open_share), layers("share"), st.just(())))
    parents = draw(st.lists(layers("parent"), min_size=1, max_size=3))
    notes = draw(st.lists(layers("note"), min_size=3, max_size=6))
    some = [(), *((one,) for one in parents), tuple(parents)]
    audiences = [tuple(itertools.chain(*above, note)) for above in some for note in notes]
    return share, audiences, draw(unresolvables), draw(st.lists(tokens(), min_size=1, max_size=3))


class Index:
    """Rows of notes without text, put there for one example."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.ids: list[int] = []

    def fill(self, share: Layer, audiences: Sequence[Layer], lost: frozenset[Sid] = frozenset()) -> list[int]:
        """Replace everything by one share; return the audiences' ids in order."""
        with self.database.owner() as conn, conn.transaction():
            for table in ("note", "audience", "share", "acl", "principal"):
                conn.execute(f"delete from nw.{table}")
            row = shares.declare(conn, "notes", "/notes", None, timedelta(hours=24))
            lists = ListStore(conn, Names(lost))
            shares.set_lists(conn, row.share_id, lists.ids(share))
            shares.swept(conn, row.share_id, shares.clock(conn))
            ids = []
            for number, one in enumerate(audiences):
                made = conn.execute(
                    "insert into nw.audience (share_id, folder, acl_ids, readers) values (%s, %s, %s, '{}')"
                    " returning audience_id",
                    [row.share_id, b"%d" % number, list(lists.ids(one))],
                ).fetchone()
                ids.append(made[0])
            conn.execute(
                "insert into nw.note (share_id, path, audience_id, content_hash, size, modified_at, hint,"
                " own_acl_ids, encoding) select %s, convert_to(id::text, 'UTF8'), id, %s, 0, now(), '', '{}',"
                " '' from unnest(%s::int[]) id",
                [row.share_id, bytes(32), ids],
            )
        self.ids = ids
        return ids

    def seen(self, token: Token) -> set[int]:
        """The audiences whose note a reader sees through a reading."""
        with self.database.reader() as conn, reading(conn, token) as session:
            by_call = {int(path) for _, _, path in session.notes()}
            by_table = {row[0] for row in conn.execute("select audience_id from nw.note")}
            assert by_call == by_table
            some = self.ids[::2]
            again = {row[0] for row in conn.execute("select app.readable_among(%s)", [some])}
            assert again == by_call.intersection(some), "the last read of text decides alike"
            assert conn.execute("select app.readable_among('{}')").fetchall() == []
            assert conn.execute("select app.readable_among(null)").fetchall() == []
            return by_call


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(world=worlds())
def test_the_database_decides_as_the_walk_does(
    database: Database, world: tuple[Layer, list[Layer], frozenset[Sid], list[Token]]
) -> None:
    share, audiences, lost, askers = world
    index = Index(database)
    ids = index.fill(share, audiences, lost)
    for token in askers:
        expected = {
            audience_id
            for audience_id, lists in zip(ids, audiences, strict=True)
            if share and readable(lists, token, lost) and readable(share, token, lost)
        }
        assert index.seen(token) == expected


def everyone(role: Role, tag: bytes = b"e") -> Layer:
    return (compile_entries([Entry("allow", EVERYONE, "all")], Meaning("host", "x", role), 1, raw=tag),)


def only(sid: Sid, role: Role) -> Layer:
    return (compile_entries([Entry("allow", sid, "one")], Meaning("host", "x", role), 1, raw=sid.encode()),)


@pytest.fixture
def index(database: Database) -> Index:
    return Index(database)


STATES = {
    "swept_at = clock_timestamp() - max_age + interval '1 minute'": True,
    "swept_at = clock_timestamp() - max_age - interval '1 second'": False,
    "swept_at = clock_timestamp() + interval '4 seconds'": True,
    "swept_at = clock_timestamp() + interval '20 seconds'": False,
    "swept_at = null": False,
    "swept_at = '-infinity'": False,
    "swept_at = 'infinity'": False,
    "polled_at = clock_timestamp() + interval '20 seconds'": False,
    "acl_ids = '{}'": False,
    "acl_ids = array[2147483647]": False,
    "acl_ids = acl_ids || 2147483647": False,
    "acl_ids = acl_ids || null::int": False,
}


def test_a_share_counts_only_while_its_permissions_do(index: Index) -> None:
    for sql, seen in STATES.items():
        index.fill(everyone("share"), [everyone("note")])
        assert len(index.seen(WHO)) == 1
        with index.database.owner() as conn:
            conn.execute(f"update nw.share set {sql}")
        assert bool(index.seen(WHO)) == seen, sql


def test_a_list_that_vanished_or_was_quarantined_closes(index: Index) -> None:
    index.fill(everyone("share"), [everyone("note")])
    with index.database.owner() as conn:
        conn.execute("update nw.acl set status = 'quarantined' where role = 'note'")
    assert index.seen(WHO) == set()
    with index.database.owner() as conn:
        conn.execute("delete from nw.acl where role = 'note'")
    assert index.seen(WHO) == set()


def test_an_audience_without_lists_cannot_be_stored(index: Index) -> None:
    index.fill(everyone("share"), [everyone("note")])
    with pytest.raises(DatabaseFault), index.database.owner() as conn:
        conn.execute("update nw.audience set acl_ids = '{}'")


def test_an_empty_token_is_refused_by_the_database(index: Index) -> None:
    index.fill(everyone("share"), [everyone("note")])
    empty: list[Any] = [[], None, [None], [EVERYONE, None]]
    for one, other in [*((bad, [EVERYONE]) for bad in empty), (None, None), ([], [])]:
        for allow, deny in ((one, other), (other, one)):
            with pytest.raises(DatabaseFault) as caught, index.database.reader() as conn:
                conn.execute("select app.begin(%s::text[], %s::text[])", [allow, deny])
            assert caught.value.sqlstate == "NW001"


def test_no_token_is_refused_before_the_database_is_asked(index: Index) -> None:
    with pytest.raises(AskerUnknown), index.database.reader() as conn, reading(conn, None):
        pass


def test_settings_that_say_nothing_mean_nothing(index: Index) -> None:
    index.fill(everyone("share"), [everyone("note")])
    for allow, deny in itertools.product(["", "{}", None], repeat=2):
        with index.database.reader() as conn, conn.transaction():
            for name, value in (("nw.allow", allow), ("nw.deny", deny)):
                if value is not None:
                    conn.execute("select set_config(%s, %s, true)", [name, value])
            assert conn.execute("select * from app.readable_ids()").fetchall() == []
            assert conn.execute("select app.readable_among(%s)", [index.ids]).fetchall() == []
            assert conn.execute("select app.ids()").fetchone() == ([],)


def test_a_missing_deny_set_never_means_that_nothing_is_denied(index: Index) -> None:
    deny_me = [Entry("deny", WHO.user, "me"), Entry("allow", EVERYONE, "all")]
    index.fill(everyone("share"), [(compile_entries(deny_me, Meaning("host", "x", "note"), 1, raw=b"d"),)])
    with index.database.reader() as conn, conn.transaction():
        conn.execute("select set_config('nw.allow', %s, true)", ["{" + ",".join(WHO.allow) + "}"])
        for value in ("", "{}"):
            conn.execute("select set_config('nw.deny', %s, true)", [value])
            assert conn.execute("select * from app.readable_ids()").fetchall() == []


class Full(Index):
    """Two notes with text, postings and vectors: one that everyone reads, one that USERS[1] alone reads."""

    def store(self) -> None:
        self.generation = 0
        with self.database.owner() as conn:
            self.generation, _ = generations.target(conn, generations.Recipe("c", "t", "e", 8))
            row = shares.declare(conn, "notes", "/notes", "file:///{path}", timedelta(hours=24))
            lists = ListStore(conn, Names())
            shares.set_lists(conn, row.share_id, lists.ids(everyone("share")))
            shares.swept(conn, row.share_id, shares.clock(conn))
            shares.polled(conn, row.share_id, shares.clock(conn), {})
            audiences = AudienceStore(conn, row.share_id)
            store = NoteStore(conn, row.share_id, audiences)
            for path, guard in [(b"open/a.md", everyone("note")), (b"shut/b.md", only(USERS[1], "note"))]:
                new = note(path, lists.ids(guard))
                note_id = store.save(self.generation, new)
                tokens = {chunk.embed_key: b"\x0f" for chunk in new.chunks}
                TokenStore(conn, self.generation, FORM).add(note_id, tokens)


def note(path: bytes, own: tuple[int, ...], words: str = "some words") -> NewNote:
    text = f"{words} of {path.decode()}"
    vector = np.zeros(8, dtype=np.float32)
    vector[len(path) % 8] = 1.0
    digest = hashlib.sha256(text.encode()).digest()
    chunk = NewChunk(
        0, ("Title",), (1, 1), (0, len(text)), text, digest, {"word": 1, path.decode(): 1}, vector
    )
    state = FileState(digest, len(text), datetime.now(UTC), b"hint", hint_trusted=True)
    return NewNote(path, Guard((), own), state, About("Title", "utf-8"), (chunk,))


@pytest.fixture
def full(database: Database) -> Full:
    world = Full(database)
    world.store()
    return world


def names(database: Database, kinds: str = "rv") -> set[str]:
    with database.owner() as conn:
        rows = conn.execute(
            "select relname from pg_class where relnamespace = 'nw'::regnamespace and relkind = any (%s)",
            [list(kinds)],
        )
        return {row[0] for row in rows}


def test_every_table_is_known_here(full: Full) -> None:
    known = {*TABLES, *CLOSED_TABLES, *WRITE_ONLY, "chunk_readers"}
    assert names(full.database) - {"schema_version", "migration"} == known


def test_row_security_is_on_and_forced_on_every_table_with_what_is_secret(full: Full) -> None:
    with full.database.owner() as conn:
        rows = conn.execute(
            "select relname from pg_class where relnamespace = 'nw'::regnamespace and relkind = 'r'"
            " and relrowsecurity and relforcerowsecurity"
        ).fetchall()
    plain = {"generation", "run", "migration", "schema_version"}
    assert {row[0] for row in rows} == {*TABLES, *CLOSED_TABLES, *WRITE_ONLY} - plain


def test_without_a_token_no_table_has_a_row(full: Full) -> None:
    for table in TABLES:
        with full.database.owner() as conn:
            assert conn.execute(f"select count(*) from nw.{table}").fetchone()[0] > 0, table
        with full.database.reader() as conn:
            assert conn.execute(f"select count(*) from nw.{table}").fetchone() == (0,), table
            for value in ("", "{}"):
                with conn.transaction():
                    conn.execute("select set_config('nw.ids', %s, true)", [value])
                    assert conn.execute(f"select count(*) from nw.{table}").fetchone() == (0,), table


def test_with_a_token_each_table_shows_that_askers_rows(full: Full) -> None:
    both = Token(USERS[1], "other", frozenset({USERS[1], EVERYONE}), frozenset({USERS[1], EVERYONE}))
    for table in TABLES:
        counted = []
        for token in (WHO, both):
            with full.database.reader() as conn, reading(conn, token):
                counted.append(conn.execute(f"select count(*) from nw.{table}").fetchone()[0])
        with full.database.owner() as conn:
            total = conn.execute(f"select count(*) from nw.{table}").fetchone()[0]
        assert counted == [total if table == "share" else total // 2, total], table


def test_token_vectors_are_read_as_the_text_is_and_in_their_own_form_only(full: Full) -> None:
    both = Token(USERS[1], "other", frozenset({USERS[1], EVERYONE}), frozenset({USERS[1], EVERYONE}))
    with full.database.owner() as conn:
        every = [row[0] for row in conn.execute("select chunk_id from nw.note_chunk order by 1")]
    for token, theirs in ((WHO, every[:1]), (both, every)):
        with full.database.reader() as conn, reading(conn, token) as held:
            assert held.token_vectors(every) == dict.fromkeys(theirs, b"\x0f")
            assert [one.chunk_id for one in held.passages(every)] == theirs
    with full.database.owner() as conn:
        conn.execute("update nw.token_vectors set form = form + 1")
    with full.database.reader() as conn, reading(conn, both) as held:
        assert held.token_vectors(every) == {}


def test_the_reader_cannot_list_what_is_not_its_own(full: Full) -> None:
    for table in (*CLOSED_TABLES, *WRITE_ONLY, "chunk_readers"):
        with pytest.raises(NotPermitted), full.database.reader() as conn, reading(conn, WHO):
            conn.execute(f"select * from nw.{table}")


def test_the_reader_can_write_nothing(full: Full) -> None:
    for table in (*TABLES, *CLOSED_TABLES):
        with full.database.owner() as conn:
            last = conn.execute(
                "select attname from pg_attribute where attrelid = %s::regclass and attnum > 1"
                " order by attnum limit 1",
                [f"nw.{table}"],
            ).fetchone()
        verbs = ["insert into nw.{} default values", "delete from nw.{}", "truncate nw.{}"]
        for verb in [*verbs, "update nw.{} set " + f"{last[0]} = default" if last else verbs[0]]:
            with pytest.raises(NotPermitted), full.database.reader() as conn:
                conn.execute(verb.format(table))


def test_the_reader_writes_audit_usage_and_requests_of_notes_alone(full: Full) -> None:
    with full.database.reader() as conn:
        conn.execute("insert into nw.audit (actor, asker, action) values ('a', 'b', 'ask')")
        conn.execute("insert into nw.usage (asker, model) values ('a', 'm')")
        conn.execute("insert into nw.request (kind, arguments) values ('note', '{\"note_id\": 1}')")
    for sql in (
        "insert into nw.request (kind) values ('sync')",
        "insert into nw.request (kind) values ('confirm-deletes')",
        "insert into nw.request (kind, arguments, ended_at) values ('note', '{\"note_id\": 2}', now())",
        'insert into nw.request (kind, arguments) values (\'note\', \'{"note_id": 2, "path": "a"}\')',
        "update nw.audit set actor = 'x'",
        "delete from nw.audit",
        "delete from nw.request",
    ):
        with pytest.raises(NotPermitted), full.database.reader() as conn:
            conn.execute(sql)


def test_the_reader_cannot_make_tables_of_vectors(full: Full) -> None:
    with pytest.raises(NotPermitted), full.database.reader() as conn:
        conn.execute("select nw.add_generation('a', 'b', 'c', 8, 'building')")


def test_the_last_read_of_text_decides_again(full: Full) -> None:
    with full.database.owner() as conn:
        chunks = [row[0] for row in conn.execute("select chunk_id from nw.note_chunk order by 1")]
        notes = [row[0] for row in conn.execute("select note_id from nw.note order by 1")]
        everything = conn.execute("select array_agg(audience_id)::text from nw.audience").fetchone()[0]
    with full.database.reader() as conn, reading(conn, WHO) as session:
        assert [one.chunk_id for one in session.passages(chunks)] == chunks[:1]
        conn.execute("select set_config('nw.ids', %s, true)", [everything])
        assert [one.chunk_id for one in session.passages(chunks)] == chunks[:1]
        assert (session.pieces(notes[1]), session.head(notes[1])) == ([], None)
        assert [piece.content for piece in session.pieces(notes[0])] == ["some words of open/a.md"]


def test_both_legs_and_every_list_stay_inside_the_reading(full: Full) -> None:
    with full.database.owner() as conn:
        chunks = [row[0] for row in conn.execute("select chunk_id from nw.note_chunk order by 1")]
    vector = np.full(8, 8**-0.5, dtype=np.float32)
    with full.database.reader() as conn, reading(conn, WHO) as session:
        ids = session.term_ids(["word", "shut/b.md", "unknown"])
        assert set(ids) == {"word", "shut/b.md"}
        assert list(session.postings(list(ids.values())).chunk_ids) == chunks[:1]
        assert [row[0] for row in session.nearest(vector, 10)] == chunks[:1]
        assert [row[0] for row in session.nearest_among(vector, chunks, 10)] == chunks[:1]
        assert list(session.vectors(chunks)) == chunks[:1]
        assert list(session.notes_of(chunks)) == chunks[:1]
        assert session.any_chunks(10) == session.matching([], []) == chunks[:1]
        assert session.matching(["words of shut"], []) == []
        assert (session.sizes(), session.count_notes(), session.folders()) == ((1, 2), 1, [b"open"])
        assert session.notes_at([b"open/a.md", b"shut/b.md"]) == session.notes()
        assert session.as_of() is not None


def test_a_reading_ends_with_its_transaction(full: Full) -> None:
    with full.database.reader() as conn:
        with reading(conn, WHO) as session:
            assert session.notes()
        assert conn.execute("select count(*) from nw.note").fetchone() == (0,)
        assert conn.execute("select * from app.readable_ids()").fetchall() == []
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), reading(conn, WHO):
            conn.execute("insert into nw.audit (actor, asker, action) values ('a', 'b', 'ask')")


def test_a_reading_sees_one_snapshot(full: Full) -> None:
    with full.database.reader() as conn, reading(conn, WHO) as session:
        before = session.notes()
        with full.database.owner() as owner:
            owner.execute("delete from nw.note")
        assert session.notes() == before


SCOPES = [
    (Scope(), {b"hr", b"hr-old", b"hr/deep", b"", b"HR"}),
    (Scope(folders=(b"hr",)), {b"hr", b"hr/deep"}),
    (Scope(folders=(b"",)), {b"hr", b"hr-old", b"hr/deep", b"", b"HR"}),
    (Scope(folders=(b"hr/deep", b"HR")), {b"hr/deep", b"HR"}),
    (Scope(folders=(b"h", b"hr/", b"secret", b"%")), set()),
    (Scope(folders=()), set()),
    (Scope(shares=()), set()),
    (Scope(shares=("other",)), set()),
    (Scope(shares=("notes",), folders=(b"hr",)), {b"hr", b"hr/deep"}),
]


def test_narrowing_only_takes_away(index: Index) -> None:
    ids = index.fill(everyone("share"), [everyone("note")] * 5 + [only(USERS[1], "note")])
    places = [b"hr", b"hr-old", b"hr/deep", b"", b"HR", b"secret"]
    with index.database.owner() as conn:
        for audience_id, folder in zip(ids, places, strict=True):
            conn.execute("update nw.audience set folder = %s where audience_id = %s", [folder, audience_id])
    for scope, folders in SCOPES:
        with index.database.reader() as conn, reading(conn, WHO, scope) as session:
            assert set(session.folders()) == folders, scope
            session.narrow(Scope())
            session.narrow(Scope(folders=(b"",), shares=("notes",)))
            assert set(session.folders()) == folders, scope


def test_a_big_token_and_a_big_list_decide_right(index: Index) -> None:
    groups = [Sid(f"S-1-5-21-7-7-7-{number}") for number in range(2_000)]
    entries = [Entry("deny" if n % 2 else "allow", sid, "g") for n, sid in enumerate(groups[:1_000])]
    last = [Entry("allow", groups[1_500], "last")]
    meaning = Meaning("host", "x", "note")
    big = (compile_entries([*entries, *last], meaning, 1, raw=b"big"),)
    first, second = index.fill(everyone("share"), [big, only(groups[1_999], "note")])
    sids = frozenset({*groups[1_000:], EVERYONE, AUTHENTICATED, NETWORK})
    assert index.seen(Token(groups[1_999], "big", sids, sids)) == {first, second}
    more = sids | {groups[1]}
    assert index.seen(Token(groups[1_999], "big", more, more)) == {second}
