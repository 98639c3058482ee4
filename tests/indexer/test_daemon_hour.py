"""An hour of real life: polls each 5 s over 5,000 notes, an edit a second, everything failing now and then.

NOTEWARDEN_PROVE_SECONDS sets another length than an hour.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.command import PROGRAM, Site, as_url
from support.fake_voyage import GOOD_KEY, FakeVoyage, serving

from db import postmaster
from db.pool import OWNER, READER
from db.server import EmbeddedServer, ServerHandle

LENGTH_S = float(os.environ.get("NOTEWARDEN_PROVE_SECONDS", "3600"))
NOTES = 5_000
MOST_GROWTH = 1.10
SEED = int(os.environ.get("NOTEWARDEN_PROVE_SEED", "20260302"))


@dataclass
class Provider(FakeVoyage):
    """A provider that refuses everything while `refusing` holds a status."""

    refusing: int = 0

    def reply(self, body: dict[str, Any], key: str | None) -> tuple[int, dict[str, str], Any]:
        if self.refusing:
            return self.refusing, {}, {"detail": "refused"}
        answer = super().reply(body, key)
        self.requests.clear()
        return answer


@dataclass
class Life:
    """The site, its daemon, and what was measured."""

    site: Site
    server: ServerHandle
    state: Path
    provider: Provider
    random: random.Random
    process: subprocess.Popen[str] | None = None
    memory: list[tuple[float, int]] = field(default_factory=list)
    edits: int = 0
    seen: dict[str, str] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    away: threading.Event = field(default_factory=threading.Event)

    def status(self) -> tuple[int, dict[str, Any], str]:
        answer = self.site.run("status", "--json")
        return answer.code, json.loads(answer.out) if answer.out else {}, answer.err

    def edit(self) -> None:
        """One edit a second: mostly a change, sometimes a new note or a delete."""
        while not self.over.wait(1.0):
            if self.away.is_set():
                continue
            place = self.site.notes / f"f{self.random.randrange(50)}" / f"n{self.random.randrange(120)}.md"
            try:
                if place.exists() and self.random.random() < 0.05:
                    place.unlink()
                else:
                    place.write_text(f"# {place.stem}\n\nEdit {self.edits} of {time.time()}.\n")
            except FileNotFoundError:
                continue
            self.edits += 1

    def measure(self) -> None:
        """The daemon's memory, each second."""
        began = time.monotonic()
        while not self.over.wait(1.0):
            assert self.process is not None
            for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    self.memory.append((time.monotonic() - began, int(line.split()[1])))

    def fault(self, name: str, shows: Callable[[], str]) -> None:
        """Wait until the standing fault shows in `status`."""
        self.seen[name] = wait_for(f"{name} in status", shows)


def wait_for(what: str, found: Callable[[], str], seconds: float = 180) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if word := found():
            return word
        time.sleep(1.0)
    raise AssertionError(f"{what}: not within {seconds} s")


@pytest.fixture
def life(tmp_path: Path, settings_factory: Callable[..., Any]) -> Iterator[Life]:
    state = tmp_path / "server"
    with EmbeddedServer.start(state) as server, serving(Provider(dimension=16)) as provider:
        urls = as_url(server.dsn(OWNER)), as_url(server.dsn(READER))
        make: Callable[..., Any] = lambda folder, **tables: settings_factory(**tables)  # noqa: E731
        assert isinstance(provider, Provider)
        site = Site(tmp_path, urls, make)
        key = tmp_path / "key"
        key.write_text(GOOD_KEY)
        key.chmod(0o600)
        share = site.settings.shares[0]
        acl = {"source": "declared", "rule": [{"folder": "", "readers": ["everyone"], "denied": []}]}
        site.configure(
            share=[{"name": share.name, "path": site.notes, "external": True, "acl": acl}],
            embedding={"provider": "voyage", "dimension": 16, "base_url": provider.url, "api_key_file": key},
            schedule={"poll": "5s"},
        )
        chance = random.Random(SEED)
        for number in range(NOTES):
            site.write(f"f{number % 50}/n{number // 50}.md")
        yield Life(site, server, state, provider, chance)


@contextmanager
def daemon(life: Life) -> Iterator[None]:
    with open(life.site.folder / "daemon.log", "w") as log:
        life.process = subprocess.Popen(
            [PROGRAM, "--config", str(life.site.config), "run"],
            stdout=subprocess.DEVNULL, stderr=log, text=True,
        )  # fmt: skip
        try:
            yield
        finally:
            if life.process.poll() is None:
                life.process.kill()
            life.process.wait()


def database_restarts(life: Life) -> None:
    assert postmaster.stop(life.state / "postgres", 60)
    # `status` must not wake our own server, so it is the external one of this site: down is down.
    life.fault("database", lambda: life.status()[2] if life.status()[0] == 7 else "")
    time.sleep(5)
    life.server.ensure()


def share_goes(life: Life) -> None:
    aside = life.site.notes.with_name("aside")
    life.away.set()
    life.site.notes.rename(aside)
    life.fault("share", lambda: reason(life, "unavailable"))
    time.sleep(5)
    aside.rename(life.site.notes)
    life.away.clear()


def reason(life: Life, word: str) -> str:
    return next((one for one in life.status()[1].get("reasons", []) if word in one), "")


def provider_refuses(life: Life) -> None:
    life.provider.refusing = 503
    began = time.monotonic()
    life.fault("provider", lambda: pending(life))
    time.sleep(max(0.0, LENGTH_S / 12 - (time.monotonic() - began)))
    life.provider.refusing = 0


def pending(life: Life) -> str:
    notes = life.status()[1].get("notes", [])
    return next((one["reason"] for one in notes if "provider" in one["reason"]), "")


def healthy(life: Life) -> str:
    code, told, _ = life.status()
    waiting = [one for one in told.get("notes", []) if one["state"] == "pending"]
    return "healthy" if code == 0 and not waiting else ""


def differences(life: Life) -> set[str]:
    """The notes whose indexed text is not the share's, either way round."""
    stands = {
        str(file.relative_to(life.site.notes)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in life.site.notes.rglob("*.md")
    }
    rows = life.site.rows("select convert_from(path, 'utf8'), encode(content_hash, 'hex') from nw.note")
    return {path for path, _ in set(stands.items()) ^ {(row[0], row[1]) for row in rows}}


@pytest.mark.prove
@pytest.mark.timeout(int(LENGTH_S) + 1800)
def test_an_hour_of_polls_edits_and_faults(life: Life) -> None:
    plan = [
        (0.15, share_goes), (0.30, database_restarts), (0.45, provider_refuses), (0.70, share_goes),
        (0.82, database_restarts),
    ]  # fmt: skip
    with daemon(life):
        wait_for("the first index", lambda: healthy(life), 900)
        threads = [threading.Thread(target=work) for work in (life.edit, life.measure)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        try:
            for when, what in plan:
                time.sleep(max(0.0, began + when * LENGTH_S - time.monotonic()))
                what(life)
                wait_for(f"health after {what.__name__}", lambda: healthy(life), 400)
            time.sleep(max(0.0, began + LENGTH_S - time.monotonic()))
        finally:
            life.over.set()
            for thread in threads:
                thread.join()
        wait_for("the last edits", lambda: "" if differences(life) else "none", 120)
        wait_for("health at the end", lambda: healthy(life), 120)
        assert life.process is not None
        life.process.send_signal(signal.SIGTERM)
        assert life.process.wait(10) == 0
    report(life)
    assert set(life.seen) == {"share", "database", "provider"}
    assert life.edits > LENGTH_S * 0.7
    quarters = _quarters(life)
    assert quarters[3] <= quarters[1] * MOST_GROWTH, "memory grows"


def _quarters(life: Life) -> list[float]:
    end = life.memory[-1][0]
    return [
        statistics.median(kb for at, kb in life.memory if part * end / 4 <= at <= (part + 1) * end / 4)
        for part in range(4)
    ]


def report(life: Life) -> None:
    lines = [
        f"length {LENGTH_S:.0f} s, seed {SEED}, {life.edits} edits",
        "memory by quarter, MB: " + ", ".join(f"{kb / 1024:.1f}" for kb in _quarters(life)),
        *(f"seen in status while it lasted: {name}: {words.strip()}" for name, words in life.seen.items()),
    ]
    sys.stdout.write("\n" + "\n".join(lines) + "\n")
