"""The poll against the naive loop that reads and hashes every note, on one tree in one run."""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.tree import make_tree
from db.pool import Database
from indexer.files import Files
from indexer.sync import Indexer, Options
from notewarden.settings import load_settings

_CONFIG = """
state_dir = "{state}"
[embedding]
provider = "hash"
[[share]]
name = "notes"
path = "{notes}"
[share.acl]
source = "posix"
model = "posix"
guards = "posix_x"
[directory]
source = "nss"
[search]
exact_only = true  # a graph over the vectors of the hash embedder, near to nothing, takes minutes to build
"""


class SlowFiles(Files):
    """The real files, each open of a folder or note taking a given time longer, as over a network."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s

    def open_folder(self, parent: int, name: bytes) -> int:
        time.sleep(self._delay_s)
        return super().open_folder(parent, name)

    def open_known(self, parent: int, name: bytes) -> int:
        time.sleep(self._delay_s)
        return super().open_known(parent, name)


def naive(root: Path, delay_s: float = 0.0) -> int:
    """Read and hash every note, as a loop without an index would; returns how many."""
    count = 0
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".md"):
                if delay_s:
                    time.sleep(delay_s)
                with open(os.path.join(folder, name), "rb") as file:  # noqa: PTH118
                    hashlib.sha256(file.read()).digest()
                count += 1
    return count


def median_of(times: int, work: Callable[[], float]) -> float:
    """Return the median of `times` results."""
    return statistics.median(work() for _ in range(times))


def main(arguments: list[str]) -> None:
    """Print the three ratios of the poll."""
    parser = argparse.ArgumentParser(prog="bench poll")
    parser.add_argument("--notes", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="notewarden-bench-") as folder:
        _measure(Path(folder), options.notes, options.repeat)


def _measure(folder: Path, notes: int, repeat: int) -> None:
    root, config = folder / "notes", folder / "config" / "config.toml"
    root.mkdir()
    config.parent.mkdir(mode=0o700)
    make_tree(root, notes)
    config.write_text(_CONFIG.format(state=folder / "state", notes=root), encoding="utf-8")
    config.chmod(0o600)
    settings = load_settings(config)
    with Database.open(settings) as database:
        indexer = Indexer(settings, database)
        time.sleep(2)
        first = indexer.sync()
        print(f"first index of {notes} notes (hash embedder): {first.seconds:.1f} s")
        # The walls alternate, so that both see the same machine.
        loops, polls, fulls = [], [], []
        for _ in range(repeat):
            loops.append(_timed(lambda: naive(root)))
            polls.append(indexer.sync().seconds)
            fulls.append(indexer.sync(Options(full=True)).seconds)
        loop, poll, full = (statistics.median(series) for series in (loops, polls, fulls))
        print(f"naive read-and-hash loop, warm: {loop:.3f} s")
        print(f"poll, nothing changed:          {poll:.3f} s = {poll / loop:.2f} of it (at most 0.50)")
        print(f"poll --full:                    {full:.3f} s = {full / loop:.2f} of it (at most 1.50)")
        slow_loop = _timed(lambda: naive(root, 0.001))
        slow_poll = indexer.sync(Options(files=SlowFiles(0.001))).seconds
        print(
            f"with 1 ms per open: loop {slow_loop:.2f} s, poll {slow_poll:.2f} s = "
            f"{slow_poll / slow_loop:.3f} of it (at most 0.20)"
        )


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
