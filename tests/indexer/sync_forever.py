"""A program of the crash tests: each line on its standard input is one process that polls until it is killed.

python sync_forever.py CONFIG OWNER_DSN READER_DSN DIMENSION
It prints "ready", then for each line the process id, and "over" when that process is dead.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from db.pool import Database
from indexer.sync import Indexer
from notewarden.embedding.hashed import HashEmbedder
from notewarden.settings import load_settings


def poll_forever(config: str, owner: str, reader: str, dimension: str) -> None:
    """Poll until the end."""
    with Database.from_dsns(owner, reader) as database:
        indexer = Indexer(load_settings(Path(config)), database, embedder=HashEmbedder(int(dimension)))
        print(os.getpid(), flush=True)  # noqa: T201
        while True:
            indexer.sync()


if __name__ == "__main__":
    print("ready", flush=True)  # noqa: T201
    for _ in iter(sys.stdin.readline, ""):
        if (child := os.fork()) == 0:
            try:
                poll_forever(*sys.argv[1:])
            finally:
                os._exit(1)
        os.waitpid(child, 0)
        print("over", flush=True)  # noqa: T201
