"""What search must not lose: a word among many copies, a passage deep in a long note, a code of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.answer_house import House

from answerer.currency import is_superseded
from answerer.retrieval import Query, rank
from db.search import Passage, reading
from indexer.sync import Indexer
from notewarden.settings import SearchSettings

FILLER = "The crew met at noon and spoke about lists, chairs, doors and the weather of the week. "


@pytest.fixture
def house(build_house: Callable[..., House]) -> Iterator[House]:
    yield build_house()


def write(house: House, name: str, text: str) -> None:
    file = house.folder / "notes" / "handbook" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def index(house: House) -> None:
    Indexer(house.settings, house.database).sync()


def found(house: House, words: str, k: int = 8) -> list[tuple[str, str]]:
    rows = house.engine.search(house.asker("cleo"), words, k=k).result.results
    return [(Path(row.path).name, row.text) for row in rows]


def test_a_word_in_the_body_is_found_beside_notes_with_it_in_their_titles_and_hundreds_of_copies(
    house: House,
) -> None:
    for number in range(25):
        write(house, f"title{number:02d}.md", f"# Turbine {number}\n\n{FILLER}Sheet {number} is empty.\n")
    for number in range(500):
        write(
            house, f"copies/log{number:03d}.md", f"# Log\n\nThe turbine ran well on day {number}. {FILLER}\n"
        )
    body = f"# Hall plan\n\n{FILLER}Behind the blue door the turbine is greased with lithium. {FILLER}\n"
    write(house, "plan.md", body)
    index(house)
    assert "plan.md" in [name for name, _ in found(house, "turbine lithium")]
    names = [name for name, _ in found(house, "turbine")]
    assert sum(name.startswith("log") for name in names) <= 3, "copies stand for each other"
    assert "plan.md" in [name for name, _ in found(house, "turbine", 40)]


def test_a_long_note_crowds_nobody_out_and_hides_nothing_deep_inside(
    build_house: Callable[..., House],
) -> None:
    house = build_house("[search]\nvector_weight = 0\n")  # what the hash model thinks near is chance
    parts = [f"## Part {n}\n\nThe compressor of line {n} has valve {n}. {FILLER * 3}\n" for n in range(120)]
    parts[97] = "## Part 97\n\nThe compressor spring snapped on a Tuesday and was welded by Ludmila.\n"
    write(house, "long.md", "# Compressors\n\n" + "\n".join(parts))
    places = ["the shed by the gate", "a cellar", "hall nine", "the boiler room", "no place at all"]
    for n, place in enumerate(places):
        write(house, f"short{n}.md", f"# Note {n}\n\nThere is also a compressor in {place}.\n")
    index(house)
    names = [name for name, _ in found(house, "compressor", 8)]
    assert names.count("long.md") <= 3
    assert {f"short{n}.md" for n in range(5)} <= set(names)
    deep = found(house, "who welded the compressor spring")
    assert any("Ludmila" in text for _, text in deep[:3])


@pytest.mark.parametrize(
    "code", ["E-4021", "nas77.example.com", "2026.4.10", r"C:\tools\x7", "--dry-run-all", "0x8007045D"]
)
def test_an_exact_code_is_found_though_nothing_is_near_it(house: House, code: str) -> None:
    for number in range(60):
        # The code with one character more before its last: as like it as can be.
        other = f"{code[:-1]}{number}{code[-1]}"
        write(house, f"codes{number:02d}.md", f"# Codes\n\nSee {other} for what to do next.\n")
    write(house, "the-one.md", f"# Another sheet\n\n{FILLER}See {code} for what to do next.\n")
    index(house)
    # The hash model knows no meaning: whatever it thinks near is chance.
    assert code in found(house, code)[0][1]
    assert code in found(house, f"what is {code}?")[0][1]


def test_superseded_notes_step_back_unless_the_past_is_asked_for(house: House) -> None:
    for year, status in ((2024, "superseded"), (2026, "current")):
        front = f"---\nstatus: {status}\ndate: {year}-01-10\n---\n"
        write(house, f"parking {year}.md", f"{front}# Parking\n\nA parking permit costs {year % 100} EUR.\n")
    index(house)
    assert found(house, "what does a parking permit cost")[0][0] == "parking 2026.md"
    assert found(house, "what does a parking permit cost now")[0][0] == "parking 2026.md"
    past = [name for name, _ in found(house, "what did a parking permit cost in 2024", 2)]
    assert "parking 2024.md" in past


@pytest.mark.parametrize(
    ("path", "status", "old"),
    [
        (b"it/archive/nas.md", "", True),
        (b"it/nas (old).md", "", True),
        (b"it/nas.md", "Superseded", True),
        (b"it/nas.md", "current", False),
        (b"it/gold.md", "", False),
        (b"it/threshold.md", "frozen", False),
        (b"household/plan.md", "", False),
    ],
)
def test_what_calls_itself_out_of_date(path: bytes, status: str, old: bool) -> None:
    import datetime

    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    passage = Passage(1, 1, 0, "s", path, None, "", [], 1, 1, "text", now, "en", None, status)
    assert is_superseded(passage) is old


def test_beyond_the_limit_the_index_gives_as_many_rows_and_the_same_best(house: House) -> None:
    from db import vectorindex

    for number in range(120):
        write(house, f"many{number:03d}.md", f"# Note {number}\n\nSheet {number} has {number * 7} screws.\n")
    index(house)
    with house.database.owner() as conn:
        serving = vectorindex.serving(conn)
        assert serving is not None
        vectorindex.build(conn, *serving)
        assert vectorindex.exists(conn, serving[0])
        assert vectorindex.check(conn, serving[0], samples=6, seed=1) >= 0.97
        last = vectorindex.last_check(conn, serving[0])
        assert last is not None and last.samples == 6
    chance = np.random.default_rng(3)
    with house.database.reader() as conn, reading(conn, house.asker("cleo").token) as held:
        readable = held.sizes()[0]
        for _ in range(5):
            vector = chance.standard_normal(384).astype(np.float32)
            vector /= np.linalg.norm(vector)
            exact = [at for at, _ in held.nearest(vector, 10)]
            assert [at for at, _ in held.nearest(vector, 10, exact_limit=0)] == exact
            assert len(held.nearest(vector, readable + 5, exact_limit=0)) == readable
        ranking = rank(held, Query("screws", vector), SearchSettings(exact_limit=0), 5)
        assert len(ranking.vector_rank) >= 20
        assert held._conn.execute("show enable_seqscan").fetchone() == ("on",), "only that query is tuned"


def test_a_range_of_days_narrows_inside_the_database(house: House) -> None:
    for day in ("2023-06-30", "2024-02-29", "2024-12-31", "2025-01-01"):
        write(house, f"{day}.md", f"---\ndate: {day}\n---\n# Report\n\nThe lathe ran on {day}.\n")
    index(house)

    def days(words: str) -> set[str]:
        return {name[:10] for name, _ in found(house, words, 100)}

    assert days("lathe since:2024 until:2024") == {"2024-02-29", "2024-12-31"}
    assert days("lathe until:2024-02") == {"2023-06-30", "2024-02-29"}
    assert days("lathe since:2024-02-29 until:2024-02-29") == {"2024-02-29"}
    assert days("lathe since:2999") == set()
    assert len(days("lathe since:2024-02-31")) > 4, "what is no day narrows nothing"
