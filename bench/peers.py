"""What others would use, on the same vectors, words and rights: each answers `nearest` or `by_words`.

Those not installed are left out and named; the others of them are no dependencies of ours:
`.venv/bin/pip install --group bench`.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from answerer.keyword import K1, B
from bench.asking import TOP
from bench.load import sid_of
from bench.world import DIMENSION, VISIBILITIES, Floats, World

Nearest = Callable[[float, Floats], list[int]]


@dataclass(frozen=True)
class Peer:
    """A way to search; `nearest` takes a visibility and a question's vector, gives places of chunks."""

    name: str
    nearest: Nearest


def missing() -> list[str]:
    """Return the packages of the bench group that are not installed."""
    return [name for name in ("lancedb", "chromadb", "faiss", "bm25s") if not importlib.util.find_spec(name)]


@contextmanager
def vector_peers(conn: psycopg.Connection[Any], world: World, generation: int) -> Iterator[list[Peer]]:
    """Yield the peers that search by vectors; `conn` is a superuser's, and the tables go afterwards."""
    absent = missing()
    with tempfile.TemporaryDirectory(prefix="notewarden-bench-") as folder:
        peers = [*_pgvector(conn, generation)]
        if "faiss" not in absent:
            peers.append(_faiss(world))
        if "lancedb" not in absent:
            peers.append(_lancedb(world, Path(folder)))
        if "chromadb" not in absent:
            peers.append(_chroma(world))
        yield peers
        conn.execute("drop table bench_peer")


def _pgvector(conn: psycopg.Connection[Any], generation: int) -> list[Peer]:
    """The tutorial's table: a readers array beside the vector, one graph index, one query."""
    conn.execute("set maintenance_work_mem = '512MB'")
    query = (
        "create table bench_peer as select chunk_id, readers, embedding from {}"
        " join nw.audience using (audience_id)"
    )
    conn.execute(sql.SQL(query).format(sql.Identifier("nw", f"vectors_{generation}")))
    conn.execute("create index on bench_peer using hnsw (embedding vector_cosine_ops)")
    conn.execute("create index on bench_peer using gin (readers)")
    conn.execute("analyze bench_peer")

    def ask(visibility: float, vector: Floats, iterative: str) -> list[int]:
        with conn.transaction():
            conn.execute("select set_config('hnsw.iterative_scan', %s, true)", [iterative])
            rows = conn.execute(
                "select chunk_id from bench_peer where readers && %s order by embedding <=> %s limit %s",
                [[sid_of(visibility)], vector, TOP],
            ).fetchall()
        return [int(row[0]) - 1 for row in rows]

    return [
        Peer("tutorial SQL over HNSW", lambda v, q: ask(v, q, "off")),
        Peer("pgvector, strict_order", lambda v, q: ask(v, q, "strict_order")),
        Peer("pgvector, relaxed_order", lambda v, q: ask(v, q, "relaxed_order")),
    ]


def _faiss(world: World) -> Peer:
    import faiss

    index = faiss.IndexFlatIP(DIMENSION)
    index.add(world.vectors)
    bitmaps = {v: np.packbits(world.readable(v), bitorder="little") for v in VISIBILITIES}

    def ask(visibility: float, vector: Floats) -> list[int]:
        chosen = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(bitmaps[visibility]))
        return [int(at) for at in index.search(vector[None, :], TOP, params=chosen)[1][0] if at >= 0]

    return Peer("faiss flat, id bitmap", ask)


def _lancedb(world: World, folder: Path) -> Peer:
    import lancedb
    import pyarrow as pa

    readers = [[sid_of(v) for v in VISIBILITIES if world.seen[v][at]] for at in range(world.n_audiences)]
    table = pa.table(
        {
            "chunk": np.arange(world.n_chunks),
            "readers": pa.array([readers[at] for at in world.audience], pa.list_(pa.string())),
            "vector": pa.FixedSizeListArray.from_arrays(world.vectors.ravel(), DIMENSION),
        }
    )
    held = lancedb.connect(folder).create_table("chunks", table)
    held.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_HNSW_SQ")

    def ask(visibility: float, vector: Floats) -> list[int]:
        found = held.search(vector).distance_type("cosine").select(["chunk", "_distance"]).limit(TOP)
        found = found.where(f"array_has(readers, '{sid_of(visibility)}')", prefilter=True)
        return [int(row["chunk"]) for row in found.to_list()]

    return Peer("LanceDB, metadata filter", ask)


def _chroma(world: World) -> Peer:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    held = client.create_collection("chunks", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    flags = [{f"v{v}": bool(world.seen[v][at]) for v in VISIBILITIES} for at in range(world.n_audiences)]
    for start in range(0, world.n_chunks, 5_000):
        rows = range(start, min(start + 5_000, world.n_chunks))
        held.add(
            ids=[str(at) for at in rows],
            embeddings=world.vectors[start : start + 5_000],
            metadatas=[flags[world.audience[at]] for at in rows],
        )

    def ask(visibility: float, vector: Floats) -> list[int]:
        found = held.query(
            query_embeddings=[vector], n_results=TOP, where={f"v{visibility}": True}, include=[]
        )
        return [int(at) for at in found["ids"][0]]

    return Peer("Chroma, metadata filter", ask)


ByWords = Callable[[float, str], list[int]]


@dataclass(frozen=True)
class WordPeer:
    """A way to search by words."""

    name: str
    by_words: ByWords


def word_peers(conn: psycopg.Connection[Any], world: World) -> list[WordPeer]:
    """Return the peers that search by words; `conn` is a superuser's."""
    peers = [_ts_rank(conn)]
    if "bm25s" not in missing():
        peers.append(_bm25s(world))
    return peers


def _ts_rank(conn: psycopg.Connection[Any]) -> WordPeer:
    conn.execute(
        "create table bench_words as select chunk_id, a.readers, to_tsvector('english', content) as words"
        " from nw.note_chunk join nw.audience a using (audience_id)"
    )
    conn.execute("create index on bench_words using gin (words)")
    conn.execute("analyze bench_words")

    def ask(visibility: float, words: str) -> list[int]:
        query = " | ".join(words.split())
        rows = conn.execute(
            "select chunk_id from bench_words, to_tsquery('english', %s) q where words @@ q and readers && %s"
            " order by ts_rank(words, q) desc, chunk_id limit %s",
            [query, [sid_of(visibility)], TOP],
        ).fetchall()
        return [int(row[0]) - 1 for row in rows]

    return WordPeer("ts_rank over GIN", ask)


def _bm25s(world: World) -> WordPeer:
    """Scores with the whole collection's statistics and masks afterwards: hidden notes move them."""
    import bm25s

    names, numbered = np.unique(np.array(world.stems), return_inverse=True)
    tokens = bm25s.tokenization.Tokenized(
        ids=numbered[world.words].tolist(), vocab={str(name): at for at, name in enumerate(names)}
    )
    held = bm25s.BM25(k1=K1, b=B, method="lucene")
    held.index(tokens, show_progress=False)
    stem = dict(zip(world.vocabulary, world.stems, strict=True))
    masks = {v: world.readable(v).astype(np.float32) for v in VISIBILITIES}

    def ask(visibility: float, words: str) -> list[int]:
        scores = held.get_scores([stem[word] for word in words.split()], weight_mask=masks[visibility])
        best = np.argpartition(-scores, TOP)[:TOP]
        return [int(at) for at in best[np.lexsort((best, -scores[best]))] if scores[at] > 0]

    return WordPeer("bm25s with a mask", ask)


def dump(rows: object, file: Path) -> None:
    """Write figures as JSON, for the plots."""
    file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
