"""Which folder is the share: the same one, a remounted or restored one, and never another one."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable

import pytest
from faulty_files import OPEN_FOLDER, OPEN_NOTE
from share_world import ShareWorld

from indexer.confirm import Confirmation

MARKER = ".notewarden-share"


def fill(world: ShareWorld, count: int = 30) -> set[str]:
    names = {f"docs{number % 3}/{number}.md" for number in range(count)}
    for name in names:
        world.write(name)
    world.sync()
    return names


def restore(world: ShareWorld, *, keep: Callable[[str], bool] = lambda name: True) -> None:
    """Other files of the same names and bytes stand in another folder, as after a restore from a backup."""
    world.root.rename(world.folder / "lost")
    for file in sorted((world.folder / "lost").rglob("*")):
        target = world.root / file.relative_to(world.folder / "lost")
        if file.is_file() and keep(file.name):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    world.files.root = world.root.resolve()


def refused(world: ShareWorld, names: set[str]) -> bool:
    report = world.sync()
    assert (report.deleted, report.held) == (0, 0)
    assert world.paths() == names
    assert world.readable("alice") == names
    return report.status == "unavailable"


def test_a_restored_share_is_the_share_and_nothing_is_embedded_again(world: ShareWorld) -> None:
    names = fill(world)
    restore(world)
    report = world.sync_all()
    assert (report.shares[0].status, report.shares[0].deleted, report.chunks_embedded) == ("ok", 0, 0)
    assert world.readable("alice") == names


def test_a_restore_that_lacks_some_notes_is_accepted_and_deletes_them_by_the_rules(world: ShareWorld) -> None:
    fill(world)
    restore(world, keep=lambda name: name not in ("1.md", "2.md"))
    report = world.sync()
    assert (report.status, report.deleted) == ("ok", 2)


def test_a_share_of_the_same_names_and_other_texts_is_another_one(world: ShareWorld) -> None:
    names = fill(world)
    restore(world)
    for name in names:
        world.write(name, f"# About {name}\n\nThis note tells of {name} and of something else\n")
    assert refused(world, names)


def test_a_marker_that_names_the_share_is_the_way_out(world: ShareWorld) -> None:
    names = fill(world)
    restore(world, keep=lambda name: name == "1.md")
    assert refused(world, names)
    assert MARKER in world.one("select reason from nw.share")
    (world.root / MARKER).write_text("another share\n")
    assert refused(world, names)
    (world.root / MARKER).write_text("notes\n")
    report = world.sync()
    assert (report.status, report.deleted, report.held) == ("ok", 0, 29)


def test_a_marker_that_was_there_must_be_there(world: ShareWorld) -> None:
    world.root.mkdir(exist_ok=True)
    (world.root / MARKER).write_text("8f14e45f\n")
    names = fill(world)
    (world.root / MARKER).unlink()
    assert refused(world, names)
    (world.root / MARKER).write_text("8f14e45f\n")
    assert not refused(world, names)
    restore(world, keep=lambda name: name != MARKER)
    assert refused(world, names)  # it is the copy of the notes without the marker
    shutil.copyfile(world.folder / "lost" / MARKER, world.root / MARKER)
    assert world.sync().status == "ok"


def test_a_marker_that_strays_in_and_goes_again_costs_nothing(world: ShareWorld) -> None:
    names = fill(world)
    for _ in range(2):
        (world.root / MARKER).write_text("of some other folder\n")
        assert not refused(world, names)
        assert not refused(world, names)
        (world.root / MARKER).unlink()
        assert not refused(world, names)


def test_without_a_marker_that_came_later_another_share_is_not_this_one(world: ShareWorld) -> None:
    """Its folder may have the same numbers: where a marker was, the notes must be there too."""
    names = fill(world)
    (world.root / MARKER).write_text("8f14e45f\n")
    assert not refused(world, names)
    (world.root / MARKER).unlink()
    for name in names:
        (world.root / name).unlink()
    for number in range(30):
        world.write(f"docs{number % 3}/other{number}.md")
    assert refused(world, names)


def test_who_may_write_to_the_root_stops_no_poll_by_a_marker(world: ShareWorld) -> None:
    """A share without one goes on as long as it is the same folder with the same notes."""
    names = fill(world)
    for text in ("one of mine\n", "another of mine\n", "with a \0, as no database takes it\n"):
        (world.root / MARKER).write_text(text)
        assert not refused(world, names)
    world.files.fail(os.fsencode(MARKER), errno.EACCES, OPEN_NOTE)
    assert not refused(world, names)
    world.files.heal()
    (world.root / MARKER).unlink()
    os.mknod(world.root / MARKER, stat.S_IFSOCK | 0o600)  # opening one fails with ENXIO
    assert not refused(world, names)


def test_a_marker_that_came_later_makes_no_other_share_this_one(world: ShareWorld) -> None:
    """It may have been copied here with all the rest of the very share that is then mounted instead."""
    names = fill(world)
    (world.root / MARKER).write_text("8f14e45f\n")
    assert not refused(world, names)
    wrong_share(world)
    (world.root / MARKER).write_text("8f14e45f\n")
    assert refused(world, names)


def test_a_root_that_holds_junk_alone_is_an_emptied_one(world: ShareWorld) -> None:
    names = fill(world)
    for name in ("docs0", "docs1", "docs2"):
        shutil.rmtree(world.root / name)
    for junk in ("@eaDir", "#recycle", ".snapshot"):
        (world.root / junk).mkdir()
    (world.root / "._x.md").write_bytes(b"\0")
    assert refused(world, names)
    confirmation = Confirmation(world.database, world.directory)
    share = world.settings.shares[0]
    assert confirmation.confirm(share, emptied=True).deleted == 30
    assert world.paths() == set()


# The drill: six disasters, after each of which every note stands and serves; then a delete that is meant.


def unmounted(world: ShareWorld) -> None:
    world.root.rename(world.folder / "away")


def emptied(world: ShareWorld) -> None:
    unmounted(world)
    world.root.mkdir()


def refused_root(world: ShareWorld) -> None:
    world.files.fail(b"", errno.EACCES, OPEN_FOLDER, below=False)


def failing_subtree(world: ShareWorld) -> None:
    world.files.fail(b"docs0", errno.EIO)


def half_listing(world: ShareWorld) -> None:
    for folder in (b"", b"docs0", b"docs1"):
        world.files.halved[folder] = 1


def wrong_share(world: ShareWorld) -> None:
    emptied(world)
    for number in range(70):
        world.write(f"docs{number % 3}/other{number}.md")


def stale_mount(world: ShareWorld) -> None:
    world.files.fail(b"", errno.ESTALE)


@pytest.mark.parametrize(
    "disaster",
    [unmounted, emptied, refused_root, failing_subtree, half_listing, wrong_share, stale_mount],
)
def test_the_mass_delete_drill(world: ShareWorld, disaster: Callable[[ShareWorld], None]) -> None:
    names = fill(world, 45)
    disaster(world)
    for _ in range(3):
        report = world.sync()
        assert (report.deleted, report.held) == (0, 0)
        assert world.readable("alice") == names
    assert world.paths() == names
    world.files.heal()
    if (world.folder / "away").exists():
        shutil.rmtree(world.root, ignore_errors=True)
        (world.folder / "away").rename(world.root)
    report = world.sync_all()
    assert (report.exit_code, report.chunks_embedded) == (0, 0)
    assert world.readable("alice") == names


def test_a_true_mass_delete_goes_through_when_it_is_confirmed(world: ShareWorld) -> None:
    fill(world, 45)
    shutil.rmtree(world.root / "docs0")
    shutil.rmtree(world.root / "docs1")
    for _ in range(3):
        assert (world.sync().held, world.one("select count(*) from nw.note")) == (30, 45)
    assert len(world.readable("alice")) == 15
    share = world.settings.shares[0]
    done = Confirmation(world.database, world.directory).confirm(share)
    assert (done.deleted, done.returned, len(world.paths())) == (30, 0, 15)
    report = world.sync_all()
    assert (report.exit_code, report.shares[0].held) == (0, 0)
    world.whole()


def test_the_identity_is_checked_again_before_the_deletes(world: ShareWorld) -> None:
    """Another share is mounted after the walk, while the last notes are read."""
    names = fill(world, 30)
    (world.root / "docs0/0.md").unlink()
    world.write("docs1/1.md", "# Edited\n\nso that it is read\n")
    swapped = []

    def swap(path: bytes) -> None:
        if not swapped:
            swapped.append(os.fsdecode(path))
            wrong_share(world)

    world.files.before_read = swap
    report = world.sync()
    assert swapped
    assert (report.status, report.deleted, report.held) == ("unavailable", 0, 0)
    assert world.paths() == names
