"""What a question costs besides its answer: starting the thin client, and a warm question in process."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from acl.directory import make_directory
from answerer.engine import Engine
from answerer.identity import Doorkeeper
from bench.quality import EXAMPLES, _settings
from db.pool import Database
from indexer.sync import Indexer
from notewarden.embedding.factory import make_embedder

_TIMES = 10


def main(arguments: Sequence[str]) -> None:
    """Print the client's start against typer's own import, and the time of a warm question."""
    ask = Path(sys.executable).parent / "ask"
    bare, client = _in_turn([sys.executable, "-c", "import typer"], [str(ask), "--version"])
    print(
        f"python -c 'import typer': {bare * 1000:.0f} ms, ask --version: {client * 1000:.0f} ms "
        f"= {client / bare:.2f} of it (at most 2.50; medians of {_TIMES})"
    )
    with tempfile.TemporaryDirectory(prefix="notewarden-bench-") as folder:
        print(
            f"a warm question on the sample, in process: {_warm(Path(folder)) * 1000:.0f} ms "
            f"(at most 1000; median of {_TIMES})"
        )


def _in_turn(*commands: list[str]) -> list[float]:
    rounds = [
        [
            _timed(lambda c=command: subprocess.run(c, check=True, capture_output=True))  # type: ignore[misc]
            for command in commands
        ]
        for _ in range(_TIMES + 1)
    ]
    return [statistics.median(series[1:]) for series in zip(*rounds, strict=True)]


def _warm(folder: Path) -> float:
    rules = (EXAMPLES / "rules.toml").read_text(encoding="utf-8")
    share = f'[[share]]\nname = "notes"\npath = "{EXAMPLES / "notes"}"\n{rules}'
    settings = _settings(folder, (EXAMPLES / "people.toml").read_text(encoding="utf-8"), share)
    embedder, directory = make_embedder(settings.embedding), make_directory(settings)
    with Database.open(settings) as database:
        Indexer(settings, database, embedder=embedder).sync()
        engine = Engine(settings, database, directory, embedder)
        asker = Doorkeeper(directory, settings, service=False).asker(0, "ines")
        ask = lambda: engine.ask(asker, "How long are backups kept?")  # noqa: E731
        ask()
        return statistics.median(_timed(ask) for _ in range(_TIMES))


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
