"""Deletes: proved, held when many, hidden at once; and nothing is lost because something else failed."""

from __future__ import annotations

import errno
import shutil

import pytest
from faulty_files import OPEN_FOLDER, SCAN
from share_world import ShareWorld

from indexer.deletes import judge
from notewarden.settings_sections import DeletesSettings


def fill(world: ShareWorld, count: int, folder: str = "docs") -> set[str]:
    names = {f"{folder}/{number}.md" for number in range(count)}
    for name in names:
        world.write(name)
    return names


def test_few_missing_notes_go_at_once(world: ShareWorld) -> None:
    names = fill(world, 30)
    world.sync()
    for number in range(20):
        (world.root / f"docs/{number}.md").unlink()
    report = world.sync_all()
    assert (report.shares[0].deleted, report.shares[0].held, report.exit_code) == (20, 0, 0)
    assert world.paths() == names - {f"docs/{n}.md" for n in range(20)}
    world.whole()


def test_many_missing_notes_are_hidden_at_once_and_go_in_the_next_poll(world: ShareWorld) -> None:
    fill(world, 100)
    world.sync()
    for number in range(21):
        (world.root / f"docs/{number}.md").unlink()
    report = world.sync_all()
    assert (report.shares[0].deleted, report.shares[0].held, report.exit_code) == (0, 21, 6)
    assert len(world.readable("owner")) == 79
    assert len(world.paths()) == 100
    report = world.sync_all()
    assert (report.shares[0].deleted, report.shares[0].held, report.exit_code) == (21, 0, 0)
    assert len(world.paths()) == 79
    world.whole()


def test_more_than_the_share_allows_waits_for_an_admin(world: ShareWorld) -> None:
    fill(world, 60)
    world.sync()
    for number in range(25):
        (world.root / f"docs/{number}.md").unlink()
    for _ in range(4):
        report = world.sync_all()
        assert (report.shares[0].deleted, report.shares[0].held, report.exit_code) == (0, 25, 6)
        assert len(world.readable("owner")) == 35
    assert len(world.paths()) == 60


def test_held_notes_that_appear_again_serve_again_and_count_anew(world: ShareWorld) -> None:
    fill(world, 60)
    world.sync()
    shutil.copytree(world.root / "docs", world.folder / "saved")
    for number in range(25):
        (world.root / f"docs/{number}.md").unlink()
    world.sync()
    for number in range(25):
        (world.folder / f"saved/{number}.md").rename(world.root / f"docs/{number}.md")
    report = world.sync_all()
    assert (report.shares[0].held, report.exit_code) == (0, 0)
    assert len(world.readable("alice")) == 60
    assert world.one("select count(*) from nw.note where hidden or missing > 0") == 0


def test_a_held_note_that_appears_again_with_other_text_is_no_longer_held(world: ShareWorld) -> None:
    fill(world, 60)
    world.sync()
    for number in range(25):
        (world.root / f"docs/{number}.md").unlink()
    world.sync()
    for number in range(25):
        world.write(f"docs/{number}.md", f"# Back\n\nbroken {number}\n")
    world.embedder.poison = {"broken": False}
    report = world.sync()
    assert (report.held, report.pending) == (0, 25)
    assert world.one("select count(*) from nw.note where missing > 0") == 0


def test_chmod_beside_held_notes_is_counted(world: ShareWorld) -> None:
    fill(world, 60)
    world.sync()
    for number in range(25):
        (world.root / f"docs/{number}.md").unlink()
    world.sync()
    (world.root / "docs/50.md").chmod(0o600)
    assert world.sync().acl_changed == 1


def test_held_is_what_stands_also_while_the_share_is_away(world: ShareWorld) -> None:
    fill(world, 60)
    world.sync()
    for number in range(25):
        (world.root / f"docs/{number}.md").unlink()
    world.sync()
    world.root.rename(world.folder / "elsewhere")
    report = world.sync()
    assert (report.status, report.held) == ("unavailable", 25)


def test_a_note_in_the_recycle_bin_is_deleted(world: ShareWorld) -> None:
    file = world.write("docs/a.md")
    world.write("docs/b.md")
    world.sync()
    (world.root / "#recycle").mkdir()
    file.rename(world.root / "#recycle" / "a.md")
    report = world.sync()
    assert (report.deleted, report.moved) == (1, 0)
    assert world.paths() == {"docs/b.md"}


def test_an_excluded_folder_leaves_the_index(world: ShareWorld) -> None:
    names = fill(world, 3) | fill(world, 3, "old")
    world.sync()
    assert world.paths() == names
    world.configure(exclude=["old/**"])
    assert world.sync().deleted == 3
    assert world.paths() == {f"docs/{n}.md" for n in range(3)}


def unmounted(world: ShareWorld) -> None:
    world.root.rename(world.folder / "elsewhere")


def emptied(world: ShareWorld) -> None:
    unmounted(world)
    world.root.mkdir()


def emptied_in_place(world: ShareWorld) -> None:
    shutil.rmtree(world.root / "docs")


def another_folder(world: ShareWorld) -> None:
    emptied(world)
    world.write("docs/other.md")


def refused_root(world: ShareWorld) -> None:
    world.files.fail(b"", errno.EACCES, OPEN_FOLDER, below=False)


def failing_root(world: ShareWorld) -> None:
    world.files.fail(b"", errno.EIO, SCAN, below=False)


@pytest.mark.parametrize(
    "disaster", [unmounted, emptied, emptied_in_place, another_folder, refused_root, failing_root]
)
def test_a_share_that_is_not_itself_loses_nothing(world: ShareWorld, disaster) -> None:
    names = fill(world, 5)
    world.sync()
    swept = world.one("select swept_at from nw.share")
    disaster(world)
    for _ in range(3):
        report = world.sync_all()
        assert (report.exit_code, report.shares[0].status, report.shares[0].deleted) == (4, "unavailable", 0)
    assert world.paths() == names
    assert world.readable("alice") == names
    assert world.one("select swept_at from nw.share") == swept
    assert world.one("select reason from nw.share")


def test_another_folder_mounted_during_the_poll_deletes_nothing(world: ShareWorld) -> None:
    names = fill(world, 5)
    world.sync()
    (world.root / "docs/1.md").unlink()
    (world.root / "docs/2.md").write_text("# Edited\n\nso that something is read\n")
    moved = []

    def switch(path: bytes) -> None:
        if not moved:
            moved.append(path)
            emptied(world)

    world.files.before_read = switch
    report = world.sync()
    assert moved
    assert (report.status, report.deleted) == ("unavailable", 0)
    assert world.paths() == names


def test_a_failing_subtree_is_served_on_and_the_sweep_does_not_count(world: ShareWorld) -> None:
    names = fill(world, 30) | fill(world, 2, "other") | fill(world, 3, "docs/deep")
    world.sync()
    swept = world.one("select swept_at from nw.share")
    (world.root / "other/1.md").unlink()
    world.files.fail(b"docs", errno.EIO, SCAN)
    report = world.sync_all()
    assert (report.shares[0].deleted, report.shares[0].held, report.exit_code) == (1, 0, 6)
    assert world.readable("alice") == names - {"other/1.md"}
    assert world.one("select swept_at from nw.share") == swept
    first = world.trouble()["docs"]
    assert first.state == "unreadable"
    world.sync()
    assert (world.trouble()["docs"].attempts, world.trouble()["docs"].since) == (2, first.since)
    world.files.heal()
    assert world.sync_all().exit_code == 0
    assert world.trouble() == {}
    assert world.one("select swept_at from nw.share") > swept


def test_trouble_below_a_failing_folder_is_kept(world: ShareWorld) -> None:
    world.write("docs/poison.md", "# P\n\npoison\n")
    world.write("a.md")
    world.embedder.poison = {"poison": True}
    for _ in range(3):
        world.sync()
    assert world.trouble()["docs/poison.md"].state == "parked"
    world.files.fail(b"docs", errno.EIO, SCAN)
    world.sync()
    assert world.trouble()["docs/poison.md"].state == "parked"


def test_a_subtree_that_refuses_us_is_hidden_and_not_deleted(world: ShareWorld) -> None:
    names = fill(world, 30) | fill(world, 2, "other")
    world.sync()
    swept = world.one("select swept_at from nw.share")
    world.files.fail(b"docs", errno.EACCES, OPEN_FOLDER)
    report = world.sync_all()
    assert (report.shares[0].deleted, report.shares[0].held, report.exit_code) == (0, 0, 6)
    assert world.readable("owner") == {"other/0.md", "other/1.md"}
    assert world.paths() == names
    assert world.one("select swept_at from nw.share") > swept
    world.files.heal()
    world.sync()
    assert world.readable("alice") == names


def test_a_half_listing_is_noticed_by_the_second_look(world: ShareWorld) -> None:
    names = fill(world, 30)
    world.sync()
    world.files.halved[b"docs"] = 10
    report = world.sync()
    assert (report.deleted, report.held) == (0, 0)
    assert world.paths() == names
    assert world.readable("alice") == names


def test_a_folder_gone_between_listing_and_opening_loses_nothing(world: ShareWorld) -> None:
    names = fill(world, 30)
    world.sync()
    world.files.fail(b"docs", errno.ENOENT, OPEN_FOLDER, below=False)
    world.sync()
    assert world.paths() == names
    assert world.readable("alice") == names


def test_a_deleted_folder_is_deleted(world: ShareWorld) -> None:
    fill(world, 5)
    world.write("other/a.md")
    world.sync()
    shutil.rmtree(world.root / "docs")
    assert world.sync().deleted == 5
    assert world.paths() == {"other/a.md"}


@pytest.mark.parametrize(
    ("gone", "in_share", "deleted"),
    [
        (dict.fromkeys(range(20), 0), 20, 20),
        (dict.fromkeys(range(21), 0), 1000, 0),
        (dict.fromkeys(range(21), 1), 70, 21),
        (dict.fromkeys(range(21), 1), 69, 0),
        ({n: n % 2 for n in range(30)}, 1000, 15),
        (dict.fromkeys(range(400), 9), 1000, 0),
    ],
)
def test_the_rule_of_holds(gone: dict[int, int], in_share: int, deleted: int) -> None:
    verdict = judge(gone, in_share, DeletesSettings())
    assert len(verdict.delete) == deleted
    assert set(verdict.delete) | set(verdict.hold) == set(gone)
