"""Processes that poll a share and are killed at a moment of the test's choice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from share_world import ShareWorld

from db.pool import OWNER, READER
from db.server import ServerHandle

HERE = Path(__file__).parent


class Victims:
    """Starts one polling process after another, each from a program that has everything loaded."""

    def __init__(self, world: ShareWorld, server: ServerHandle, database: str) -> None:
        self._dsns = server.dsn(OWNER, database), server.dsn(READER, database)
        self._program = subprocess.Popen(
            [
                sys.executable,
                str(HERE / "sync_forever.py"),
                str(world.settings.file),
                *self._dsns,
                str(world.embedder.dimension),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE.parent.parent,
            env={**os.environ, "PYTHONPATH": str(HERE.parent.parent)},
        )
        assert self._line() == "ready"

    def start(self) -> int:
        """Let a process poll; returns its id."""
        assert self._program.stdin is not None
        self._program.stdin.write("go\n")
        self._program.stdin.flush()
        return int(self._line())

    def kill(self, process: int) -> None:
        """Kill it, and wait until the database has noticed."""
        os.kill(process, signal.SIGKILL)
        assert self._line() == "over"
        with psycopg.connect(self._dsns[0], autocommit=True) as conn:
            for _ in range(2_000):
                if not conn.execute("select from pg_locks where locktype = 'advisory'").fetchone():
                    return
                time.sleep(0.01)
        raise AssertionError("the dead indexer's connection is still there")

    def close(self) -> None:
        self._program.kill()
        self._program.wait()
        for pipe in (self._program.stdin, self._program.stdout):
            assert pipe is not None
            pipe.close()

    def _line(self) -> str:
        assert self._program.stdout is not None
        line = self._program.stdout.readline().strip()
        while line and not (line.isdigit() or line in ("ready", "over")):
            line = self._program.stdout.readline().strip()  # a line of its log
        return line


@contextmanager
def victims(world: ShareWorld, server: ServerHandle, database: str) -> Iterator[Victims]:
    """Victims of one share, gone after the block."""
    made = Victims(world, server, database)
    try:
        yield made
    finally:
        made.close()
