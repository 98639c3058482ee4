"""Search by visibility: recall against exact, latency by leg, what hidden notes change, and the peers beside.

`python -m bench search [--chunks N] [--questions N] [--peers] [--plots FOLDER]`
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from rank_bm25 import BM25Okapi

from answerer.keyword import K1, B
from bench import peers as others
from bench.asking import TOP, Asking, Question, quantiles, questions, recall, timed, truth
from bench.load import add_hidden, load
from bench.plots import plot
from bench.world import PER_NOTE, VISIBILITIES, World, make_world
from db import migrate, vectorindex
from db.audiences import AudienceStore
from db.bootstrap import ADMIN
from db.notes import About, FileState, Guard, NewChunk, NewNote, NoteStore
from db.pool import OWNER, READER, Database
from db.server import EmbeddedServer, ServerHandle
from notewarden.terms import count_terms

KINDS = ("rare", "middle", "mixed", "common")
TIMED = ("vector", *KINDS, "hybrid", "hybrid common")
EMBEDDER = "bench"


@dataclass(frozen=True)
class Stage:
    """A loaded world and the ways into it."""

    world: World
    generation: int
    server: ServerHandle
    asking: Asking

    def admin(self) -> psycopg.Connection[Any]:
        """Return a superuser's connection."""
        conn = psycopg.connect(self.server.dsn(ADMIN, "notewarden"), autocommit=True)
        register_vector(conn)
        return conn


def main(arguments: Sequence[str]) -> None:
    """Print the tables; with `--plots` also write the plots."""
    parser = argparse.ArgumentParser(prog="bench search", description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--hidden", type=int, default=50_000)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--plots", type=Path)
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="notewarden-bench-"))
    try:
        with EmbeddedServer.start(folder / "state") as server:
            _run(options, server)
    finally:
        shutil.rmtree(folder)


def _run(options: argparse.Namespace, server: ServerHandle) -> None:
    world = make_world(options.chunks)
    print(f"{world.n_chunks:,} chunks of {world.note.max() + 1:,} notes in {world.n_audiences:,} audiences")
    with psycopg.connect(server.dsn(OWNER), autocommit=True) as owner:
        migrate.migrate(owner)
    with Database.from_dsns(server.dsn(OWNER), server.dsn(READER)) as database:
        with psycopg.connect(server.dsn(ADMIN, "notewarden"), autocommit=True) as admin:
            generation = load(admin, world, EMBEDDER)
        with database.owner() as owner:
            _, took = timed(lambda: vectorindex.build(owner, generation, world.vectors.shape[1]))
            print(f"  index of vectors: {took / 1000:.1f} s")
        stage = Stage(world, generation, server, Asking(database))
        asked = {v: questions(world, v, options.questions) for v in VISIBILITIES}
        figures = [_by_visibility(stage, asked, "notewarden")]
        _overlap(stage, asked)
        if options.peers:
            figures += _peers(stage, asked)
        if options.plots:
            plot(figures, options.plots)
            others.dump(figures, options.plots / "search-figures.json")
        if options.hidden:
            _hidden(stage, asked, options.hidden, figures[0])
        _replace(stage)  # last: the new chunks have other ids than the world's


def _by_visibility(stage: Stage, asked: dict[float, list[Question]], title: str) -> dict[str, Any]:
    """Print and return recall and latency of our search."""
    limit = stage.asking.options.exact_limit
    print(f"\n{title}: p50 and p95 in ms, from the token on; recall@10 of the vector leg against exact")
    print(
        f"{'reads':>6} {'leg':>6} {'near readable':>13} {'near hidden':>11} {'vector':>13} "
        + " ".join(f"{kind:>13}" for kind in KINDS)
        + f" {'hybrid mixed':>13} {'hybrid common':>13}"
    )
    rows, p95s = [], {}
    for visibility, some in asked.items():
        readable = int(stage.world.readable(visibility).sum())
        row = _measure(stage, visibility, some)
        leg = "exact" if readable <= limit else "index"
        hidden = f"{row['near_hidden']:11.3f}" if row["near_hidden"] is not None else f"{'-':>11}"
        times = " ".join(
            quantiles(row["times"][name]) for name in ("vector", *KINDS, "hybrid", "hybrid common")
        )
        print(f"{visibility:6.1%} {leg:>6} {row['near_readable']:13.3f} {hidden} {times}", flush=True)
        vector = row["times"]["vector"]
        rows.append([visibility, _recall_of(row), float(np.median(vector)), float(np.quantile(vector, 0.95))])
        p95s[visibility] = {name: float(np.quantile(times, 0.95)) for name, times in row["times"].items()}
    return {"name": "notewarden", "rows": rows, "p95s": p95s}


def _measure(stage: Stage, visibility: float, some: list[Question]) -> dict[str, Any]:
    asking, times = stage.asking, {name: [] for name in TIMED}
    recalls: dict[bool, list[float]] = {True: [], False: []}
    asking.hybrid(visibility, some[0].vector, some[0].words["mixed"])
    for one in some:
        found, took = timed(lambda one=one: asking.nearest(visibility, one.vector))
        wanted = truth(stage.world, visibility, one.vector)
        if len(found) != len(wanted):
            raise SystemExit(f"{len(found)} rows instead of {len(wanted)} for who reads {visibility:.1%}")
        recalls[one.readable].append(recall(found, wanted))
        times["vector"].append(took)
        for kind in KINDS:
            times[kind].append(
                timed(lambda one=one, kind=kind: asking.by_words(visibility, one.words[kind]))[1]
            )
        for name, kind in (("hybrid", "mixed"), ("hybrid common", "common")):
            work = lambda one=one, kind=kind: asking.hybrid(visibility, one.vector, one.words[kind])  # noqa: E731
            times[name].append(timed(work)[1])
    means = {side: float(np.mean(values)) if values else None for side, values in recalls.items()}
    return {"near_readable": means[True], "near_hidden": means[False], "times": times}


def _recall_of(row: dict[str, Any]) -> float:
    return float(np.mean([one for one in (row["near_readable"], row["near_hidden"]) if one is not None]))


def _overlap(stage: Stage, asked: dict[float, list[Question]]) -> None:
    """Compare the keyword leg's top ten with rank_bm25 over the asker's own chunks."""
    print(
        "\nkeyword leg: part of the top ten that rank_bm25 over the asker's own chunks has too (ties count)"
    )
    print(f"{'reads':>6} " + " ".join(f"{kind:>8}" for kind in KINDS))
    for visibility, some in asked.items():
        places = np.flatnonzero(stage.world.readable(visibility))
        scorer, stem = _okapi(stage.world, places)
        cells = []
        for kind in KINDS:
            values = []
            for one in some[:10]:
                scores = scorer.get_scores([stem[word] for word in one.words[kind].split()])
                found = np.searchsorted(places, stage.asking.by_words(visibility, one.words[kind]))
                tenth = np.sort(scores)[::-1][min(TOP, len(places)) - 1]
                wanted = min(TOP, int((scores > 0).sum()))
                values.append(float((scores[found] >= tenth - 1e-9).sum()) / wanted if wanted else 1.0)
            cells.append(f"{np.mean(values):8.3f}")
        print(f"{visibility:6.1%} " + " ".join(cells), flush=True)


def _okapi(world: World, places: np.ndarray) -> tuple[BM25Okapi, dict[str, str]]:
    stems = np.array(world.stems, dtype=object)[world.words[places]]
    scorer = BM25Okapi(stems.tolist(), k1=K1, b=B)
    frequency: dict[str, int] = {}
    for document in scorer.doc_freqs:
        for term in document:
            frequency[term] = frequency.get(term, 0) + 1
    n = len(places)
    scorer.idf = {term: float(np.log(1 + (n - df + 0.5) / (df + 0.5))) for term, df in frequency.items()}
    return scorer, dict(zip(world.vocabulary, world.stems, strict=True))


def _replace(stage: Stage, times: int = 40) -> None:
    """Time one note of six chunks in place of another, as the indexer stores it, all indexes there."""
    world, chance = stage.world, np.random.default_rng(5)
    took = []
    with stage.asking.database.owner() as conn:
        store = NoteStore(conn, 1, AudienceStore(conn, 1))
        whole = np.flatnonzero(np.bincount(world.note) == PER_NOTE)
        for note in chance.choice(whole, times, replace=False):
            places = np.flatnonzero(world.note == note)
            new = _new_note(conn, world, int(note) + 1, places, chance)
            took.append(timed(lambda new=new: store.save(stage.generation, new))[1])
    print(f"\nreplacing a note of six chunks: p50 and p95 {quantiles(took[5:])} ms")


def _new_note(
    conn: psycopg.Connection[Any], world: World, note_id: int, places: np.ndarray, chance: np.random.Generator
) -> NewNote:
    row = conn.execute(
        "select path, acl_ids from nw.note join nw.audience using (audience_id) where note_id = %s", [note_id]
    ).fetchone()
    assert row is not None
    digest = hashlib.sha256(str(time.time_ns()).encode()).digest()
    chunks = []
    for seq, at in enumerate(places):
        text = " ".join(world.vocabulary[word] for word in chance.permutation(world.words[at]))
        key = hashlib.sha256(text.encode()).digest()
        span = (seq * 10 + 1, seq * 10 + 10), (seq * 700, seq * 700 + len(text))
        terms = count_terms(text, "en")
        chunks.append(NewChunk(seq, ("Note",), *span, text, key, terms, world.vectors[at]))
    state = FileState(digest, 5_000, datetime.now(UTC), b"hint", hint_trusted=True)
    about = About("Note", "utf-8", "en")
    return NewNote(bytes(row[0]), Guard((), tuple(row[1])), state, about, tuple(chunks), note_id)


def _peers(stage: Stage, asked: dict[float, list[Question]]) -> list[dict[str, Any]]:
    absent = others.missing()
    if absent:
        print(f"\nnot installed, so left out: {', '.join(absent)} (pip install --group bench)")
    print(f"\n{'peer':28} " + " ".join(f"{v:>22.1%}" for v in VISIBILITIES) + "   recall@10, p50, p95 ms")
    figures = []
    with stage.admin() as conn:
        with others.vector_peers(conn, stage.world, stage.generation) as peers:
            ours = others.Peer("notewarden", stage.asking.nearest)
            for peer in (ours, *peers):
                rows = [_peer_row(stage.world, peer, v, some) for v, some in asked.items()]
                cells = " ".join(f"{r:8.3f} {p50:6.1f} {p95:6.1f}" for _, r, p50, p95 in rows)
                print(f"{peer.name:28} {cells}", flush=True)
                if peer is not ours:
                    figures.append({"name": peer.name, "rows": rows})
        print(f"\n{'by words (mixed)':28} p50 and p95 ms, by visibility")
        ours_by_words = others.WordPeer("notewarden", stage.asking.by_words)
        for other in (ours_by_words, *others.word_peers(conn, stage.world)):
            cells = []
            for v, some in asked.items():
                work = [timed(lambda o=other, q=q, v=v: o.by_words(v, q.words["mixed"]))[1] for q in some]
                cells.append(quantiles(work))
            print(f"{other.name:28} {'  '.join(cells)}", flush=True)
    return figures


def _peer_row(world: World, peer: others.Peer, visibility: float, some: list[Question]) -> list[float]:
    peer.nearest(visibility, some[0].vector)
    times, recalls = [], []
    for one in some:
        found, took = timed(lambda one=one: peer.nearest(visibility, one.vector))
        times.append(took)
        recalls.append(recall(found, truth(world, visibility, one.vector)))
    return [visibility, float(np.mean(recalls)), float(np.median(times)), float(np.quantile(times, 0.95))]


def _hidden(stage: Stage, asked: dict[float, list[Question]], count: int, without: dict[str, Any]) -> None:
    """Add chunks that no asker may read, and compare what each is shown before and after."""
    asking = stage.asking

    def everything() -> dict[tuple[float, int, str], list[int]]:
        found = {}
        for v, some in asked.items():
            for number, one in enumerate(some[:12]):
                found[v, number, "vector"] = asking.nearest(v, one.vector)
                for kind in KINDS:
                    found[v, number, kind] = asking.by_words(v, one.words[kind])
        return found

    before = everything()
    with stage.admin() as conn:
        add_hidden(conn, stage.world, make_world(count, seed=2), stage.generation)
    after = everything()
    print(f"\n{count:,} chunks added that nobody here may read:")
    for v in asked:
        words = [key for key in before if key[0] == v and key[2] != "vector"]
        vectors = [key for key in before if key[0] == v and key[2] == "vector"]
        same = sum(before[key] == after[key] for key in words)
        near = sum(before[key] == after[key] for key in vectors)
        print(f"{v:6.1%} keyword lists the same {same}/{len(words)}, vector lists {near}/{len(vectors)}")
    figures = _by_visibility(stage, asked, f"with {count:,} hidden chunks more")
    print("\np95 with them, as many times what it was without")
    print(f"{'reads':>6} " + " ".join(f"{name:>13}" for name in TIMED))
    for v, p95s in figures["p95s"].items():
        print(f"{v:6.1%} " + " ".join(f"{p95s[name] / without['p95s'][v][name]:13.2f}" for name in TIMED))
