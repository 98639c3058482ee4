"""The share's files and the walk over them; the faulty file system keeps the contract of the real one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_files import OPEN_FOLDER, SCAN, FaultyFiles
from test_hint import OPEN, Lists

from acl.model import AccessList
from indexer.files import Files, opened_folder, opened_note
from indexer.patterns import Patterns
from indexer.survey import Surveyor
from indexer.walk import Failure, Listing, Walk

Make = Callable[[Path], Files]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "hr" / "deep").mkdir(parents=True)
    (root / "it").mkdir()
    for path in ("a.md", "hr/b.md", "hr/deep/c.md", "it/d.md", "it/e.txt"):
        (root / path).write_text(f"text of {path}")
    return root


@pytest.fixture(
    params=[lambda root: Files(), lambda root: FaultyFiles(root.resolve())], ids=["real", "faulty"]
)
def files(request: pytest.FixtureRequest, tree: Path) -> Files:
    return request.param(tree)


def open_fds() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def error_of(call: Callable[[], object]) -> int | None:
    before = open_fds()
    with pytest.raises(OSError) as caught:
        call()
    assert open_fds() == before
    return caught.value.errno


def enter(files: Files, root: int, path: bytes, opener=opened_note) -> bytes:
    with opener(files, root, path) as fd:
        return files.read(fd, 100) if opener is opened_note else b""


def test_the_contract_of_reading(files: Files, tree: Path) -> None:
    root = files.open_root(tree)
    with opened_note(files, root, b"hr/deep/c.md") as fd:
        assert files.read(fd, 100) == files.read(fd, 100) == b"text of hr/deep/c.md"
        assert files.read(fd, 4) == b"text"
        assert files.read(fd, 0) == b""
        assert files.stat(fd).st_ino == (tree / "hr/deep/c.md").stat().st_ino
    with opened_folder(files, root, b"hr") as folder:
        assert files.look(folder, b"b.md").st_size == len("text of hr/b.md")
        assert {name for name, _ in files.scan(folder)} == {"b.md", "deep"}
        assert {name for name, _ in files.scan(folder)} == {"b.md", "deep"}
    with opened_folder(files, root, b"") as folder:
        assert files.stat(folder).st_ino == tree.stat().st_ino
    os.close(root)


def test_the_contract_of_a_file_s_birth(files: Files, tree: Path) -> None:
    root = files.open_root(tree)
    assert files.kind(tree)
    with opened_note(files, root, b"a.md") as fd:
        born = files.born(fd)
        assert born is None or 0 < born <= files.stat(fd).st_ctime_ns
    os.close(root)


def test_the_contract_of_refusing(files: Files, tree: Path) -> None:
    (tree / "link.md").symlink_to(tree / "a.md")
    (tree / "linked").symlink_to(tree / "hr")
    os.mkfifo(tree / "pipe.md")
    root = files.open_root(tree)
    links = (errno.ELOOP, errno.ENOTDIR)
    assert error_of(lambda: enter(files, root, b"link.md")) == errno.ELOOP
    assert error_of(lambda: enter(files, root, b"linked/b.md")) in links
    assert error_of(lambda: enter(files, root, b"linked", opened_folder)) in links
    assert error_of(lambda: enter(files, root, b"pipe.md")) == errno.EINVAL
    assert error_of(lambda: enter(files, root, b"hr")) == errno.EINVAL
    assert error_of(lambda: enter(files, root, b"none/b.md")) == errno.ENOENT
    assert error_of(lambda: enter(files, root, b"a.md/b.md")) == errno.ENOTDIR
    with opened_folder(files, root, b"") as folder:
        assert error_of(lambda: files.look(folder, b"none")) == errno.ENOENT
    os.close(root)


def test_another_file_system_below_the_root_is_refused() -> None:
    files = Files()
    root = files.open_root(Path("/"))
    assert Path("/proc").stat().st_dev != files.stat(root).st_dev
    assert error_of(lambda: files.open_folder(root, b"proc")) == errno.EXDEV
    os.close(root)


def walk(files: Files, tree: Path, source: Lists | None = None) -> dict[bytes, Listing | Failure]:
    root = files.open_root(tree)
    before = open_fds()
    found = list(Walk(files, source or Lists(), Patterns(["**/*.md"], [])).run(root))
    assert open_fds() == before
    os.close(root)
    assert len({one.folder for one in found}) == len(found)
    return {one.folder: one for one in found}


def notes(found: dict[bytes, Listing | Failure]) -> set[bytes]:
    return {path for one in found.values() if isinstance(one, Listing) for path, _ in one.notes}


def test_a_walk_lists_every_folder_once(files: Files, tree: Path) -> None:
    found = walk(files, tree)
    assert set(found) == {b"", b"hr", b"hr/deep", b"it"}
    assert notes(found) == {b"a.md", b"hr/b.md", b"hr/deep/c.md", b"it/d.md"}
    assert found[b"it"].entries == 2


def test_a_walk_follows_no_link_and_names_what_looks_like_a_note(files: Files, tree: Path) -> None:
    (tree / "loop").symlink_to(tree)
    (tree / "l.md").symlink_to(tree / "a.md")
    os.mkfifo(tree / "p.md")
    found = walk(files, tree)
    assert notes(found) == {b"a.md", b"hr/b.md", b"hr/deep/c.md", b"it/d.md"}
    assert dict(found[b""].odd) == {
        b"l.md": "a link; links are not followed",
        b"p.md": "not a regular file",
    }


def test_one_failing_folder_costs_no_other(tree: Path) -> None:
    for error, refused in (
        (errno.EIO, False),
        (errno.EACCES, True),
        (errno.ESTALE, False),
        (errno.EXDEV, True),
    ):
        for kind in (OPEN_FOLDER, SCAN):
            files = FaultyFiles(tree.resolve())
            files.fail(b"hr", error, kind, below=False)
            found = walk(files, tree)
            failure = found[b"hr"]
            assert isinstance(failure, Failure)
            assert failure.refused == refused
            assert failure.reason
            assert notes(found) == {b"a.md", b"it/d.md"}


def test_guards_add_up_from_the_root_down(tree: Path) -> None:
    class ByFolder(Lists):
        def parent_lists(self, fd: int, folder: bytes) -> tuple[AccessList, ...]:
            from acl.compile import Meaning, quarantine

            return (quarantine(Meaning("host", "x", "parent"), folder.decode() or "root"),)

    found = walk(Files(), tree, ByFolder())
    assert [one.reason for one in found[b"hr/deep"].guards] == ["root", "hr", "hr/deep"]
    assert [one.reason for one in found[b""].guards] == ["root"]


def test_guards_that_cannot_be_read_fail_the_folder_alone(tree: Path) -> None:
    class Failing(Lists):
        def parent_lists(self, fd: int, folder: bytes) -> tuple[AccessList, ...]:
            if folder == b"hr":
                raise OSError(errno.EIO, "Input/output error")
            return (OPEN,)

    found = walk(Files(), tree, Failing())
    assert isinstance(found[b"hr"], Failure)
    assert notes(found) == {b"a.md", b"it/d.md"}


def test_a_deep_tree_is_walked_with_few_descriptors(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(150):
        folder = folder / "d"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("deep")
    assert notes(walk(Files(), tmp_path)) == {b"d/" * 150 + b"a.md"}


def test_names_stay_raw(tmp_path: Path) -> None:
    names = {b"\xff.md", "é.md".encode(), "e\u0301.md".encode(), b"a\nb.md", b" .md", b"..md"}
    for name in names:
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_text("x")
    assert notes(walk(Files(), tmp_path)) == names


def test_a_walk_that_is_given_up_closes_its_folders(tree: Path) -> None:
    root = Files().open_root(tree)
    before = open_fds()
    walking = Walk(Files(), Lists(), Patterns(["**/*.md"], [])).run(root)
    next(walking)
    next(walking)
    walking.close()
    assert open_fds() == before
    os.close(root)


def test_a_survey_of_nothing_known_finds_all_fresh(tree: Path) -> None:
    survey = Surveyor({}, {}, trust_hints=True).run(walk(Files(), tree).values())
    assert {path for path, _ in survey.fresh} == {b"a.md", b"hr/b.md", b"hr/deep/c.md", b"it/d.md"}
    assert (survey.seen, survey.absent, survey.suspects) == (4, [], [])
