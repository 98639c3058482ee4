"""The daemon's numbers: true, without names of notes, behind a door for root and its own account."""

from __future__ import annotations

import http.client
import re
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from daemon_world import DaemonWorld, FakeClock
from prometheus_client.parser import text_string_to_metric_families
from share_world import ShareWorld
from support.accounts import run_as

from indexer.daemon import Daemon
from indexer.metrics import metrics_door
from notewarden.errors import ConfigError, DatabaseUnavailable
from notewarden.settings import load_settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def house(world: ShareWorld, monkeypatch: pytest.MonkeyPatch) -> DaemonWorld:
    clock = FakeClock()
    clock.install(monkeypatch)
    house = DaemonWorld(world, clock)
    house.schedule()
    world.write("secret-project/a.md")
    return house


def listening(house: DaemonWorld, listen: str) -> None:
    settings = house.world.settings
    text = settings.file.read_text()
    settings.file.write_text(f'{text}\n["metrics"]\nlisten = "{listen}"\n')
    house.world.settings = load_settings(settings.file)


def over_socket(path: str) -> str:
    connection = http.client.HTTPConnection("localhost", timeout=10)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(path)
    connection.request("GET", "/metrics")
    return connection.getresponse().read().decode()


def numbers(text: str) -> dict[str, float]:
    return {
        "|".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def door(house: DaemonWorld, tmp_path: Path) -> Iterator[tuple[DaemonWorld, Daemon, str]]:
    path = str(tmp_path / "metrics.sock")
    listening(house, path)
    with house.daemon() as daemon, metrics_door(daemon, house.world.database):
        house.live(daemon, 5)
        yield house, daemon, path


def test_the_numbers_are_those_of_the_index(door: tuple[DaemonWorld, Daemon, str]) -> None:
    house, daemon, path = door
    found = numbers(over_socket(path))
    assert found["notewarden_healthy"] == 1
    assert found["notewarden_share_notes|notes"] == 1
    assert found["notewarden_work_total|added"] == 1
    house.world.write("b.md", "# B\n\npoisoned\n")
    house.world.embedder.poison["poisoned"] = False
    house.live(daemon, 70)
    found = numbers(over_socket(path))
    assert found["notewarden_notes_in_trouble|notes|pending"] == 1
    assert found["notewarden_fault_failures|provider"] >= 1


def test_no_name_of_a_note_is_in_them(door: tuple[DaemonWorld, Daemon, str]) -> None:
    text = over_socket(door[2])
    assert "secret-project" not in text
    assert "a.md" not in text


def test_without_a_database_they_say_so(
    door: tuple[DaemonWorld, Daemon, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Any:
        raise DatabaseUnavailable

    monkeypatch.setattr(door[0].world.database, "listener", refuse)
    found = numbers(over_socket(door[2]))
    assert found["notewarden_database_up"] == 0
    assert "notewarden_healthy" not in found


def test_another_account_cannot_open_the_socket(as_root: None, door: tuple[DaemonWorld, Daemon, str]) -> None:
    for folder in list(Path(door[2]).parents)[:-2]:
        folder.chmod(0o755)

    def attempt(path: str) -> str:
        try:
            over_socket(path)
        except OSError as error:
            return str(error.strerror)
        return "opened"

    assert run_as(61001, 61001, attempt, door[2]) == "Permission denied"


def test_a_port_of_this_machine_works_too(house: DaemonWorld) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    listening(house, f"127.0.0.1:{port}")
    with house.daemon() as daemon, metrics_door(daemon, house.world.database):
        house.live(daemon, 5)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert numbers(answer.read().decode())["notewarden_share_notes|notes"] == 1


@pytest.mark.parametrize("listen", ["0.0.0.0:9464", "example.com:9464", "127.0.0.1", ":9464"])
def test_no_other_machine_can_be_let_in(house: DaemonWorld, listen: str) -> None:
    with pytest.raises(ConfigError, match="of this machine"):
        listening(house, listen)


def test_every_alert_is_about_a_number_that_exists(door: tuple[DaemonWorld, Daemon, str]) -> None:
    house, daemon, path = door
    house.world.embedder.poison["poisoned"] = False
    house.world.write("b.md", "# B\n\npoisoned\n")
    house.live(daemon, 70)
    names = {name.split("|")[0] for name in numbers(over_socket(path))}
    rules = (ROOT / "deploy/alerts.yml").read_text()
    used = set(re.findall(r"notewarden_[a-z_]+", re.sub(r"summary:.*", "", rules)))
    assert used
    assert used <= names, used - names
    assert yaml.safe_load(rules)["groups"][0]["rules"]
