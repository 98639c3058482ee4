"""The index of vectors comes when it pays, goes when it does not, and `status` tells what it misses."""

from __future__ import annotations

from share_world import ShareWorld

from db import vectorindex
from indexer.searchstate import as_line, read_search
from indexer.status import read_status
from indexer.vectortending import tend
from notewarden.settings import SearchSettings


def fill(world: ShareWorld, notes: int) -> None:
    for number in range(notes):
        world.write(f"{number}.md")
    world.sync()


def test_the_index_comes_and_goes_with_the_number_of_chunks(world: ShareWorld) -> None:
    fill(world, 40)
    with world.database.owner() as conn:
        assert read_search(conn)["leg"] == "exact"
        tend(conn, SearchSettings(exact_limit=30))
        told = read_search(conn)
        assert told["leg"] == "index" and told["samples"] > 0 and 0.9 <= told["recall"] <= 1
        tend(conn, SearchSettings(exact_limit=45))
        assert read_search(conn)["leg"] == "index", "a few notes less do not cost the index"
        tend(conn, SearchSettings(exact_limit=400))
        assert read_search(conn)["leg"] == "exact"
        tend(conn, SearchSettings(exact_limit=30, exact_only=True))
        assert read_search(conn)["leg"] == "exact"


def test_recall_is_sampled_again_when_much_has_changed(world: ShareWorld) -> None:
    fill(world, 40)
    options = SearchSettings(exact_limit=30)
    with world.database.owner() as conn:
        tend(conn, options)
        first = read_search(conn)["checked_at"]
        tend(conn, options)
        assert read_search(conn)["checked_at"] == first
    fill(world, 60)
    with world.database.owner() as conn:
        conn.execute("update nw.recall_check set checked_at = '2020-01-01'")
        tend(conn, options)
        assert not read_search(conn)["checked_at"].startswith("2020")


def test_an_index_built_another_way_is_built_anew(world: ShareWorld) -> None:
    fill(world, 40)
    options = SearchSettings(exact_limit=30)
    with world.database.owner() as conn:
        tend(conn, options)
        assert vectorindex.is_current(conn, 1)
        conn.execute("drop index nw.vectors_1_hnsw")
        conn.execute("create index vectors_1_hnsw on nw.vectors_1 using hnsw (embedding vector_cosine_ops)")
        assert not vectorindex.is_current(conn, 1) and read_search(conn)["leg"] == "index"
        conn.execute("update nw.recall_check set recall = 0.5")
        tend(conn, options)
        assert vectorindex.is_current(conn, 1)
        assert read_search(conn)["recall"] >= 0.9, "measured anew"


def test_status_tells_the_recall(world: ShareWorld) -> None:
    fill(world, 40)
    with world.database.owner() as conn:
        assert read_status(conn, world.settings).search["leg"] == "exact"
        tend(conn, SearchSettings(exact_limit=30))
        conn.execute("update nw.recall_check set recall = 0.5")
        told = read_status(conn, world.settings).as_json()["search"]
    assert told["recall"] == 0.5
    assert "50.0%" in as_line(told) and "exact_limit" in as_line(told)


def test_notes_still_go_in_and_out_while_the_index_stands(world: ShareWorld) -> None:
    fill(world, 40)
    with world.database.owner() as conn:
        tend(conn, SearchSettings(exact_limit=30))
    world.write("0.md", "# Other\n\nAnother text.\n")
    (world.root / "1.md").unlink()
    report = world.sync()
    assert (report.changed, report.deleted) == (1, 1)


def test_an_index_that_cannot_be_made_costs_no_poll(world: ShareWorld) -> None:
    """As where /dev/shm or the disk is too small for it: its questions go on, every vector compared."""
    world.settings = world.settings.model_copy(update={"search": SearchSettings(exact_limit=30)})
    world.restart()
    with world.database.owner() as conn:
        world.sync()
        conn.execute("create table nw.vectors_1_hnsw_next ()")
        fill(world, 40)
        report = world.sync_all()
        assert (report.exit_code, read_search(conn)["leg"]) == (0, "exact")
        assert vectorindex.last_check(conn, 1) is None
        conn.execute("drop table nw.vectors_1_hnsw_next")
        assert world.sync_all().exit_code == 0
        assert read_search(conn)["leg"] == "index"
