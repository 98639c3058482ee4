"""A first load with the local model, against the model alone on the same texts, in turns in one process.

`python -m bench first [--notes N] [--rounds N]`
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.tree import make_tree
from db.pool import Database
from indexer.sync import Indexer
from notewarden.embedding.base import Vectors
from notewarden.embedding.local import LocalEmbedder
from notewarden.settings import Settings, load_settings

_CONFIG = """state_dir = "{state}"
[[share]]
name = "notes"
path = "{notes}"
[share.acl]
source = "declared"
[[share.acl.rule]]
folder = ""
readers = ["everyone"]
"""


class _Keeping(LocalEmbedder):
    """The local model, keeping the texts it was given."""

    def __init__(self, name: str, dimension: int) -> None:
        super().__init__(name, dimension)
        self.texts: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """As the model does."""
        self.texts += texts
        return super().embed_documents(texts)


def main(arguments: Sequence[str]) -> None:
    """Print the walls of each round and the ratio of their least ones."""
    parser = argparse.ArgumentParser(prog="bench first", description=__doc__)
    parser.add_argument("--notes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="notewarden-bench-") as name:
        folder = Path(name)
        (folder / "notes").mkdir()
        make_tree(folder / "notes", options.notes)
        loads, alone = [], []
        for number in range(options.rounds):
            load, model, texts = _round(_settings(folder, number))
            print(f"first load of {options.notes} notes: {load:.2f} s; the model on {texts}: {model:.2f} s")
            loads.append(load)
            alone.append(model)
    print(f"a first load takes {min(loads) / min(alone):.3f} times the model's own time (at most 1.2)")


def _settings(folder: Path, number: int) -> Settings:
    config = folder / f"config{number}.toml"
    config.write_text(_CONFIG.format(state=folder / f"state{number}", notes=folder / "notes"), "utf-8")
    config.chmod(0o600)
    return load_settings(config)


def _round(settings: Settings) -> tuple[float, float, int]:
    """Return the seconds of a first index, those of the model alone, and how many texts both embedded."""
    model = _Keeping(settings.embedding.model, settings.embedding.dimension)
    model.embed_query("loads the model")
    with Database.open(settings) as database:
        began = time.perf_counter()
        report = Indexer(settings, database, embedder=model).sync()
        load = time.perf_counter() - began
    texts = list(model.texts)
    assert report.chunks_embedded == len(texts)
    began = time.perf_counter()
    LocalEmbedder.embed_documents(model, texts)
    return load, time.perf_counter() - began, len(texts)
