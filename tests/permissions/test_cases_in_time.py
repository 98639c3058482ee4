"""Situations that only time makes: rows that say at each moment who must read the note; nobody else may."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from support.permission_world import HR, PEOPLE, TEAM, PermissionWorld, set_acl

from acl.posix import XATTR
from indexer.files import Files
from notewarden.errors import DirectoryUnreachable, IndexTooOld, NotewardenError

NOTE = "desk/case.md"
OLD, NEW = "kingfisher", "nightjar"
NOBODY: frozenset[str] = frozenset()
EVERYBODY = frozenset({"alice", "bob", "carol"})

Act = Callable[[PermissionWorld], object]


@dataclass(frozen=True)
class Moment:
    """What happens, and who then reads the word in the note; with `refused` whoever asks is told so."""

    act: Act
    reads: frozenset[str] | set[str]
    word: str = OLD
    refused: type[NotewardenError] | None = None


@dataclass(frozen=True)
class Case:
    """A situation; each moment follows on the one before. `everybody` is who may ever ask."""

    name: str
    moments: list[Moment]
    late_check: str = "off"
    before: Act = field(default=lambda world: None)


class FailingFiles(Files):
    """The file system on which notes whose name is in `failing` cannot be opened."""

    def __init__(self) -> None:
        self.failing: set[bytes] = set()

    def open_known(self, parent: int, name: bytes) -> int:
        if name in self.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().open_known(parent, name)


def text(word: str) -> str:
    return f"# Case\n\nThe bird of this note is the {word}.\n"


def for_group(gid: int) -> Act:
    return lambda world: set_acl(world.root / NOTE, 0o640, groups={gid: 4})


def for_all(world: PermissionWorld) -> None:
    os.removexattr(world.root / NOTE, XATTR)
    (world.root / NOTE).chmod(0o644)


def rewritten(word: str) -> Act:
    return lambda world: (world.root / NOTE).write_text(text(word))


def replaced(word: str, mode: int) -> Act:
    """As editors save: a new file takes the note's place."""

    def act(world: PermissionWorld) -> None:
        draft = world.root / "desk/.draft"
        draft.write_text(text(word))
        draft.chmod(mode)
        draft.rename(world.root / NOTE)

    return act


def model(*, broken: bool) -> Act:
    return lambda world: setattr(world.embedder, "broken", broken)


def people(old: str, new: str) -> Act:
    return lambda world: world.people(PEOPLE.replace(old, new))


def sync(world: PermissionWorld) -> object:
    return world.sync()


def all_of(*acts: Act) -> Act:
    return lambda world: [act(world) for act in acts]


def unreadable_list(world: PermissionWorld) -> None:
    """The note's ACL attribute cannot be read any more, though its time stamp says that it changed."""
    target, real = (world.root / NOTE).stat().st_ino, os.getxattr

    def getxattr(path, attribute, **options):  # type: ignore[no-untyped-def]
        if os.fstat(path).st_ino == target:
            raise OSError(errno.EIO, "fault")
        return real(path, attribute, **options)

    world.patch.setattr(os, "getxattr", getxattr)
    (world.root / NOTE).chmod((world.root / NOTE).stat().st_mode)


def older_than_max_age(world: PermissionWorld) -> None:
    world.run("update nw.share set swept_at = swept_at - max_age")


def nas_offline(world: PermissionWorld) -> None:
    world.root.rename(world.folder / "away")


def nas_back(world: PermissionWorld) -> None:
    shutil.rmtree(world.root, ignore_errors=True)
    (world.folder / "away").rename(world.root)


CASES = [
    Case(
        "21 membership of a nested group removed",
        [
            Moment(for_group(HR), {"alice"}),
            Moment(sync, {"alice"}),
            Moment(
                people('groups = ["team", "hr"]', 'groups = ["board"]\n[groups.board]\ngroups = ["hr"]'),
                {"alice"},
            ),
            Moment(
                people('groups = ["team", "hr"]', 'groups = ["board"]\n[groups.board]\ngroups = []'), NOBODY
            ),
        ],
        before=for_group(HR),
    ),
    Case(
        "34 the list changed, text and size and modification time did not",
        [
            Moment(for_group(HR), EVERYBODY),
            Moment(sync, {"alice"}),
            Moment(for_all, {"alice"}),
            Moment(sync, EVERYBODY),
        ],
    ),
    Case(
        "35 a deny for one that the group lets in",
        [
            Moment(lambda world: set_acl(world.root / NOTE, 0o640, {61001: 0}, {TEAM: 4}), {"alice", "bob"}),
            Moment(sync, {"bob"}),
        ],
        before=for_group(TEAM),
    ),
    Case(
        "38 another file with a looser list takes its place while embedding fails",
        [
            Moment(all_of(model(broken=True), replaced(NEW, 0o644)), {"alice"}),
            Moment(sync, {"alice"}),
            Moment(lambda world: None, NOBODY, NEW),
            Moment(all_of(model(broken=False), sync), EVERYBODY, NEW),
            Moment(lambda world: None, NOBODY),
        ],
        before=for_group(HR),
    ),
    Case(
        "38 another file with a tighter list takes its place while embedding fails",
        [
            Moment(all_of(model(broken=True), replaced(NEW, 0o600), for_group(HR)), EVERYBODY),
            Moment(sync, {"alice"}),
            Moment(all_of(model(broken=False), sync), {"alice"}, NEW),
        ],
    ),
    Case(
        "39 the list cannot be read in a poll",
        [Moment(unreadable_list, EVERYBODY), Moment(sync, NOBODY)],
    ),
    Case(
        "39 the list cannot be read in the late check",
        [Moment(unreadable_list, NOBODY)],
        late_check="prefer",
    ),
    Case(
        "41 the share away longer than max_age",
        [
            Moment(nas_offline, EVERYBODY),
            Moment(sync, EVERYBODY),
            Moment(older_than_max_age, NOBODY, refused=IndexTooOld),
            Moment(sync, NOBODY, refused=IndexTooOld),
            Moment(all_of(nas_back, sync), EVERYBODY),
        ],
    ),
    Case(
        "42 the directory is down and comes back",
        [
            Moment(lambda world: world.people("[users"), NOBODY, refused=DirectoryUnreachable),
            Moment(lambda world: world.people(PEOPLE), EVERYBODY),
        ],
    ),
    Case(
        "45 revoked after the search, before the answer",
        [Moment(for_group(HR), {"alice"})],
        late_check="require",
    ),
    Case(
        "54 a secret is cut and the list widened while embedding fails",
        [
            Moment(all_of(model(broken=True), rewritten(NEW), for_all), {"alice"}),
            Moment(sync, {"alice"}),
            Moment(sync, {"alice"}),
            Moment(all_of(model(broken=False), sync), EVERYBODY, NEW),
            Moment(lambda world: None, NOBODY),
        ],
        before=for_group(HR),
    ),
    Case(
        "54 the same, with the share asked before every answer",
        [
            Moment(all_of(model(broken=True), rewritten(NEW), for_all), {"alice"}),
            Moment(sync, {"alice"}),
            Moment(all_of(model(broken=False), sync), EVERYBODY, NEW),
        ],
        late_check="require",
        before=for_group(HR),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_who_reads_it_at_each_moment(
    permission_world: PermissionWorld, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = permission_world
    world.patch = monkeypatch
    world.configure(case.late_check)
    world.write(NOTE, text(OLD))
    case.before(world)
    world.sync()
    made = world.embedder.made
    for number, moment in enumerate(case.moments):
        moment.act(world)
        if moment.refused is not None:
            for person in sorted(EVERYBODY):
                with pytest.raises(moment.refused):
                    world.see(person, moment.word, NOTE)
            continue
        readers = {who for who in EVERYBODY if moment.word in world.see(who, moment.word, NOTE).text}
        assert readers == set(moment.reads), f"moment {number} of {case.name}"
    if not any(moment.word == NEW for moment in case.moments):
        assert world.embedder.made == made, "no embedding is computed for a permission"


def test_half_a_folder_re_permissioned_the_other_half_unread(permission_world: PermissionWorld) -> None:
    world = permission_world
    files = FailingFiles()
    world.configure("off")
    world.with_files(files)
    world.engine._watch = None
    names = [f"desk/{number}.md" for number in range(6)]
    for name in names:
        world.write(name, f"# {name}\n\nThe heron of {name} waits.\n")
    world.sync()
    assert world.rows("select count(*) from nw.audience") == [(1,)]
    assert world.see("bob", "heron").paths == set(names)
    for name in names[:3]:
        set_acl(world.root / name, 0o640, groups={HR: 4})
    for name in names[3:]:
        (world.root / name).write_text(f"# {name}\n\nThe bittern of {name} waits.\n")
        files.failing.add(os.fsencode(name.partition("/")[2]))
    assert world.sync().unreadable == 3
    assert world.see("bob", "heron").paths == NOBODY
    assert world.see("alice", "heron").paths == set(names[:3]), "unread notes are hidden, neither old nor new"
    files.failing.clear()
    world.sync()
    assert world.see("bob", "heron").paths == set(names[3:])
    assert world.see("alice", "heron").paths == set(names)
    assert "bittern" in world.see("bob", "bittern").text
