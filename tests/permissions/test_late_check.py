"""When the late check cannot look: what closes, what falls back to the index, and what is said."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.permission_world import PEOPLE, PermissionWorld

from answerer.latecheck import find_watch
from indexer.files import Files
from notewarden.errors import DirectoryUnreachable, ShareUnavailable

WORD = "lapwing"


class Switched(Files):
    """The file system; where `fault` gives an errno for a kind of call and a name, that call fails."""

    fault: Callable[[str, bytes], int | None] = staticmethod(lambda kind, name: None)
    opened: list[bytes]

    def __init__(self) -> None:
        self.opened = []

    def open_root(self, root: Path) -> int:
        self._trip("root", b"")
        return super().open_root(root)

    def open_folder(self, parent: int, name: bytes) -> int:
        self._trip("folder", name)
        return super().open_folder(parent, name)

    def open_note(self, parent: int, name: bytes) -> int:
        self.opened.append(name)
        self._trip("note", name)
        return super().open_note(parent, name)

    def stat(self, fd: int) -> os.stat_result:
        self._trip("stat", b"")
        return super().stat(fd)

    def _trip(self, kind: str, name: bytes) -> None:
        number = self.fault(kind, name)
        if number is not None:
            raise OSError(number, os.strerror(number))


@pytest.fixture
def world(permission_world: PermissionWorld) -> PermissionWorld:
    permission_world.write("a.md", f"# A\n\nThe {WORD} of a calls.\n")
    permission_world.write("sub/b.md", f"# B\n\nThe {WORD} of b calls.\n")
    permission_world.sync()
    permission_world.configure("prefer")
    permission_world.with_files(Switched())
    return permission_world


def failing(world: PermissionWorld, kind: str, number: int, name: bytes | None = None) -> None:
    fault = lambda what, of: number if what == kind and name in (None, of) else None  # noqa: E731
    world.files.fault = fault  # type: ignore[attr-defined]


def missing(world: PermissionWorld) -> None:
    world.root.rename(world.folder / "away")


def emptied(world: PermissionWorld) -> None:
    for entry in world.root.iterdir():
        shutil.move(entry, world.folder / f"was-{entry.name}")


def another_folder(world: PermissionWorld) -> None:
    missing(world)
    world.root.mkdir()
    (world.root / "stranger.md").write_text("# Another share\n")


def server_gone(world: PermissionWorld) -> None:
    failing(world, "root", errno.EHOSTDOWN)


def stale(world: PermissionWorld) -> None:
    failing(world, "root", errno.ESTALE)


GONE = [missing, emptied, another_folder, server_gone, stale]


@pytest.mark.parametrize("away", GONE, ids=lambda away: away.__name__)
def test_a_share_that_gives_no_answer_is_answered_from_the_index_and_said(
    world: PermissionWorld, away: Callable[[PermissionWorld], None]
) -> None:
    away(world)
    seen = world.see("bob", WORD, "a.md")
    assert seen.paths == {"a.md", "sub/b.md"}
    (notice,) = seen.notices
    assert "last sync" in notice and "could not be reached" in notice


@pytest.mark.parametrize("away", GONE, ids=lambda away: away.__name__)
def test_a_share_that_gives_no_answer_gives_none_where_the_check_is_required(
    world: PermissionWorld, away: Callable[[PermissionWorld], None]
) -> None:
    world.configure("require")
    world.with_files(Switched())
    away(world)
    asker = world.asker("bob")
    for call in (world.engine.ask, world.engine.search, world.engine.show):
        with pytest.raises(ShareUnavailable) as caught:
            call(asker, "a.md" if call == world.engine.show else WORD)
        assert caught.value.exit_code == 4 and "nothing is shown" in str(caught.value)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE])
def test_a_root_that_refuses_us_closes_the_share(world: PermissionWorld, number: int) -> None:
    failing(world, "root", number)
    seen = world.see("bob", WORD, "a.md")
    assert (seen.paths, seen.notices) == (frozenset(), ())


@pytest.mark.parametrize("kind", ["note", "stat", "folder"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.EHOSTDOWN, errno.ENOENT])
def test_an_error_on_one_note_drops_that_note_alone(world: PermissionWorld, kind: str, number: int) -> None:
    name = {"note": b"b.md", "folder": b"sub", "stat": None}[kind]
    failing(world, kind, number, name)
    seen = world.see("bob", WORD, "sub/b.md")
    expected = set() if kind == "stat" else {"a.md"}
    assert (seen.paths, seen.notices) == (frozenset(expected), ())


def test_a_mount_that_hangs_is_a_share_that_gives_no_answer(
    world: PermissionWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, real = threading.Event(), Files.open_root

    def open_root(self: Files, root: Path) -> int:
        hanging.wait(30)
        return real(self, root)

    monkeypatch.setattr("indexer.latecheck._LONGEST_S", 0.2)
    monkeypatch.setattr(Switched, "open_root", open_root)
    world.with_files(Switched())
    try:
        seen = world.see("bob", WORD, "a.md")
    finally:
        hanging.set()
    assert seen.paths == {"a.md", "sub/b.md"} and "could not be reached" in seen.notices[0]


def test_only_what_may_leave_is_looked_at(world: PermissionWorld) -> None:
    for number in range(60):
        world.write(f"more/{number}.md", f"# {number}\n\nThe {WORD} of {number} calls.\n")
    world.sync()
    world.files.opened.clear()  # type: ignore[attr-defined]
    assert len(world.engine.search(world.asker("bob"), WORD, k=5).result.results) == 5
    assert len(world.files.opened) == 5  # type: ignore[attr-defined]


def test_a_directory_that_cannot_tell_gives_no_answer(world: PermissionWorld) -> None:
    world.configure("prefer", acl={"source": "posix", "share_readers": ["team"]})
    world.sync()
    asker = world.asker("bob")
    world.people("[users")
    with pytest.raises(DirectoryUnreachable):
        world.engine.search(asker, WORD)


def declared(readers: list[str], denied: list[str] = []) -> dict[str, Any]:  # noqa: B006
    return {"source": "declared", "rule": [{"folder": "", "readers": readers, "denied": denied}]}


def test_declared_rules_count_as_the_configuration_has_them_now(world: PermissionWorld) -> None:
    world.configure("prefer", acl=declared(["team"]))
    world.sync()
    seen = world.see("bob", WORD, "a.md")
    assert seen.paths == {"a.md", "sub/b.md"} and seen.notices == ()
    world.configure("prefer", acl=declared(["hr"]))
    assert world.see("bob", WORD, "a.md").paths == frozenset()
    assert world.see("alice", WORD, "a.md").paths == {"a.md", "sub/b.md"}
    world.configure("prefer", acl=declared(["everyone"]))
    assert world.see("carol", WORD, "a.md").paths == frozenset(), "wider only with the next sync"


def test_a_denied_group_that_left_the_directory_denies_everybody_at_once(world: PermissionWorld) -> None:
    """Deleted, or lost by mistake: nobody can tell any more whom the rule kept out."""
    for late_check in ("prefer", "off"):
        world.people(PEOPLE)
        world.configure(late_check, acl=declared(["everyone"], ["hr"]))
        world.sync()
        assert world.see("bob", WORD, "a.md").paths == {"a.md", "sub/b.md"}
        assert world.see("alice", WORD, "a.md").paths == frozenset()
        world.people(PEOPLE.replace('"hr"', "").replace("[groups.hr]", "[groups.finance]"))
        for person in ("alice", "bob", "carol"):
            assert world.see(person, WORD, "a.md").paths == frozenset(), f"{person} with {late_check}"
        world.people(PEOPLE)
        assert world.see("bob", WORD, "a.md").paths == {"a.md", "sub/b.md"}


def test_a_denied_group_deleted_between_syncs_stays_denied_on_disk_too(world: PermissionWorld) -> None:
    """The same where the deny stands in a file's own list: a group without r, under others with r."""
    from support.permission_world import HR, set_acl

    world.configure("off")
    set_acl(world.root / "a.md", 0o644, groups={HR: 0})
    world.sync()
    assert "a.md" in world.see("bob", WORD).paths and "a.md" not in world.see("alice", WORD).paths
    world.people(
        PEOPLE.replace('"hr"', "").replace("[groups.hr]", "[groups.finance]").replace(f"2-{HR}", "2-9")
    )
    for person in ("alice", "bob", "carol"):
        assert "a.md" not in world.see(person, WORD).paths


def test_the_check_is_found_where_the_index_is_embedded(world: PermissionWorld) -> None:
    assert find_watch(world.settings, world.directory) is not None
    world.configure("off")
    assert find_watch(world.settings, world.directory) is None


def test_lists_are_read_from_what_was_opened(world: PermissionWorld) -> None:
    """A file that everybody may read and that takes the note's place meanwhile does not vouch for it."""
    note, swapped = world.root / "a.md", []
    real = Files.open_note

    def swap(self: Files, parent: int, name: bytes) -> int:
        fd = real(self, parent, name)
        if name == b"a.md" and not swapped:
            swapped.append(note.rename(world.root / "a.hidden"))
            note.write_text("# Another\n")
        return fd

    note.chmod(stat.S_IRUSR)
    world.files.__class__ = type("Swapping", (Files,), {"open_note": swap})
    rows = world.engine.search(world.asker("bob"), WORD).result.results
    assert swapped and {row.path for row in rows} == {"sub/b.md"}
