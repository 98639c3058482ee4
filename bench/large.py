"""A large share: a first index that is killed and goes on, bounded memory, a poll that finds nothing new.

The graph index over the vectors is left out: hashes have no neighbours, and `bench search` measures it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import LiteralString

from bench.poll import _CONFIG, naive
from bench.tree import make_tree
from db.pool import Database
from indexer.sync import Indexer, Options
from notewarden.embedding.base import Vectors
from notewarden.embedding.hashed import HashEmbedder
from notewarden.settings import load_settings

_MIB = 1024 * 1024
_DIGEST = 32  # bytes


class _Recorder(HashEmbedder):
    """The hash model, which writes down the hash of each text it is given."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log.open("ab", buffering=0)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text."""
        self._log.write(b"".join(hashlib.sha256(text.encode()).digest() for text in texts))
        return super().embed_documents(texts)


def main(arguments: list[str]) -> None:
    """Print times and memory; `--notes` sets the size."""
    parser = argparse.ArgumentParser(prog="bench large")
    parser.add_argument("--notes", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        return _child(options.child, full=options.full)
    with tempfile.TemporaryDirectory(prefix="notewarden-bench-") as folder:
        _measure(Path(folder), options.notes, options.kills)
    return None


def _child(config: Path, *, full: bool) -> None:
    """One sync in a process of its own; prints its memory before and at its peak, and its report."""
    settings = load_settings(config)
    with Database.open(settings) as database:
        indexer = Indexer(settings, database, embedder=_Recorder(_log_of(config)))
        before = _peak()
        report = indexer.sync(Options(full=full))
    told = {"before": before, "peak": _peak(), **report.as_json()}
    print(json.dumps(told), flush=True)


def _peak() -> int:
    """The most memory this process ever had, in bytes (proc(5): VmHWM)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found.group(1)) * 1024


def _measure(folder: Path, notes: int, kills: int) -> None:
    root, config = folder / "notes", folder / "config" / "config.toml"
    root.mkdir()
    config.parent.mkdir(mode=0o700)
    make_tree(root, notes)
    config.write_text(_CONFIG.format(state=folder / "state", notes=root), encoding="utf-8")
    config.chmod(0o600)
    with Database.open(load_settings(config)) as database:
        _first_index(config, database, notes, kills)
        time.sleep(1)
        _polls(config, root, notes)


def _first_index(config: Path, database: Database, notes: int, kills: int) -> None:
    """Index everything, killed on the way. Exits when a text is embedded again that was stored before."""
    began, stored, again, count = time.perf_counter(), set[bytes](), 0, 0
    for kill in range(1, kills + 1):
        process = _start(config)
        while _count(database, "select count(*) from nw.note") < notes * kill // (kills + 1):
            time.sleep(min(1.0, notes / 10_000))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        time.sleep(0.5)
        print(f"killed at {_count(database, 'select count(*) from nw.note')} notes", flush=True)
        texts = _taken(config)
        again, count = again + len(stored & texts), count + len(texts)
        stored = _stored(database)
    report = _finish(_start(config))
    took = time.perf_counter() - began
    texts = _taken(config)
    again, count, different = again + len(stored & texts), count + len(texts), len(_stored(database))
    each = took / notes * 1000
    print(f"first index of {notes} notes, {kills} times killed: {took:.0f} s, {each:.1f} ms a note")
    _memory("the last part of the first index", report)
    cut_off = count - different - again
    print(f"texts: {different}, embedded in all runs: {count}")
    print(f"  embedded again though they stood when the run began: {again} (must be 0)")
    print(f"  embedded again since a kill took their batch before it was stored: {cut_off} (a batch a kill)")
    if again:
        raise SystemExit("a text that stood in the index was embedded again")


def _log_of(config: Path) -> Path:
    return config.with_name("embedded")


def _taken(config: Path) -> set[bytes]:
    """Return the hashes of the texts embedded since the last call."""
    raw = _log_of(config).read_bytes()
    _log_of(config).unlink()
    return {raw[at : at + _DIGEST] for at in range(0, len(raw), _DIGEST)}


def _stored(database: Database) -> set[bytes]:
    with database.owner() as conn, conn.cursor(binary=True) as cursor:
        return {row[0] for row in cursor.execute("select distinct embed_key from nw.note_chunk")}


def _polls(config: Path, root: Path, notes: int) -> None:
    """Walls of one run alternate, so that all see the same machine."""
    walls: dict[str, list[float]] = {"find": [], "naive": [], "poll": []}
    for _ in range(3):
        walls["find"].append(_timed(["find", str(root), "-name", "*.md", "-newermt", "2099-01-01"]))
        began = time.perf_counter()
        assert naive(root) == notes
        walls["naive"].append(time.perf_counter() - began)
        report = _finish(_start(config))
        assert report["chunks_embedded"] == 0
        walls["poll"].append(float(report["seconds"]))
    find, loop, poll = (min(walls[name]) for name in ("find", "naive", "poll"))
    print(f"find over the tree:               {find:.2f} s")
    print(f"naive read-and-hash loop:         {loop:.2f} s")
    ratios = f"{poll / loop:.2f} of the loop, {poll / find:.1f} finds"
    print(f"poll, nothing changed:            {poll:.2f} s = {ratios}")
    _memory("a poll that finds nothing new", report)
    full = _finish(_start(config, "--full"))
    took = float(full["seconds"])
    print(f"poll --full:                      {took:.2f} s = {took / loop:.2f} of the loop")
    _memory("a full poll", full)


def _memory(what: str, report: dict[str, float]) -> None:
    peak, before = report["peak"] / _MIB, report["before"] / _MIB
    print(f"memory in {what}: peak {peak:.0f} MiB, {peak - before:.0f} of them for the work (at most 300)")


def _start(config: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench", "large", "--child", str(config), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _finish(process: subprocess.Popen[str]) -> dict[str, float]:
    out, _ = process.communicate()
    assert process.returncode == 0
    told: dict[str, float] = json.loads(out.strip().splitlines()[-1])
    return told


def _timed(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _count(database: Database, query: LiteralString) -> int:
    with database.owner() as conn:
        row = conn.execute(query).fetchone()
    assert row is not None
    return int(row[0])
