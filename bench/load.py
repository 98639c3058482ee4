# ruff: noqa: E501, RUF005
"""Loads a made-up world straight into the real schema: COPY in binary form, indexes and checks made after."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from bench.world import DIMENSION, VISIBILITIES, WORDS, World

_SEND = 1 << 22
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
EXTRA_SIDS = 29


def sid_of(visibility: float) -> str:
    """The principal that lets its bearer read exactly the audiences of a visibility."""
    return f"S-1-5-21-1-2-3-{int(visibility * 100_000) + 10_000}"


def load(conn: psycopg.Connection[Any], world: World, embedder: str) -> int:
    """Fill the empty schema as a superuser; returns the generation. Prints how long each part took."""
    conn.execute("set maintenance_work_mem = '512MB'")
    conn.execute("set session_replication_role = replica")  # keys are checked when they are made again
    conn.execute("set role notewarden")
    row = conn.execute(
        "select nw.add_generation('bench', 'bench', %s, %s, 'serving')", [embedder, DIMENSION]
    ).fetchone()
    conn.execute("reset role")
    assert row is not None
    generation = int(row[0])
    with _timed("share, lists, audiences"):
        _audiences(conn, world)
    with _timed("notes and chunks"):
        lengths = _chunks(conn, world, generation, 0, 0)
    with _timed("vectors"):
        _vectors(conn, generation, world.vectors, world.audience, 0)
    with _without_indexes(conn, "nw.posting"), _timed("postings"):
        _postings(conn, world, lengths, 0)
    conn.execute("set session_replication_role = origin")
    _count(conn, generation)
    with _timed("vacuum"):
        conn.execute("vacuum analyze")
    return generation


def add_hidden(conn: psycopg.Connection[Any], world: World, more: World, generation: int) -> None:
    """Add the chunks of `more` to the loaded `world` where no asker of ours may read them."""
    conn.execute("set session_replication_role = replica")
    audience = _value(
        conn,
        "insert into nw.audience (share_id, folder, acl_ids, readers)"
        " select 1, 'hidden', array_agg(acl_id), '{}' from nw.acl where owner = 'hidden' returning audience_id",
    )
    first_note, first_chunk = int(world.note.max()) + 1, world.n_chunks
    lengths = _chunks(conn, more, generation, first_note, first_chunk, audience)
    spread = np.full(more.n_chunks, audience)
    _vectors(conn, generation, more.vectors, spread - 1, first_chunk)
    _postings(conn, more, lengths, first_chunk, audience)
    conn.execute("set session_replication_role = origin")
    _count(conn, generation)
    conn.execute("vacuum analyze")


def _audiences(conn: psycopg.Connection[Any], world: World) -> None:
    conn.execute(
        "insert into nw.share (name, root, swept_at, polled_at, swept_in)"
        " values ('bench', '/', now(), now(), app.place())"
    )
    lists: dict[tuple[Any, ...], int] = {}

    def list_id(role: str, allow: Iterable[str], deny: Iterable[str] = (), owner: str = "") -> int:
        key = (role, tuple(sorted(set(allow))), tuple(sorted(set(deny))))
        if key not in lists:
            lists[key] = len(lists) + 1
            conn.execute(
                "insert into nw.acl (key, server, model, role, status, raw, owner) values (%s, 's', 'nt', %s,"
                " 'ok', '', %s)",
                [hashlib.sha256(repr(key).encode()).digest(), role, owner],
            )
            conn.execute(
                "insert into nw.acl_clause values (%s, 1, %s, %s)",
                [lists[key], list(key[1]), list(key[2])],
            )
        return lists[key]

    with conn.transaction():
        conn.execute("update nw.share set acl_ids = %s", [[list_id("share", ["S-1-1-0"])]])
        rows = []
        for at in range(world.n_audiences):
            allow = {f"S-1-5-21-9-9-9-{group}" for group in world.groups[at]}
            allow |= {sid_of(v) for v in VISIBILITIES if world.seen[v][at]}
            deny = [f"S-1-5-21-8-8-8-{world.groups[at][0]}"] if world.groups[at][0] % 7 == 0 else []
            parent = list_id("parent", ["S-1-1-0", f"S-1-5-21-7-7-7-{world.department[at]}"])
            rows.append((world.department[at], at, sorted([parent, list_id("note", allow, deny)]), allow))
        list_id("note", ["S-1-5-21-6-6-6-6"], owner="hidden")
        with conn.cursor() as cursor:
            cursor.executemany(
                "insert into nw.audience (share_id, folder, acl_ids, readers) values (1, %s, %s, %s)",
                [
                    (f"department{d:02d}/folder{at:05d}".encode(), acl_ids, sorted(allow))
                    for d, at, acl_ids, allow in rows
                ],
            )
        conn.execute(
            "insert into nw.principal (sid) select distinct sid from nw.acl_clause, unnest(allow || deny) sid"
        )


def _chunks(
    conn: psycopg.Connection[Any],
    world: World,
    generation: int,
    first_note: int,
    first_chunk: int,
    audience: int | None = None,
) -> NDArray[np.int64]:
    starts = np.flatnonzero(np.diff(world.note, prepend=-1))
    where = world.audience + 1 if audience is None else np.full(world.n_chunks, audience)
    folder = "hidden" if audience is not None else "notes"
    with conn.cursor().copy(
        "copy nw.note (note_id, share_id, path, audience_id, content_hash, size, modified_at, hint, own_acl_ids,"
        " title, encoding, language) from stdin"
    ) as copy:
        for number, start in enumerate(starts, first_note + 1):
            path = f"{folder}/{where[start]}/note{number:07d}.md".encode()
            digest = hashlib.sha256(path).digest()
            copy.write_row(
                (
                    number,
                    1,
                    path,
                    int(where[start]),
                    digest,
                    5000,
                    "2026-01-01",
                    digest,
                    [1],
                    "Note",
                    "utf-8",
                    "en",
                )
            )
    lengths = np.full(world.n_chunks, WORDS)
    texts = world.texts()
    with conn.cursor().copy(
        "copy nw.note_chunk (chunk_id, generation_id, note_id, audience_id, seq, heading, first_line, last_line,"
        " start_byte, end_byte, content, embed_key, length) from stdin"
    ) as copy:
        for at, text in enumerate(texts):
            seq = at - int(starts[world.note[at]])
            chunk_id = first_chunk + at + 1
            note_id = first_note + int(world.note[at]) + 1
            row = (chunk_id, generation, note_id, int(where[at]), seq, ["Note", f"Part {seq}"], seq * 10 + 1)
            key = hashlib.sha256(text.encode()).digest()
            copy.write_row((*row, seq * 10 + 10, seq * 700, seq * 700 + len(text), text, key, WORDS))
    conn.execute("select setval('nw.note_note_id_seq', (select max(note_id) from nw.note))")
    conn.execute("select setval('nw.note_chunk_chunk_id_seq', (select max(chunk_id) from nw.note_chunk))")
    return lengths


def _vectors(
    conn: psycopg.Connection[Any],
    generation: int,
    vectors: NDArray[np.float32],
    audience: NDArray[np.int64],
    first_chunk: int,
) -> None:
    form = np.dtype(
        [("n", ">i2"), ("l1", ">i4"), ("chunk", ">i8"), ("l2", ">i4"), ("audience", ">i4"), ("l3", ">i4")]
        + [("dim", ">i2"), ("unused", ">i2"), ("values", ">f4", (DIMENSION,))]
    )
    with conn.cursor().copy(
        f"copy nw.vectors_{generation} (chunk_id, audience_id, embedding) from stdin (format binary)"  # type: ignore[arg-type]
    ) as copy:
        copy.write(_HEADER)
        for start in range(0, len(vectors), 5_000):
            part = vectors[start : start + 5_000]
            rows = np.zeros(len(part), dtype=form)
            rows["n"], rows["l1"], rows["l2"], rows["l3"] = 3, 8, 4, 4 + 4 * DIMENSION
            rows["chunk"] = np.arange(start, start + len(part)) + first_chunk + 1
            rows["audience"] = audience[start : start + len(part)] + 1
            rows["dim"], rows["values"] = DIMENSION, part
            copy.write(rows.tobytes())
        copy.write(_TRAILER)


def _postings(
    conn: psycopg.Connection[Any],
    world: World,
    lengths: NDArray[np.int64],
    first_chunk: int,
    audience: int | None = None,
) -> None:
    names, stem_of = np.unique(np.array(world.stems), return_inverse=True)
    conn.execute(
        "insert into nw.term (term) select unnest(%s::text[]) on conflict do nothing",
        [[f"~{name}" for name in names]],
    )
    known = dict(conn.execute("select term, term_id from nw.term").fetchall())
    ids = np.array([known[f"~{name}"] for name in names], dtype=np.int64)
    form = np.dtype(
        [("n", ">i2"), ("l1", ">i4"), ("term", ">i4"), ("l2", ">i4"), ("chunk", ">i8"), ("l3", ">i4")]
        + [("audience", ">i4"), ("l4", ">i4"), ("tf", ">i2"), ("l5", ">i4"), ("length", ">i2")]
    )
    with conn.cursor().copy(
        "copy nw.posting (term_id, chunk_id, audience_id, tf, length) from stdin (format binary)"
    ) as copy:
        copy.write(_HEADER)
        for start in range(0, world.n_chunks, 10_000):
            part = ids[stem_of[world.words[start : start + 10_000]]]
            packed = (np.arange(len(part))[:, None] << 32 | part).ravel()
            pairs, counts = np.unique(packed, return_counts=True)
            chunk = (pairs >> 32) + start
            rows = np.zeros(len(pairs), dtype=form)
            rows["n"], rows["l1"], rows["l2"], rows["l3"], rows["l4"], rows["l5"] = 5, 4, 8, 4, 2, 2
            rows["term"], rows["chunk"] = pairs & 0xFFFFFFFF, chunk + first_chunk + 1
            rows["audience"] = world.audience[chunk] + 1 if audience is None else audience
            rows["tf"], rows["length"] = counts, lengths[chunk]
            raw = rows.tobytes()
            for at in range(0, len(raw), _SEND):
                copy.write(raw[at : at + _SEND])
        copy.write(_TRAILER)


def _count(conn: psycopg.Connection[Any], generation: int) -> None:
    conn.execute("delete from nw.audience_size")
    conn.execute(
        "insert into nw.audience_size select %s, audience_id, count(*), sum(length) from nw.note_chunk group by 2",
        [generation],
    )


@contextmanager
def _without_indexes(conn: psycopg.Connection[Any], table: str) -> Iterator[None]:
    """Drop a table's indexes and foreign keys and make them again: a sort costs less than a million inserts."""
    keys = conn.execute(
        "select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = %s::regclass and contype = 'f'",
        [table],
    ).fetchall()
    indexes = conn.execute(
        "select indexrelid::regclass::text, pg_get_indexdef(indexrelid) from pg_index where indrelid = %s::regclass",
        [table],
    ).fetchall()
    for name, _ in keys:
        conn.execute(f"alter table {table} drop constraint {name}")  # type: ignore[arg-type]
    for name, _ in indexes:
        conn.execute(f"drop index {name}")  # type: ignore[arg-type]
    yield
    with _timed(f"indexes of {table}"):
        for _, definition in indexes:
            conn.execute(definition)
        for name, definition in keys:
            conn.execute(f"alter table {table} add constraint {name} {definition}")  # type: ignore[arg-type]


def _value(conn: psycopg.Connection[Any], query: str) -> int:
    row = conn.execute(query).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return int(row[0])


@contextmanager
def _timed(what: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    print(f"  {what}: {time.perf_counter() - began:.1f} s", flush=True)
