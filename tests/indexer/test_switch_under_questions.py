"""The model changes while people ask: no question fails, finds nothing, or gets passages of both ways."""

from __future__ import annotations

import random
import threading
import time

import pytest
from share_world import MoodyEmbedder, ShareWorld
from test_poll_generations import serving

from answerer.engine import Engine
from answerer.identity import Asker
from db import generations, search
from db.search import reading
from notewarden.embedding.hashed import HashEmbedder

PARTS = 4


def write(world: ShareWorld, number: int, version: int = 0) -> None:
    parts = "\n\n".join(
        f"## Part {part}\n\nThe subject{number} has side {part} of version{version}. "
        + " ".join(f"More{part * 100 + more} of it." for more in range(20))
        for part in range(PARTS)
    )
    world.write(f"f{number % 20}/{number}.md", f"# Subject {number}\n\n{parts}\n")


class Asking(threading.Thread):
    """Asks without end, with the model of before and with the new one, as an answerer that restarts does."""

    def __init__(self, world: ShareWorld, notes: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._dice = random.Random(seed)
        self._notes = notes
        directory = world.directory
        account = directory.user("alice")
        self._asker = Asker(account.sid, account, world.token("alice"), privileged=False)
        self._engines = [
            Engine(world.settings, world.database, directory, HashEmbedder(dimension))
            for dimension in (16, 24)
        ]
        self.wrong: list[str] = []
        self.asked = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self.ask()
            except Exception as error:  # whatever it is, no question may fail
                self.wrong.append(f"{type(error).__name__}: {error}")

    def ask(self) -> None:
        number = self._dice.randrange(self._notes)
        engine = self._dice.choice(self._engines)
        found = engine.search(self._asker, f"subject{number}", k=8).result.results
        self.asked += 1
        mine = [one for one in found if one.path == f"f{number % 20}/{number}.md"]
        if not mine or found[0].path != mine[0].path:
            self.wrong.append(f"subject{number} was not found first, but {[one.path for one in found[:2]]}")
        texts = [one.text.strip() for one in mine if len(one.text) > 60]  # a rest of two words proves nothing
        if any(a in b for i, a in enumerate(texts) for j, b in enumerate(texts) if i != j):
            self.wrong.append(f"subject{number}: passages of both ways")
        if len({word for one in mine for word in one.text.split() if word.startswith("version")}) > 1:
            self.wrong.append(f"subject{number}: passages of two versions")


def switch(world: ShareWorld, notes: int) -> None:
    for number in range(notes):
        write(world, number)
    world.sync()
    assert world.one("select count(*) from nw.note_chunk") == notes * (PARTS + 1)
    asking = [Asking(world, notes, seed) for seed in range(2)]
    for one in asking:
        one.start()
    try:
        chunking = world.settings.chunking.model_copy(update={"max_tokens": 40})
        world.settings = world.settings.model_copy(update={"chunking": chunking})
        world.embedder = MoodyEmbedder(24)
        for step in range(4):  # broken off, gone on with by another process, amid edits
            world.restart()
            done: list[object] = []
            for number in range(step, notes, max(notes // 10, 1)):
                write(world, number, step + 1)
            world.sync(progress=done.append, stopped=lambda done=done: len(done) > 1 + notes // 200)
            assert serving(world) != world.embedder.identity
        world.restart()
        report = world.sync_all()
        assert serving(world) == world.embedder.identity
        assert report.exit_code == 0
        assert world.sync_all().exit_code == 0
        asked = [one.asked for one in asking]
        for _ in range(600):
            if all(one.asked >= before + 10 for one, before in zip(asking, asked, strict=True)):
                break
            time.sleep(0.1)
    finally:
        for one in asking:
            one.over.set()
            one.join()
    assert [wrong for one in asking for wrong in one.wrong][:5] == []
    assert world.one("select count(distinct generation_id) from nw.note_chunk") == 1
    world.whole()


def test_a_switch_under_questions(world: ShareWorld) -> None:
    switch(world, 60)


@pytest.mark.prove
@pytest.mark.timeout(3_600)
def test_a_switch_of_5_000_chunks_under_questions(world: ShareWorld) -> None:
    switch(world, 1_000)


def test_an_edit_serves_its_old_text_until_the_switch_to_who_passes_both_policies(world: ShareWorld) -> None:
    world.write("z.md", "# A\n\nslow\n")
    file = world.write("b.md", "# B\n\nthe old words\n")
    world.sync()
    old = world.embedder
    world.embedder = MoodyEmbedder(24)
    world.embedder.poison = {"slow": False}
    world.restart()
    file.write_text("# B\n\nthe new words\n")
    report = world.sync()
    assert (report.pending, report.changed) == (2, 0)
    assert "the old words" in world.text("alice")
    assert "indexed in a new way" in world.trouble()["b.md"].reason
    file.chmod(0o600)
    world.sync()
    assert "the old words" not in world.text("alice")
    file.chmod(0o644)
    world.sync()
    assert "the old words" in world.text("alice")
    world.embedder.poison = {}
    report = world.sync()
    assert (report.pending, report.changed) == (0, 1)
    assert serving(world) == world.embedder.identity != old.identity
    assert "the new words" in world.text("alice")
    assert "the old words" not in world.text("alice")
    assert world.trouble() == {}
    world.whole()


def test_a_generation_that_is_wanted_no_more_goes(world: ShareWorld) -> None:
    world.write("z.md", "# A\n\nslow\n")
    world.write("b.md")
    world.sync()
    first, other = world.embedder, MoodyEmbedder(24)
    other.poison = {"slow": False}
    world.embedder = other
    world.restart()
    world.sync()
    assert world.one("select count(distinct generation_id) from nw.note_chunk") == 2
    world.embedder = first
    world.restart()
    report = world.sync_all()
    assert (report.exit_code, report.chunks_embedded) == (0, 0)
    assert world.one("select count(distinct generation_id) from nw.note_chunk") == 1
    assert world.one("select count(*) from nw.generation where state = 'building'") == 0
    world.whole()


def test_an_edit_that_the_new_model_refuses_does_not_keep_it_away_for_ever(world: ShareWorld) -> None:
    world.write("a.md")
    file = world.write("b.md", "# B\n\nthe old words\n")
    world.sync()
    world.embedder = MoodyEmbedder(24)
    world.embedder.poison = {"poison": True}
    world.restart()
    file.write_text("# B\n\npoison words\n")
    states = []
    for _ in range(4):
        report = world.sync()
        states.append((report.pending, report.parked, serving(world) == world.embedder.identity))
    assert states == [(1, 0, False), (1, 0, False), (0, 1, False), (0, 1, True)]
    assert {one.path for one in world.passages("alice")} == {b"a.md"}
    world.embedder.poison = {}
    file.write_text("# B\n\ncured words\n")
    world.sync()
    assert "cured words" in world.text("alice")
    world.whole()


def test_between_the_switch_and_the_end_of_the_old_rows_only_the_new_ones_are_found(
    world: ShareWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        write(world, number)
    world.sync()
    monkeypatch.setattr(generations, "drop_retired", lambda conn: None)
    world.embedder = MoodyEmbedder(24)
    world.restart()
    world.sync()
    assert world.one("select count(distinct generation_id) from nw.note_chunk") == 2
    monkeypatch.setattr(search, "_FEW_CHUNKS", -1)  # the way of large indexes
    terms = [row[0] for row in world.rows("select term_id from nw.term")]
    with world.database.reader() as conn, reading(conn, world.token("alice")) as session:
        assert session.serving is not None
        found = sorted(set(session.postings(terms).chunk_ids.tolist()))
        serves = session.serving.generation_id
    chunks = "select distinct generation_id from nw.note_chunk where chunk_id = any (%s)"
    assert world.rows(chunks, found) == [(serves,)]
    assert len(found) == 3 * (PARTS + 1)
