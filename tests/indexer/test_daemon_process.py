"""`notewarden run` as a process: what signals do, who else may run, and how the other commands reach it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.command import PROGRAM, Site

from indexer.quick import quick_sync


class Running:
    """A daemon that runs as a process of its own."""

    def __init__(self, process: subprocess.Popen[str], log: Path, notified: socket.socket) -> None:
        self.process = process
        self._log = log
        self._notified = notified
        self.words: list[str] = []

    @property
    def log(self) -> str:
        return self._log.read_text()

    def told(self, what: str, seconds: float = 60) -> str:
        """Wait until it told the service manager something that holds `what`; return it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._notified.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                self.words.append(self._notified.recv(65536).decode())
            except TimeoutError:
                break
            if what in self.words[-1]:
                return self.words[-1]
        raise AssertionError(f"it never told {what!r}: {self.words[-5:]}\n{self.log}")

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal; return the exit code and the seconds it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(30), time.monotonic() - began


@contextmanager
def running(site: Site, **env: str) -> Iterator[Running]:
    place = site.folder / "notify.sock"
    place.unlink(missing_ok=True)
    log = site.folder / "daemon.log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified, open(log, "w") as err:
        notified.bind(str(place))
        process = subprocess.Popen(
            [PROGRAM, "--config", str(site.config), "run"],
            stdout=subprocess.DEVNULL, stderr=err, text=True,
            env={**os.environ, "NOTIFY_SOCKET": str(place), **env},
        )  # fmt: skip
        try:
            yield Running(process, log, notified)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.1)


@pytest.fixture
def daemon(site: Site) -> Iterator[Running]:
    site.configure(schedule={"poll": "1h"})
    with running(site) as daemon:
        daemon.told("READY=1")
        yield daemon


def indexed(site: Site) -> int:
    return int(site.rows("select count(*) from nw.note")[0][0])


def test_the_other_commands_are_served_by_it_with_its_exit_code(site: Site, daemon: Running) -> None:
    until(lambda: indexed(site) == 3)
    site.write("new.md")
    synced = site.run("sync", "--json")
    assert synced.code == 0
    assert synced.json["shares"][0]["added"] == 1
    assert site.rows("select kind, exit_code from nw.request") == [("sync", 0)]
    again = site.run("reindex", "a.md")
    assert again.code == 0
    assert "Indexed 1 note again." in again.out
    confirmed = site.run("confirm-deletes")
    assert confirmed.code == 0
    assert "0 notes deleted" in confirmed.out
    missing = site.run("reindex", "nowhere.md")
    assert missing.code == 3
    assert "nowhere.md" in missing.err


def test_what_is_left_unfinished_is_exit_code_6_through_the_daemon_too(site: Site, daemon: Running) -> None:
    until(lambda: indexed(site) == 3)
    for number in range(30):
        site.write(f"bulk/{number}.md")
    assert site.run("sync").code == 0
    shutil.rmtree(site.notes / "bulk")
    held = site.run("sync", "--json")
    assert held.json["shares"][0]["held"] == 30
    assert held.code == 6
    confirmed = site.run("confirm-deletes")
    assert confirmed.code == 0
    assert "30 notes deleted" in confirmed.out
    assert site.rows("select actor from nw.audit where action = 'confirm-deletes'") != []


def test_a_second_one_is_refused_and_told_who_holds_the_database(site: Site, daemon: Running) -> None:
    second = site.run("run")
    assert second.code == 1
    assert f"notewarden run {daemon.process.pid}@" in second.sentence()


def test_sigterm_ends_it_in_order(site: Site, daemon: Running) -> None:
    until(lambda: indexed(site) == 3)
    code, seconds = daemon.stop()
    assert code == 0
    assert seconds < 5
    assert "STOPPING=1" in daemon.told("STOPPING=1")
    assert site.run("sync").code == 0, "the next command works by itself"
    assert site.rows("select count(*) from nw.run where ended_at is null") == [(0,)]


def test_sigint_is_an_interruption(daemon: Running) -> None:
    assert daemon.stop(signal.SIGINT)[0] == 130


def test_sighup_reads_the_configuration_again_and_refuses_a_bad_one(site: Site, daemon: Running) -> None:
    good = site.config.read_text()
    site.config.write_text("[schedule]\npoll = 'soon'\n")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.told("RELOADING=1")
    assert "refused" in daemon.told("READY=1")
    assert "refused" in site_status(site, good)
    daemon.process.send_signal(signal.SIGHUP)
    assert "refused" not in daemon.told("READY=1")
    assert daemon.process.poll() is None


def site_status(site: Site, good: str) -> str:
    site.config.write_text(good)
    texts: list[str] = []

    def seen() -> bool:
        texts.append(site.run("status").out)
        return "refused" in texts[-1]

    until(seen)
    return texts[-1]


def test_a_stop_in_the_middle_of_embedding_ends_within_5_seconds(site: Site) -> None:
    words = " ".join(f"word{number}" for number in range(150))
    for number in range(300):
        site.write(f"many/{number}.md", f"# Note {number}\n\n{words}\n\n{words} {number}\n")
    site.configure(schedule={"poll": "1h"}, embedding={"provider": "local"})
    with running(site) as daemon:
        daemon.told(" of 303 notes")
        code, seconds = daemon.stop()
    assert code == 0, daemon.log
    assert seconds < 5
    done = indexed(site)
    assert 0 < done < 303
    assert site.rows("select note_id from nw.note_chunk group by 1 having count(*) <> max(seq) + 1") == []
    lacking = (
        "select from nw.note n where not exists (select from nw.note_chunk c where c.note_id = n.note_id)"
    )
    assert site.rows(lacking) == []


def test_a_request_is_taken_up_by_the_next_daemon_if_this_one_is_killed(site: Site) -> None:
    site.configure(schedule={"poll": "1h"})
    with running(site) as daemon:
        daemon.told("READY=1")
        until(lambda: indexed(site) == 3)
        daemon.process.send_signal(signal.SIGSTOP)
        asking = subprocess.Popen(
            [PROGRAM, "--config", str(site.config), "sync", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        until(lambda: site.rows("select count(*) from nw.request") == [(1,)])
        daemon.process.kill()
    site.write("later.md")
    with running(site) as daemon:
        asking.communicate(timeout=90)
        assert asking.returncode == 0
    assert indexed(site) == 4


def test_the_watchdog_is_fed_and_the_state_is_told(site: Site) -> None:
    site.configure(schedule={"poll": "1h"})
    with running(site, WATCHDOG_USEC="900000") as daemon:
        for _ in range(3):
            daemon.told("WATCHDOG=1", 10)
        daemon.told("next poll in", 20)


def test_a_configuration_that_cannot_be_used_ends_it_at_once(site: Site) -> None:
    share = {"name": "notes", "path": "/proc", "acl": {"source": "posix"}}
    site.configure(share=[share], directory={"source": "nss"})
    answer = site.run("run")
    assert answer.code == 2
    assert "proc" in answer.sentence()


def test_a_question_starts_no_poll_of_its_own_beside_a_daemon(site: Site, daemon: Running) -> None:
    until(lambda: indexed(site) == 3)
    site.write("new.md")
    quick_sync(site.settings)
    assert indexed(site) == 3
    assert daemon.stop()[0] == 0
    quick_sync(site.settings)
    assert indexed(site) == 4
