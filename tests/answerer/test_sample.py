"""The sample share: nobody is shown what its rules hide, and what is not there is not answered."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from acl.directory import make_directory
from acl.token import build_token
from answerer.engine import Engine
from answerer.identity import Asker
from db.pool import Database
from indexer.sync import Indexer
from notewarden.embedding.factory import make_embedder
from notewarden.errors import NotInNotes
from notewarden.settings import load_settings

EXAMPLES = Path(__file__).parents[2] / "examples"
TRUTH: dict[str, list[str]] = json.loads((EXAMPLES / "truth.json").read_text("utf-8"))
QUESTIONS = [json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text("utf-8").splitlines()]
MOST = 1000


@dataclass
class Sample:
    """The indexed sample."""

    engine: Engine
    askers: dict[str, Asker]


@pytest.fixture
def index_sample(tmp_path: Path, new_database: Callable[[], Database]) -> Callable[[str], Sample]:
    """A function that indexes the sample with an embedding provider."""

    def index(provider: str) -> Sample:
        tmp_path.chmod(0o700)
        shutil.copytree(EXAMPLES / "notes", tmp_path / "notes")
        shutil.copy(EXAMPLES / "people.toml", tmp_path / "people.toml")
        head = (
            f'state_dir = "{tmp_path}/state"\n[directory]\nsource = "file"\nfile = "{tmp_path}/people.toml"\n'
            f'[embedding]\nprovider = "{provider}"\n[[share]]\nname = "notes"\npath = "{tmp_path}/notes"\n'
        )
        config = tmp_path / "config.toml"
        config.write_text(head + (EXAMPLES / "rules.toml").read_text("utf-8"), "utf-8")
        for file in (config, tmp_path / "people.toml"):
            file.chmod(0o600)
        settings = load_settings(config)
        directory, database = make_directory(settings), new_database()
        Indexer(settings, database).sync()
        engine = Engine(settings, database, directory, make_embedder(settings.embedding))
        return Sample(engine, {name: _asker(directory, name) for name in TRUTH})

    return index


def _asker(directory: Any, name: str) -> Asker:
    account = directory.user(name)
    return Asker(account.sid, account, build_token(directory, account), privileged=False)


def test_every_person_and_every_question(index_sample: Callable[[str], Sample]) -> None:
    sample = index_sample("hash")
    every = {path for paths in TRUTH.values() for path in paths}
    for name, asker in sample.askers.items():
        may = set(TRUTH[name])
        assert sample.engine.status(asker).result.notes == len(may)
        for question in QUESTIONS:
            answer = sample.engine.ask(asker, question["question"]).result
            assert {one.path for one in answer.citations} <= may
            rows = sample.engine.search(asker, question["question"], k=20).result.results
            assert {row.path for row in rows} <= may
        rows = sample.engine.search(asker, "the", k=MOST).result.results
        assert {row.path for row in rows} == may
        for path in every - may:
            with pytest.raises(NotInNotes):
                sample.engine.show(asker, os.fsdecode(path))


def test_refusals_and_hits(index_sample: Callable[[str], Sample]) -> None:
    sample = index_sample("local")
    found = {
        one["id"]: sample.engine.ask(sample.askers[one["as"]], one["question"]).result for one in QUESTIONS
    }
    without = [one["id"] for one in QUESTIONS if not one["answerable"]]
    others = [one["id"] for one in QUESTIONS if one["answerable"]]
    refused = [one for one in without if not found[one].found]
    wrongly = [one for one in others if not found[one].found]
    assert len(refused) >= 0.85 * len(without), set(without) - set(refused)
    assert len(wrongly) <= 0.10 * len(others), wrongly
    cited = [
        one["id"]
        for one in QUESTIONS
        if one["answerable"] and {gold["path"] for gold in one["gold"]} & _paths(found[one["id"]])
    ]
    assert len(cited) >= 0.8 * len(others), set(others) - set(cited)
    german = [one for one in QUESTIONS if one["answerable"] and one["question"].startswith(("W", "w"))]
    german = [one for one in german if any(gold["path"].startswith("vertrieb/") for gold in one["gold"])]
    assert german and all(found[one["id"]].found for one in german)


def _paths(answer: Any) -> set[str]:
    return {citation.path for citation in answer.citations}
