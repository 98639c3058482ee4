"""Whatever the provider of vectors does, the index stays whole and the note waits with its reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from share_world import ShareWorld
from support.fake_voyage import GOOD_KEY, FakeVoyage, serving

from notewarden.embedding.voyage import VoyageAccess, VoyageEmbedder

NOTES = 4
LASTING = ["short", "nothing", "dimension", "nan", "long", "garbage", "429", "500", "503", "dropped"]


@pytest.fixture
def fake() -> Iterator[FakeVoyage]:
    with serving(FakeVoyage(dimension=16)) as running:
        yield running


@pytest.fixture
def provided(world: ShareWorld, fake: FakeVoyage) -> ShareWorld:
    """The share, indexed once through the fake provider while it was well."""
    world.embedder = Provided("voyage-4", 16, VoyageAccess(GOOD_KEY, fake.url), sleep=lambda _: None)  # type: ignore[assignment]
    for number in range(NOTES):
        world.write(f"{number}.md", f"# Note {number}\n\nThe first text of number {number}.\n")
    world.restart()
    world.sync()
    assert world.trouble() == {}
    return world


class Provided(VoyageEmbedder):
    """The provider's embedder in the place of the share's own."""

    texts: list[str] = []  # noqa: RUF012 - the share empties it


def rows(world: ShareWorld) -> list[tuple[object, ...]]:
    """Every chunk with its vector and how many postings it has, as the owner sees them."""
    with world.database.owner() as conn:
        return conn.execute(
            "select n.path, c.content, v.embedding::text, c.length,"
            " (select coalesce(sum(tf), 0) from nw.posting p where p.chunk_id = c.chunk_id)"
            " from nw.note_chunk c join nw.note n using (note_id) left join nw.vectors_1 v using (chunk_id)"
            " order by n.path, c.seq"
        ).fetchall()


def require_whole(world: ShareWorld) -> None:
    """Each chunk has its vector and all its postings; the sizes that BM25 uses are true."""
    found = rows(world)
    assert found and all(vector is not None and length == terms for *_, vector, length, terms in found)
    with world.database.owner() as conn:
        counted = conn.execute(
            "select audience_id, count(*), sum(length) from nw.note_chunk group by 1 order by 1"
        ).fetchall()
        kept = conn.execute(
            "select audience_id, n_chunks, sum_length from nw.audience_size where n_chunks > 0 order by 1"
        ).fetchall()
    assert kept == counted


@pytest.mark.parametrize("fault", LASTING)
def test_a_lasting_fault_leaves_the_index_whole_and_the_note_waiting(
    provided: ShareWorld, fake: FakeVoyage, fault: str
) -> None:
    before = rows(provided)
    provided.write("1.md", "# Note 1\n\nAnother text altogether.\n")
    provided.write("new.md", "# New\n\nNever seen before.\n")
    fake.faults = [fault] * 500
    report = provided.sync()
    assert report.pending == 2
    assert rows(provided) == before, "the old text serves on, with its own vector"
    trouble = provided.trouble()
    assert {path: one.state for path, one in trouble.items()} == {"1.md": "pending", "new.md": "pending"}
    assert all("provider" in one.reason for one in trouble.values())
    require_whole(provided)
    fake.faults = []
    report = provided.sync()
    assert (report.pending, report.added, report.changed) == (0, 1, 1)
    assert provided.trouble() == {}
    require_whole(provided)


@pytest.mark.parametrize("fault", [*LASTING, "twice", "shuffled"])
def test_a_fault_that_passes_costs_nothing(provided: ShareWorld, fake: FakeVoyage, fault: str) -> None:
    texts = {
        f"{number}.md": f"# Note {number}\n\nThe second text of number {number}.\n" for number in range(4)
    }
    for path, text in texts.items():
        provided.write(path, text)
    fake.faults = [fault]
    assert provided.sync().changed == NOTES
    assert provided.trouble() == {}
    faulty = rows(provided)
    require_whole(provided)
    for path in texts:
        provided.write(path, f"# Other\n\n{path}\n")
    provided.sync()
    for path, text in texts.items():
        provided.write(path, text)
    provided.sync()
    assert rows(provided) == faulty, "the same vectors as from a provider that was well"


def test_a_text_that_is_refused_for_good_is_parked_and_costs_no_other(
    provided: ShareWorld, fake: FakeVoyage
) -> None:
    fake.poison = "nitroglycerine"
    provided.write("bad.md", "# Bad\n\nA sack of nitroglycerine.\n")
    provided.write("good.md", "# Good\n\nA sack of flour.\n")
    reports = [provided.sync() for _ in range(4)]
    assert reports[0].added == 1 and reports[-1].parked == 1
    trouble = provided.trouble()
    assert set(trouble) == {"bad.md"} and "characters" in trouble["bad.md"].reason
    assert "nitroglycerine" not in trouble["bad.md"].reason
    require_whole(provided)
