"""A folder's ACL changes over 10,000 chunks: one audience row edited, or `readers` rewritten on each."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from db.audiences import AudienceStore
from db.pool import Connection, Database
from indexer.sync import Indexer
from notewarden.settings import load_settings

_CONFIG = """
state_dir = "{folder}/state"
[log]
level = "error"
[embedding]
provider = "hash"
dimension = 384
[[share]]
name = "notes"
path = "{folder}/notes"
[share.acl]
source = "posix"
[directory]
source = "nss"
"""

# What an index without audiences holds: the readers on every chunk, with the index that its search needs.
_NAIVE = (
    "create table nw.naive as select c.*, v.embedding, a.readers from nw.note_chunk c "
    "join nw.audience a using (audience_id) join nw.vectors_1 v using (chunk_id)",
    "create unique index on nw.naive (chunk_id)",
    "create index on nw.naive using gin (readers)",
    "create index on nw.naive using hnsw (embedding public.vector_cosine_ops)",
    "analyze nw.naive",
)
_REWRITE = "update nw.naive set readers = %s"


def main(arguments: list[str]) -> None:
    """Print what one change costs either way."""
    parser = argparse.ArgumentParser(prog="bench permissions")
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="notewarden-bench-") as folder:
        _measure(Path(folder), options.chunks, options.repeat)


def _measure(folder: Path, chunks: int, repeat: int) -> None:
    shut = folder / "notes" / "shut"
    shut.mkdir(parents=True)
    for number in range(chunks // 10):
        (shut / f"{number:05d}.md").write_text(_note(number), encoding="utf-8")
    config = folder / "config.toml"
    config.write_text(_CONFIG.format(folder=folder), encoding="utf-8")
    config.chmod(0o600)
    settings = load_settings(config)
    with Database.open(settings) as database:
        indexer = Indexer(settings, database)
        indexer.sync()
        with database.owner() as conn:
            covered = conn.execute(
                "select count(*), count(distinct audience_id) from nw.note_chunk"
            ).fetchone()
        print(f"{covered[0]} chunks of {chunks // 10} notes in {covered[1]} audience")  # type: ignore[index]
        polls, embedded = [], 0
        for turn in range(repeat):
            shut.chmod(0o700 if turn % 2 == 0 else 0o755)
            report = indexer.sync()
            assert report.shares[0].acl_changed == chunks // 10
            polls.append(report.seconds * 1000)
            embedded += report.chunks_embedded
        with database.owner() as conn:
            _compare(conn, repeat, statistics.median(polls), embedded)


def _compare(conn: Connection, repeat: int, poll: float, embedded: int) -> None:
    audience_id, share_id, acl_ids = conn.execute(
        "select audience_id, share_id, acl_ids from nw.audience"
    ).fetchone()  # type: ignore[misc]
    edits, rewrites = [], []
    for statement in _NAIVE:
        conn.execute(statement)  # type: ignore[arg-type]
    for turn in range(repeat):
        wanted = acl_ids if turn % 2 else acl_ids[:1]
        edits.append(_timed(conn, lambda w=wanted: AudienceStore(conn, share_id).edit(audience_id, w)))
    for turn in range(2):  # each takes long enough
        readers = [f"S-1-5-21-1-2-3-{turn}-{n}" for n in range(4)]
        rewrites.append(_timed(conn, lambda r=readers: conn.execute(_REWRITE, [r])))
    edit, rewrite = statistics.median(edits), statistics.median(rewrites)
    print(f"edit of the audience, committed:     {edit:9.2f} ms of database time (at most 100)")
    print(f"readers rewritten on each chunk:     {rewrite:9.2f} ms = {rewrite / edit:.0f} times as long")
    print(f"the whole poll that finds the change:{poll:9.1f} ms, {embedded} embeddings computed (none)")


def _timed(conn: Connection, work: Callable[[], object]) -> float:
    """Milliseconds until the change is on disk and counts."""
    began = time.perf_counter()
    with conn.transaction():
        work()
    return (time.perf_counter() - began) * 1000


def _note(number: int) -> str:
    """Ten sections, each a chunk of its own."""
    parts = [
        f"## Part {part}\n\n{f'word{number % 97} of part {part} stands here and goes on. ' * 12}\n"
        for part in range(10)
    ]
    return f"# Note {number}\n\n" + "\n".join(parts)
