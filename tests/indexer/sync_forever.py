"""A program of the crash tests: polls the share of a configuration until it is killed.

python sync_forever.py CONFIG OWNER_DSN READER_DSN DIMENSION
"""

from __future__ import annotations

import sys
from pathlib import Path

from db.pool import Database
from indexer.sync import Indexer
from notewarden.embedding.hashed import HashEmbedder
from notewarden.settings import load_settings

if __name__ == "__main__":
    config, owner, reader, dimension = sys.argv[1:]
    with Database.from_dsns(owner, reader) as database:
        embedder = HashEmbedder(int(dimension))
        indexer = Indexer(load_settings(Path(config)), database, embedder=embedder)
        print("ready", flush=True)  # noqa: T201
        while True:
            indexer.sync()
