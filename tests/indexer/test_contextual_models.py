"""A model that sees a note's chunks together: an edit makes all vectors of its note anew, and no other's."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from share_world import ShareWorld
from support.fake_voyage import GOOD_KEY, FakeVoyage, in_context, serving, unit_vector

from indexer.faults import Clock, Faults
from indexer.gate import gate
from indexer.rehearsal import Rehearsal
from indexer.setup import Equipment
from notewarden.embedding import voyage_context
from notewarden.embedding.base import InContext
from notewarden.embedding.voyage import VoyageAccess
from notewarden.embedding.voyage_context import VoyageContextEmbedder

PARTS = [
    f"# {animal}\n\nThis part is about {animal}, which is why it stands by itself and not with any other"
    " of the parts that this note has.\n\n"
    for animal in ("cats", "dogs", "horses", "geese")
]
NOTE = "".join(PARTS)


class Provided(VoyageContextEmbedder):
    """The provider's embedder in the place of the share's own."""

    texts: list[str] = []  # noqa: RUF012 - the share empties it


@pytest.fixture
def fake() -> Iterator[FakeVoyage]:
    with serving(FakeVoyage(dimension=16)) as running:
        yield running


@pytest.fixture
def provided(world: ShareWorld, fake: FakeVoyage) -> ShareWorld:
    """Two notes of four parts each, indexed through the fake provider."""
    access = VoyageAccess(GOOD_KEY, fake.url)
    world.embedder = Provided("voyage-context-4", 16, access, sleep=lambda _: None)  # type: ignore[assignment]
    world.write("a.md", NOTE)
    world.write("b.md", NOTE)
    world.restart()
    world.sync()
    return world


def sent(fake: FakeVoyage) -> list[list[str]]:
    """Return the groups sent since this was last asked, each text by its first word after the prefix."""
    groups = [group for request in fake.requests for group in request["inputs"]]
    fake.requests.clear()
    return groups


def require_true(world: ShareWorld, groups: dict[str, list[list[str]]]) -> None:
    """Each chunk has the vector of its place in its group."""
    world.whole()
    for path, expected in groups.items():
        rows = world.rows(
            "select v.embedding from nw.note_chunk c join nw.note n using (note_id)"
            f" join nw.vectors_{world.one('select max(generation_id) from nw.generation')} v using (chunk_id)"
            " where n.path = %s order by c.seq",
            path.encode(),
        )
        made = [unit_vector(in_context(group, at), 16) for group in expected for at in range(len(group))]
        assert [row[0].to_list() for row in rows] == [pytest.approx(one, abs=1e-6) for one in made]


def test_an_edit_embeds_the_whole_note_again_and_no_other(provided: ShareWorld, fake: FakeVoyage) -> None:
    first = sent(fake)
    assert [len(group) for group in first] == [4, 4]
    provided.sync()
    assert sent(fake) == []
    provided.write("a.md", NOTE.replace("geese, which", "swans, which"))
    report = provided.sync_all()
    (again,) = sent(fake)
    assert again[:3] == first[0][:3] and "swans" in again[3]
    assert (report.chunks_embedded, report.chunks_reused) == (4, 0)
    require_true(provided, {"a.md": [again], "b.md": [first[1]]})


def test_equal_chunks_of_a_note_have_vectors_of_their_own_places(
    provided: ShareWorld, fake: FakeVoyage
) -> None:
    sent(fake)
    provided.write("c.md", PARTS[0] + PARTS[0])
    provided.sync()
    (group,) = sent(fake)
    assert group[0] == group[1]
    require_true(provided, {"c.md": [group]})


def test_of_a_long_note_only_the_groups_that_changed_go_again(
    provided: ShareWorld, fake: FakeVoyage, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(fake)
    monkeypatch.setattr(voyage_context, "_MOST_CHARACTERS", 320)
    provided.write("c.md", NOTE)
    provided.sync()
    groups = sent(fake)
    assert [len(group) for group in groups] == [2, 2]
    provided.write("c.md", NOTE.replace("geese, which", "swans, which"))
    report = provided.sync_all()
    (again,) = sent(fake)
    assert "swans" in again[1] and report.chunks_reused == 2
    require_true(provided, {"c.md": [groups[0], again]})


@pytest.mark.parametrize("fault", ["short", "group", "nan", "dimension", "429", "500"])
def test_a_lasting_fault_leaves_the_index_whole_and_the_note_waiting(
    provided: ShareWorld, fake: FakeVoyage, fault: str
) -> None:
    groups = sent(fake)
    provided.write("a.md", NOTE.replace("cats, which", "mice, which"))
    fake.faults = [fault] * 100
    assert provided.sync().pending == 1
    assert "provider" in provided.trouble()["a.md"].reason
    require_true(provided, {"a.md": groups[:1], "b.md": groups[1:]})
    fake.faults, fake.requests = [], []
    report = provided.sync()
    assert (report.pending, report.changed) == (0, 1)
    require_true(provided, {"a.md": sent(fake), "b.md": groups[1:]})


def test_what_is_billed_is_booked_and_a_rehearsal_asks_nothing(
    provided: ShareWorld, fake: FakeVoyage
) -> None:
    assert provided.one("select sum(input_tokens) from nw.usage") == 8
    sent(fake)
    provided.write("a.md", NOTE.replace("cats, which", "mice, which"))
    rehearsal = Rehearsal(
        provided.settings, provided.database, Equipment(provided.directory, provided.embedder)
    )
    report = rehearsal.sync()
    assert report.chunks_embedded == 4 == rehearsal.as_json(report)["cost"]["texts"]
    assert sent(fake) == []


def test_the_daemons_door_offers_what_the_model_offers(provided: ShareWorld, fake: FakeVoyage) -> None:
    sent(fake)
    door = gate(provided.embedder, Faults(Clock(time.monotonic)), lambda: False, slice_texts=2)
    assert isinstance(door, InContext) and door.identity == provided.embedder.identity
    groups = [["one", "two"], ["three"], ["four"]]
    assert door.embed_groups(groups).shape == (4, 16)
    assert [len(request["inputs"]) for request in fake.requests] == [2, 1], (
        "in slices, so that a stop is heard"
    )
    assert door.take_tokens() == 4
