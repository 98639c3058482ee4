"""How well passages are found: recall@5, hit@5, MRR@10 and refusals, of each leg and of both together.

The sample share is always measured; `--set` and `--distractors` add folders of notes with a questions file:
`python -m bench quality --set NOTES QUESTIONS --distractors FOLDER`; NOTEWARDEN_EVAL names a folder of such
folders. Figures are of passages, not notes.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from acl.directory import make_directory
from answerer.door import Tell, Told, Wish
from answerer.engine import Engine, Where
from answerer.evaluation import as_text, evaluate, read_questions
from answerer.identity import Asker, Doorkeeper
from bench import maxsim, naive
from db.pool import Database
from indexer.sync import Indexer
from notewarden.embedding.base import Embedder
from notewarden.embedding.factory import make_embedder
from notewarden.settings import Settings, load_settings

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
VARIANTS: dict[str, dict[str, Any]] = {
    "keyword": {"vector_weight": 0.0},
    "vector": {"keyword_weight": 0.0},
    "hybrid": {},
    "hybrid, dates ignored": {"prefer_current": False},
    "hybrid + local MaxSim": {"rerank": "local"},
}

_SHARE = """
[[share]]
name = "{name}"
path = "{path}"
[share.acl]
source = "declared"
[[share.acl.rule]]
folder = ""
readers = ["everyone"]
"""


def main(arguments: Sequence[str]) -> None:
    """Print one table for the sample, and one for the set named on the command line."""
    parser = argparse.ArgumentParser(prog="bench quality", description=__doc__)
    parser.add_argument("--set", nargs=2, type=Path, metavar=("NOTES", "QUESTIONS"))
    parser.add_argument("--distractors", nargs="*", type=Path, default=[])
    options = parser.parse_args(arguments)
    corpora = os.environ.get("NOTEWARDEN_EVAL")
    if options.set is None and corpora:
        _from_corpora(options, Path(corpora))
    with tempfile.TemporaryDirectory(prefix="notewarden-bench-") as folder:
        _sample(Path(folder))
    if options.set is not None:
        with tempfile.TemporaryDirectory(prefix="notewarden-bench-") as folder:
            _other(Path(folder), options.set, options.distractors)


def _from_corpora(options: argparse.Namespace, corpora: Path) -> None:
    """Take the first folder with a questions file as the set, the others as distractors."""
    for questions in sorted(corpora.glob("*/*.jsonl"))[:1]:
        notes = next(path for path in sorted(questions.parent.iterdir()) if path.is_dir())
        options.set = (notes, questions)
        options.distractors = [path for path in sorted(corpora.iterdir()) if path != questions.parent]


def _sample(folder: Path) -> None:
    rules = (EXAMPLES / "rules.toml").read_text(encoding="utf-8")
    share = f'[[share]]\nname = "notes"\npath = "{EXAMPLES / "notes"}"\n{rules}'
    people = (EXAMPLES / "people.toml").read_text(encoding="utf-8")
    notes = naive.read_notes(EXAMPLES / "notes")
    truth = json.loads((EXAMPLES / "truth.json").read_text(encoding="utf-8"))

    def notes_for(user: str | None) -> dict[str, str]:
        return {path: text for path, text in notes.items() if path in _paths(truth, user or "ines")}

    settings = _settings(folder, people, share)
    _measure("the sample", settings, (EXAMPLES / "questions.jsonl", "ines"), notes_for)


def _other(folder: Path, named: tuple[Path, Path], distractors: Sequence[Path]) -> None:
    notes, questions = named
    shares = [_SHARE.format(name="set", path=notes.resolve())]
    shares += [_SHARE.format(name=f"beside{n}", path=path.resolve()) for n, path in enumerate(distractors)]
    settings = _settings(folder, "[users.anybody]\ngroups = []\n", "".join(shares))
    every = {path: text for root in (notes, *distractors) for path, text in naive.read_notes(root).items()}
    title = f"{notes.parent.name}, {len(distractors)} folders beside"
    _measure(title, settings, (questions, "anybody"), lambda _: every)


def _paths(truth: dict[str, Any], user: str) -> set[str]:
    return {one if isinstance(one, str) else one["path"] for one in truth[user]}


def _settings(folder: Path, people: str, shares: str) -> Settings:
    (folder / "people.toml").write_text(people, encoding="utf-8")
    config = folder / "config.toml"
    head = (
        f'state_dir = "{folder / "state"}"\n[directory]\nsource = "file"\nfile = "{folder / "people.toml"}"\n'
        '[rerank]\nprovider = "local"\n'  # so that token vectors are stored; only one variant uses them
    )
    config.write_text(head + shares, encoding="utf-8")
    for file in folder.iterdir():
        file.chmod(0o600)
    return load_settings(config)


def _measure(
    title: str,
    settings: Settings,
    asked: tuple[Path, str],
    notes_for: Callable[[str | None], dict[str, str]],
) -> None:
    questions, user = asked
    embedder = make_embedder(settings.embedding)
    cases = read_questions(questions)
    with Database.open(settings) as database:
        report = Indexer(settings, database, embedder=embedder).sync()
        print(
            f"\n{title}: {sum(s.seen for s in report.shares)} notes, {report.chunks_embedded} chunks, "
            f"{len(cases)} questions, indexed in {report.seconds:.0f} s"
        )
        blind = [replace(case, gold=tuple(_anywhere(gold) for gold in case.gold)) for case in cases]
        rows = {"naive BM25": evaluate(blind, naive.teller(notes_for))["all"]}
        for name, change in VARIANTS.items():
            rows[name] = evaluate(cases, _teller(settings, database, embedder, change, user))["all"]
        print(as_text(rows))
        asker = Doorkeeper(make_directory(settings), settings, service=False).asker(0, user)
        print(maxsim.line(database, embedder, asker, cases))


def _anywhere(gold: Mapping[str, Any]) -> dict[str, Any]:
    """The naive search knows no shares."""
    return {key: value for key, value in gold.items() if key != "share"}


def _teller(
    settings: Settings, database: Database, embedder: Embedder, change: dict[str, Any], user: str
) -> Tell:
    search = settings.search.model_copy(update={k: v for k, v in change.items() if k != "rerank"})
    rerank = settings.rerank.model_copy(update={"provider": change.get("rerank", "none")})
    chosen = settings.model_copy(update={"search": search, "rerank": rerank})
    directory = make_directory(settings)
    engine = Engine(chosen, database, directory, embedder)
    doorkeeper = Doorkeeper(directory, chosen, service=False)

    def tell(wish: Wish) -> Told:
        asker: Asker = doorkeeper.asker(0, wish.fields.get("as", user))
        if wish.action == "search":
            return Told(
                engine.search(asker, wish.fields["words"], Where(), wish.fields["k"]).result.to_json()
            )
        return Told(engine.ask(asker, wish.fields["question"], Where(), wish.fields["k"]).result.to_json())

    return tell
