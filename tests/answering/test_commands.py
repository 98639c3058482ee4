"""`ask` as people run it: text as it comes, honest endings, through the service's socket and in process."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.fake_claude import Failure, FakeClaude, Reply, fake_claude
from support.model_house import NOTES, Site, write_site

from db.pool import Database
from indexer.sync import Indexer

BIN = Path(sys.executable).parent
TEXT = [("Backups are kept for 30 days. ", [(0, 1, 2)]), ("They are tested every month.", [(0, 2, 3)])]
QUESTION = ("How", "long", "are", "backups", "kept?")


@dataclass
class Place:
    """Two configurations of one index: answered in process, and by a running service."""

    local: Path
    served: Path
    fake: FakeClaude
    database: Database


@pytest.fixture(scope="module")
def standing_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("commands")
    folder.chmod(0o700)
    door = Path(f"/tmp/nw-model-{os.getpid()}")
    door.mkdir(mode=0o755)
    with fake_claude() as fake:
        settings = write_site(folder, Site({"notes": NOTES}), fake.url)
        people = folder / "people.toml"
        ours = f'["users"."us"]\ngroups = []\nsids = ["S-1-22-1-{os.geteuid()}"]\n'
        people.write_text(people.read_text("utf-8") + ours, "utf-8")
        served = folder / "served.toml"
        socket_line = f'["answerer"]\nsocket = "{door}/ask.sock"\n'
        served.write_text(settings.file.read_text("utf-8") + socket_line, "utf-8")
        served.chmod(0o600)
        with Database.open(settings) as database:
            Indexer(settings, database).sync()
            command = [str(BIN / "notewarden-answerer"), "--config", str(served)]
            running = subprocess.Popen(command, stderr=subprocess.PIPE)
            try:
                _wait_for(door / "ask.sock", running)
                yield Place(settings.file, served, fake, database)
            finally:
                running.send_signal(signal.SIGTERM)
                running.communicate(timeout=30)
    shutil.rmtree(door)


def _wait_for(door: Path, running: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert running.poll() is None, running.stderr and running.stderr.read()
        if door.exists():
            return
        time.sleep(0.05)
    pytest.fail("the service did not start")


@pytest.fixture
def place(standing_place: Place) -> Place:
    standing_place.fake.reset()
    with standing_place.database.owner() as conn:
        conn.execute("truncate nw.audit, nw.conversation, nw.turn")
    return standing_place


def ask(config: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "ask"), "--config", str(config), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, input=given, check=False)


def options(place: Place, door: str) -> tuple[Path, list[str]]:
    """In process as ourselves; at the service as root or its account, for somebody."""
    return (place.local, ["--no-sync"]) if door == "local" else (place.served, ["--as", "us"])


@pytest.mark.parametrize("door", ["local", "served"])
def test_an_answer_is_shown_with_its_sources(place: Place, door: str) -> None:
    config, more = options(place, door)
    done = ask(config, *more, *QUESTION)
    assert (done.returncode, done.stderr) == (0, "")
    head, sources = done.stdout.split("\n\n")
    assert head == "Backups are kept for 30 days. [1]"
    assert re.fullmatch(
        r"\[1\] notes:backup\.md › Backup, line 3 \(of \d{4}-\d\d-\d\d\)\nAs of .*\.\n", sources
    )


def test_json_is_whole_or_nothing(place: Place) -> None:
    config, more = options(place, "served")
    done = ask(config, "--json", *more, *QUESTION)
    body = json.loads(done.stdout)
    keys = ["question", "found", "answer", "citations", "model", "usage", "as_of"]
    assert (done.returncode, list(body)) == (0, keys)
    assert (body["model"], body["usage"]) == ("claude-test", {"input_tokens": 100, "output_tokens": 20})
    place.fake.otherwise = Reply(TEXT, cut_after=7)
    done = ask(config, "--json", *more, *QUESTION)
    assert (done.returncode, done.stdout) == (8, "") and "incomplete" in done.stderr


def test_a_broken_answer_is_marked_and_exits_8(place: Place) -> None:
    config, more = options(place, "local")
    place.fake.otherwise = Reply(TEXT, cut_after=7)
    done = ask(config, *more, *QUESTION)
    assert done.returncode == 8
    assert done.stdout.startswith("Backups are kept") and "As of" not in done.stdout
    assert len(done.stderr.splitlines()) == 1 and "incomplete" in done.stderr


def test_not_in_the_notes_is_exit_3(place: Place) -> None:
    config, more = options(place, "served")
    place.fake.otherwise = Reply([("The notes do not cover this.", [])])
    done = ask(config, *more, "What", "is", "love?")
    assert done.returncode == 3 and "do not answer this" in done.stderr
    assert "[1]" not in done.stdout and "As of" not in done.stdout


def test_a_provider_that_is_down_is_said_so(place: Place) -> None:
    config, more = options(place, "local")
    place.fake.otherwise = Failure(401)
    done = ask(config, *more, "backups", "kept", "for", "30", "days")
    assert done.returncode == 0 and done.stdout.startswith("Extracts from the notes:")
    assert "API key" in done.stderr


def test_a_hijacked_model_steers_no_terminal(place: Place) -> None:
    config, more = options(place, "served")
    place.fake.otherwise = Reply(
        [("Red \x1b[31m\u202e https://evil.example/x \x9b \r\n", [(0, 1, 2)])], piece=1
    )
    done = ask(config, *more, *QUESTION)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]|evil", done.stdout)


def test_text_comes_as_it_is_made(place: Place) -> None:
    place.fake.otherwise = Reply([("Backups are kept for 30 days. " * 3, [(0, 1, 2)])], pause=0.3, piece=30)
    command = [str(BIN / "ask"), "--config", str(place.served), "--as", "us", *QUESTION]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout
        first = os.read(running.stdout.fileno(), 100)
        assert first.startswith(b"Backups") and running.poll() is None
        rest = running.stdout.read()
    assert b"As of" not in first and b"As of" in rest


@pytest.mark.parametrize("door", ["local", "served"])
def test_ctrl_c_is_clean(place: Place, door: str) -> None:
    config, more = options(place, door)
    place.fake.otherwise = Reply([("Backups are kept. " * 200, [(0, 1, 2)])], pause=0.1)
    command = [str(BIN / "ask"), "--config", str(config), *more, *QUESTION]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout and os.read(running.stdout.fileno(), 10)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert running.returncode == 130 and b"Traceback" not in err and b"As of" not in out
    for _ in range(100):
        with place.database.owner() as conn:
            rows = conn.execute("select detail->>'ending' from nw.audit").fetchall()
        endings = [row[0] for row in rows]
        if "interrupted" in endings:
            break
        time.sleep(0.1)
    assert "interrupted" in endings, "the model is told to stop, and the audit says so"


def test_a_chat_goes_on_and_can_be_forgotten(place: Place) -> None:
    done = ask(
        place.local,
        "chat",
        "--no-sync",
        given="How long are backups kept?\nAnd why are backups kept so long?\n\n",
    )
    assert done.returncode == 0 and done.stdout.count("As of") == 2, done.stderr
    assert [len(one.body["messages"]) for one in place.fake.requests] == [1, 3]
    done = ask(place.local, "--no-sync", "-c", "repeat that")
    assert done.returncode == 0 and len(place.fake.requests) == 2
    assert ask(place.local, "forget").stdout == "Forgot 1 conversations.\n"
    ask(place.local, "--no-sync", "-c", "And why is it?")
    assert len(place.fake.requests[-1].body["messages"]) == 1


def test_lines_over_http_end_with_the_whole_answer(place: Place) -> None:
    door = re.search(r'"?socket"? = "(.*)"', place.served.read_text("utf-8"))
    assert door
    lines = _lines(door[1], {"question": "How long are backups kept?", "as": "us"})
    assert [next(iter(line)) for line in lines][-1] == "answer"
    assert "".join(line.get("text", "") for line in lines) == lines[-1]["answer"]["answer"]
    place.fake.otherwise = Reply(TEXT, cut_after=7)
    lines = _lines(door[1], {"question": "How long are backups kept?", "as": "us"})
    assert lines[-1].keys() == {"error", "exit_code"} and lines[-1]["exit_code"] == 8


def _lines(door: str, body: Any) -> list[dict[str, Any]]:
    connection = http.client.HTTPConnection("localhost", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.connect(door)
    headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
    connection.request("POST", "/v1/ask", json.dumps(body), headers)
    found = [json.loads(line) for line in connection.getresponse().read().splitlines()]
    connection.close()
    return found
