"""Notes that somebody may not read change nothing for them: not a result, a rank, a message, an exit code."""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.permission_world import PermissionWorld

from answerer.engine import Where
from db.pool import Database
from notewarden.display import printable
from notewarden.errors import NotewardenError
from notewarden.settings import Settings

UNIQUE = "xylotherium"
_TEXT = (
    "pump valve order shift supplier invoice server backup meeting draft release customer office travel "
    "contract budget sample night weekly report number early change review team storage update plan"
)
_WORDS = _TEXT.split()


def furnish(world: PermissionWorld, hidden: int) -> None:
    """80 notes that bob may read; `hidden` more, in and beside his folders, that nobody but root may."""
    chance = random.Random(11)
    for number in range(80):
        folder = ("plans", "it", "plans/old")[number % 3]
        world.write(f"{folder}/{number:03d}.md", _note(chance, number))
    for number in range(hidden):
        folder = ("plans", "it", "hr", "plans/secret")[number % 4]
        text = _note(chance, number) + f"\nThe {UNIQUE} of {number} is {UNIQUE} {_WORDS[number % 20]}.\n"
        world.write(f"{folder}/{number:03d}-{UNIQUE}.md", text, 0o600)
    world.sync()


def _note(chance: random.Random, number: int) -> str:
    words = [" ".join(chance.choices(_WORDS, k=40)) for _ in range(2)]
    return f"# Note {number}\n\n{words[0]}.\n\n## Part\n\n{words[1]}. Code E-{number:04d}.\n"


def questions() -> list[str]:
    """50: common words, codes, the word that only hidden notes hold, phrases, exclusions."""
    chance = random.Random(12)
    made = [" ".join(chance.sample(_WORDS, 3)) for _ in range(22)]
    made += [f"What is code E-{number:04d}?" for number in range(0, 80, 10)]
    made += [f"{word} {UNIQUE}" for word in _WORDS[:8]]
    made += [UNIQUE, f"What is the {UNIQUE}?", f'"{UNIQUE} of 3"', f"plan -{UNIQUE}", f'"the {UNIQUE}" plan']
    made += [f"weekly report {UNIQUE} number", "hr", "secret", "Note 7", '"Note 7"', "E-9999", "plan -pump"]
    assert len(made) == 50 == len(set(made))
    return made


def asked(world: PermissionWorld, question: str, *, every_door: bool) -> list[Any]:
    """Everything that comes back for one question, errors with their codes."""
    asker = world.asker("bob")
    calls: list[Callable[[], Any]] = [
        lambda: world.engine.ask(asker, question),
        lambda: world.engine.search(asker, question),
        lambda: world.engine.search(asker, question, k=300),
        lambda: world.engine.ask(asker, question, Where(folders=("plans",))),
        lambda: world.engine.search(asker, question, Where(folders=("hr",))),
        lambda: world.engine.search(asker, question, Where(folders=("plans/secret",), share="notes")),
        lambda: world.engine.show(asker, f"hr/002-{UNIQUE}.md"),
        lambda: world.engine.show(asker, f"plans/000-{UNIQUE}.md"),
        lambda: world.engine.status(asker),
    ]
    return [_outcome(call) for call in (calls if every_door else calls[:3])]


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        reply = call()
    except NotewardenError as error:
        return type(error).__name__, error.exit_code, printable(str(error))
    told = reply.result.to_json()
    told.pop("as_of", None)
    for one in told.get("citations", []):
        one.pop("modified")
    return told, reply.notices


@pytest.fixture
def worlds(
    tmp_path: Path, new_database: Callable[[], Database], settings_factory: Callable[..., Settings]
) -> tuple[PermissionWorld, PermissionWorld]:
    """The same world without and with 200 hidden notes."""
    made = []
    for name, hidden in (("without", 0), ("with", 200)):
        folder = tmp_path / name
        folder.mkdir()
        world = PermissionWorld(folder, new_database(), settings_factory)
        furnish(world, hidden)
        made.append(world)
    return made[0], made[1]


def test_two_hundred_hidden_notes_change_nothing(worlds: tuple[PermissionWorld, PermissionWorld]) -> None:
    without, with_hidden = worlds
    assert with_hidden.rows("select count(*) from nw.note") == [(280,)]
    found = 0
    for number, question in enumerate(questions()):
        every = number % 5 == 0
        one = asked(without, question, every_door=every)
        other = asked(with_hidden, question, every_door=every)
        assert one == other, question
        found += isinstance(one[0][0], dict) and one[0][0]["found"]
        assert UNIQUE not in str(other[1][0]["results"])
    assert 10 < found < 50, "questions of both kinds"
    assert without.queued() == with_hidden.queued() == set()


@pytest.mark.prove
def test_they_cost_no_time_either(worlds: tuple[PermissionWorld, PermissionWorld]) -> None:
    """The medians of searches made by turns: the worlds differ no more than each from itself, and 5 %."""
    times: dict[int, list[list[float]]] = {0: [], 1: []}
    askers = [world.asker("bob") for world in worlds]
    for turn in range(16):
        for place in (0, 1):
            times[place].append([])
        for number, question in enumerate(questions()):
            for place in (0, 1) if (turn + number) % 2 else (1, 0):
                began = time.perf_counter()
                worlds[place].engine.search(askers[place], question)
                times[place][-1].append(time.perf_counter() - began)
    medians = [_median(times[place]) for place in (0, 1)]
    within = [abs(_median(times[place][::2]) - _median(times[place][1::2])) for place in (0, 1)]
    told = [f"{1000 * one:.2f} ms" for one in (*medians, *within)]
    sys.stdout.write(
        f"median of 800 searches: {told[0]} without, {told[1]} with; odd against even rounds of the same "
        f"world differ by {told[2]} and {told[3]}\n"
    )
    assert abs(medians[0] - medians[1]) <= 2 * max(within) + 0.05 * min(medians)


def _median(rounds: list[list[float]]) -> float:
    return statistics.median(one for times in rounds for one in times)
