"""What a model's answer costs besides the model: the first token through the service, money by routing.

The model is the fake of the tests on loopback, so that nothing but our own time is measured: between the
moment the fake sends its first token and the moment the asker has it, and the search before the request.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from answerer.costs import is_small
from answerer.evaluation import read_questions
from bench.quality import EXAMPLES, _settings
from db.pool import Database
from indexer.sync import Indexer

_TIMES = 15
_DELAY = 0.2  # seconds that the fake thinks before its first token
_AT_MOST_MS = 150
_QUESTION = "How long are backups kept?"


def main(arguments: Sequence[str]) -> None:
    """Print the first token's delay through the running service, and what routing saves on the sample."""
    sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
    from support.fake_claude import Reply, fake_claude, quoting

    with tempfile.TemporaryDirectory(prefix="notewarden-bench-") as name, fake_claude() as fake:
        fake.otherwise = Reply(quoting, delay=_DELAY, piece=8)
        with _service(Path(name), fake.url) as door:
            rows = [_asked(door, fake) for _ in range(_TIMES + 2)][2:]
    search, over = (statistics.median(column) * 1000 for column in zip(*rows, strict=True))
    worst = max(row[1] for row in rows) * 1000
    print(
        f"from question to request {search:.0f} ms (search, decision, late check, audit); from the fake's "
        f"first token to the asker's {over:.0f} ms, worst {worst:.0f} (at most {_AT_MOST_MS}; medians of "
        f"{_TIMES})"
    )
    _routing()


def _asked(door: Path, fake: Any) -> tuple[float, float]:
    """Return seconds from question to the request, and from the fake's first token to the asker's."""
    fake.reset_times()
    began = time.monotonic()
    first = _first_token(door)
    return fake.requests[-1].at - began, first - fake.first_token_at[0]


def _first_token(door: Path) -> float:
    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.connect(os.fspath(door))
    headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
    connection.request("POST", "/v1/ask", json.dumps({"question": _QUESTION, "as": "ines"}), headers)
    response = connection.getresponse()
    line = json.loads(response.readline())
    first = time.monotonic()
    if "text" not in line:
        raise SystemExit(f"the service answered without streaming: {line}")
    response.read()
    connection.close()
    return first


@contextmanager
def _service(folder: Path, url: str) -> Iterator[Path]:
    door = folder / "ask.sock"
    rules = (EXAMPLES / "rules.toml").read_text(encoding="utf-8")
    share = f'[[share]]\nname = "notes"\npath = "{EXAMPLES / "notes"}"\nexternal = true\n{rules}'
    more = f'[answer]\nprovider = "anthropic"\nbase_url = "{url}"\n[answerer]\nsocket = "{door}"\n'
    settings = _settings(folder, (EXAMPLES / "people.toml").read_text(encoding="utf-8"), share + more)
    with Database.open(settings) as database:
        Indexer(settings, database).sync()
        command = [str(Path(sys.executable).parent / "notewarden-answerer"), "--config", str(settings.file)]
        running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            while not door.exists():
                if running.poll() is not None:
                    raise SystemExit("the service did not start")
                time.sleep(0.05)
            yield door
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(30)


def _routing() -> None:
    """How many of the sample's questions a small model gets, and what that saves at list prices."""
    cases = read_questions(EXAMPLES / "questions.jsonl")
    small = sum(is_small(case.question, in_conversation=False) for case in cases)
    tokens_in, tokens_out = 3_000, 150
    large_cost = (tokens_in * 2.0 + tokens_out * 10.0) / 1e6
    small_cost = (tokens_in * 0.10 + tokens_out * 0.50) / 1e6
    mixed = (small * small_cost + (len(cases) - small) * large_cost) / len(cases)
    print(
        f"routing: {small} of {len(cases)} questions are small; at {tokens_in} tokens in and {tokens_out} "
        f"out a question costs ${mixed:.5f} instead of ${large_cost:.5f} ({mixed / large_cost:.0%}); what "
        "a small model gets wrong only a real one can tell"
    )
