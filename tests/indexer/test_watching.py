"""A real Samba tells of changes: the daemon polls early. Where it tells nothing, polls find everything."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.samba import Samba, people

from acl.sources.smb.watch import Watch
from notewarden.errors import ConfigError
from notewarden.settings import Settings


class Bell:
    """Counts how often it was rung."""

    def __init__(self) -> None:
        self.rings = 0
        self.words: list[str] = []
        self._rung = threading.Condition()

    def ring(self) -> None:
        with self._rung:
            self.rings += 1
            self._rung.notify_all()

    def after(self, rings: int, seconds: float = 20) -> bool:
        """Whether it was rung more often than `rings` times within some seconds."""
        with self._rung:
            return self._rung.wait_for(lambda: self.rings > rings, seconds)


@pytest.fixture
def server(start_samba: Callable[..., Samba], export: Path) -> Samba:
    (export / "deep" / "er").mkdir(parents=True)
    for folder in (export, export / "deep", export / "deep" / "er"):
        folder.chmod(0o777)
    return start_samba(people("svc"), {}, {"notes": (export, {})})


@pytest.fixture
def settings(
    server: Samba, export: Path, tmp_path: Path, settings_factory: Callable[..., Settings]
) -> Settings:
    secret = tmp_path / "password"
    secret.write_text("pw-svc")
    secret.chmod(0o600)
    acl: dict[str, Any] = {
        "source": "smb", "model": "nt+posix", "server": "127.0.0.1", "port": server.port, "share": "notes",
        "username": "svc", "password_file": secret,
    }  # fmt: skip
    return settings_factory(share=[{"name": "notes", "path": export, "watch": True, "acl": acl}])


@contextmanager
def watching(settings: Settings, bell: Bell) -> Iterator[None]:
    ended = threading.Event()
    watch = Watch(settings.shares[0], bell.ring, bell.words.append)
    thread = threading.Thread(target=watch.run, args=(ended,))
    thread.start()
    try:
        assert bell.after(0), bell.words
        yield
    finally:
        ended.set()
        thread.join(20)
    assert not thread.is_alive()


def quiet(bell: Bell) -> int:
    """Wait until it is silent for a second; return how often it was rung so far."""
    while bell.after(bell.rings, 1.0):
        pass
    return bell.rings


def test_what_others_change_over_smb_is_told_from_any_depth(settings: Settings, server: Samba) -> None:
    bell = Bell()
    with contextlib.closing(server.connect("svc")) as other, watching(settings, bell):
        for change in (
            lambda: other.storeFile("notes", "deep/er/a.md", io.BytesIO(b"# A\n")),
            lambda: other.storeFile("notes", "deep/er/a.md", io.BytesIO(b"# A, longer now\n")),
            lambda: other.rename("notes", "deep/er/a.md", "moved.md"),
            lambda: other.deleteFiles("notes", "moved.md"),
        ):
            before = quiet(bell)
            change()
            assert bell.after(before), "nothing was told"


def test_a_connection_that_breaks_is_made_again(
    settings: Settings, server: Samba, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acl.sources.smb.watch._FIRST_S", 0.2)
    monkeypatch.setattr("acl.sources.smb.watch._ALIVE_S", 1.0)
    bell = Bell()
    with watching(settings, bell):
        before = quiet(bell)
        server.stop()
        deadline = time.monotonic() + 30
        while not any("broke" in words for words in bell.words):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        monkeypatch.setattr("support.samba.free_port", lambda: settings.shares[0].acl.port)
        server.start()
        assert bell.after(before, 30), "it watches again, and rings for what it may have missed"
        before = quiet(bell)
        (export / "new.md").write_text("# New\n")
        assert bell.after(before)


def test_only_a_source_that_tells_can_be_watched(settings_factory: Callable[..., Settings]) -> None:
    from indexer.watching import _started

    settings = settings_factory(
        share=[{"name": "notes", "path": "/srv/notes", "watch": True, "acl": {"source": "posix"}}]
    )
    with pytest.raises(ConfigError, match="watch = true"):
        _started(settings.shares[0], lambda: None, threading.Event())
