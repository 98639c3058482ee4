"""A mount whose server is gone: the kernel itself keeps whoever asks for anything waiting, for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from share_world import ShareWorld
from test_crashes import absent
from test_sweep_declared import declared

from indexer.files import Files
from indexer.report import SyncReport
from notewarden import patient
from notewarden.errors import ConfigError
from notewarden.settings import find_config
from notewarden.trust import require_trusted

SERVER = Path(__file__).with_name("fuse_server.py")
PATIENCE_S = 0.5
NAMES = {f"docs/{number}.md" for number in range(10)}


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The share's folder is a mount that a process of ours serves from the folder `behind`."""
    behind, target = tmp_path / "behind", tmp_path / "notes"
    behind.mkdir()
    target.mkdir()
    with served(behind, target) as process:
        yield process


@contextmanager
def served(behind: Path, target: Path) -> Iterator[subprocess.Popen[str]]:
    """Mount `target`, served from `behind` by the process that is yielded."""
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        absent("only root may mount, and only where the kernel knows FUSE")
    command = [sys.executable, SERVER, behind, target]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "mounted\n":
            absent("mounting is not allowed here")
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        os.system(f"umount -l {target} 2>/dev/null")
        process.kill()
        process.communicate()


@pytest.fixture
def mounted(
    mount: subprocess.Popen[str], make_world: Callable[..., ShareWorld], tmp_path: Path
) -> ShareWorld:
    """A share of ten notes on that mount, indexed."""
    (tmp_path / "behind" / "docs").mkdir()
    for name in NAMES:
        (tmp_path / "behind" / name).write_text(f"# About {name}\n\nThis note tells of {name}.\n")
    world = make_world(acl=declared([{"folder": "", "readers": ["team"]}]))
    assert poll(world).exit_code == 0
    assert world.readable("alice") == NAMES
    return world


class StoppingFiles(Files):
    """The real files; `first` is called before the first read of a note."""

    def __init__(self, first: Callable[[], None]) -> None:
        self._first: Callable[[], None] | None = first

    def read(self, fd: int, most: int) -> bytes:
        first, self._first = self._first, None
        if first is not None:
            first()
        return super().read(fd, most)


def poll(world: ShareWorld, files: Files | None = None) -> SyncReport:
    return world.sync_all(files=files or Files(), patience_s=PATIENCE_S, full=files is not None)


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


def lost_nothing(world: ShareWorld, report: SyncReport) -> bool:
    """Whether the share was found unavailable and all its notes serve."""
    share = report.shares[0]
    found = (report.exit_code, share.status, share.deleted, share.held)
    return found == (4, "unavailable", 0, 0) and world.readable("alice") == NAMES


def test_a_mount_that_died_loses_nothing_and_hangs_nothing(
    mounted: ShareWorld, mount: subprocess.Popen[str]
) -> None:
    stop(mount)
    for _ in range(2):
        assert lost_nothing(mounted, poll(mounted))
    mount.send_signal(signal.SIGCONT)
    assert healed(mounted)


def test_a_mount_that_dies_in_the_middle_of_a_poll_loses_nothing(
    mounted: ShareWorld, mount: subprocess.Popen[str]
) -> None:
    assert lost_nothing(mounted, poll(mounted, StoppingFiles(lambda: stop(mount))))
    mount.send_signal(signal.SIGCONT)
    assert healed(mounted)


def healed(world: ShareWorld) -> bool:
    """Whether the polls find all again: soon, for a look left behind needs a moment to come back."""
    report = poll(world)
    for _ in range(40):
        if report.exit_code != 4:
            break
        assert lost_nothing(world, report)
        time.sleep(0.25)
        report = poll(world)
    world.whole()
    return (report.exit_code, report.chunks_embedded) == (0, 0) and world.readable("alice") == NAMES


def test_a_mount_made_anew_is_seen_by_the_same_process_although_the_old_one_hangs_on(
    mounted: ShareWorld, mount: subprocess.Popen[str], tmp_path: Path
) -> None:
    stop(mount)
    assert lost_nothing(mounted, poll(mounted))
    assert not patient.answers(mounted.root, 0.1)
    os.system(f"umount -l {mounted.root}")
    with served(tmp_path / "behind", mounted.root):
        assert healed(mounted)


def test_what_only_names_a_dead_mount_waits_once_and_goes_by_the_name(
    mounted: ShareWorld, mount: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patient, "LIMIT_S", 0.2)
    outside = tmp_path / "people.toml"
    outside.touch(0o600)
    stop(mount)
    require_trusted(outside, [mounted.root])
    assert patient.real_paths([mounted.root, tmp_path]) == [mounted.root, tmp_path.resolve()]
    with pytest.raises(ConfigError, match="does not answer"):
        find_config(mounted.root / "config.toml")
