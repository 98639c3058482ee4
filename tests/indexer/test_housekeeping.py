"""What the daemon does at night: rows compared and mended, old records dropped; permissions on a schedule."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from share_world import ShareWorld

from acl.sources.posix import PosixSource
from db import housekeeping
from indexer.reading import NoteReader


@pytest.fixture
def indexed(world: ShareWorld) -> ShareWorld:
    for number in range(4):
        world.write(f"f{number}/note.md")
    world.sync()
    world.whole()
    return world


def verify(world: ShareWorld) -> dict[str, int]:
    with world.database.owner() as conn:
        return housekeeping.verify(conn)


def vectors(world: ShareWorld) -> str:
    serving = world.one("select generation_id from nw.generation where state = 'serving'")
    return f"nw.vectors_{serving}"


def test_a_sound_index_has_nothing_wrong(indexed: ShareWorld) -> None:
    assert set(verify(indexed).values()) == {0}
    assert indexed.rows("select from nw.note where stale") == []


NOTE = "(select min(note_id) from nw.note)"
CHUNK = "(select min(chunk_id) from nw.note_chunk)"
AUDIENCE = "(select min(audience_id) from nw.audience)"


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("lost_chunks", f"delete from nw.note_chunk where note_id = {NOTE}"),
        ("broken_chunks", f"update nw.note_chunk set seq = 7 where note_id = {NOTE}"),
        ("lost_vectors", f"delete from {{vectors}} where chunk_id = {CHUNK}"),
        ("broken_chunks", f"update nw.posting set audience_id = audience_id + 1 where chunk_id = {CHUNK}"),
        ("sizes", f"update nw.audience_size set n_chunks = n_chunks + 5 where audience_id = {AUDIENCE}"),
    ],
)
def test_damage_is_found_and_the_next_poll_mends_it(indexed: ShareWorld, kind: str, damage: str) -> None:
    assert indexed.rows(damage.format(vectors=vectors(indexed)) + " returning 1")
    found = verify(indexed)
    assert found[kind] == 1, found
    indexed.sync()
    indexed.whole()
    assert set(verify(indexed).values()) == {0}


def test_old_records_go_and_young_ones_stay(indexed: ShareWorld) -> None:
    indexed.rows("update nw.run set started_at = started_at - interval '91 days' returning 1")
    indexed.sync()
    for age in (10, 500):
        then = f"now() - interval '{age} days'"
        for rows in (
            f"nw.audit (at, actor, asker, action) values ({then}, 'a', 'a', 'ask')",
            f"nw.usage (at, asker, model) values ({then} - interval '{age} days', 'a', 'm')",
            f"nw.request (kind, asked_at, ended_at) values ('sync', {then}, {then})",
        ):
            indexed.rows(f"insert into {rows} returning 1")
    keep = housekeeping.Keep(timedelta(days=90), timedelta(days=400), timedelta(days=800))
    with indexed.database.owner() as conn:
        done = housekeeping.tidy(conn, keep)
    assert (done["runs"], done["audit"], done["usage"], done["requests"]) == (1, 1, 1, 1)
    assert done["tables"] > 10
    assert indexed.one("select count(*) from nw.audit") == 1
    assert set(verify(indexed).values()) == {0}


def test_an_index_that_a_break_left_useless_is_built_again(indexed: ShareWorld) -> None:
    with indexed.database.owner() as conn:
        conn.execute("create table nw.twice as select 1 as n union all select 1")
        with pytest.raises(psycopg.errors.UniqueViolation):
            conn.execute("create unique index concurrently twice_n on nw.twice (n)")
        conn.execute("delete from nw.twice where ctid = (select min(ctid) from nw.twice)")
        keep = housekeeping.Keep(timedelta(days=90), timedelta(days=90), timedelta(days=90))
        assert housekeeping.tidy(conn, keep)["indexes_rebuilt"] == 1
        assert housekeeping.tidy(conn, keep)["indexes_rebuilt"] == 0


def test_a_poll_between_sweeps_asks_no_note_and_is_no_sweep(
    indexed: ShareWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where times cannot tell of permissions, each list must be asked for: on its own schedule."""
    asked: list[bytes] = []
    real = NoteReader.lists
    monkeypatch.setattr(PosixSource, "ctime_tells", property(lambda self: False))
    monkeypatch.setattr(
        NoteReader, "lists", lambda self, root, path: asked.append(path) or real(self, root, path)
    )
    swept = indexed.one("select swept_at from nw.share")
    indexed.sync(permissions=False)
    assert asked == []
    assert indexed.one("select swept_at from nw.share") == swept, "the age of permissions goes on"
    indexed.sync()
    assert len(asked) == 4
    assert indexed.one("select swept_at from nw.share") > swept
