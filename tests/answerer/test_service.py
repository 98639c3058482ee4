"""The service behind its real socket: who asks is what the kernel says, whatever the request claims."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.accounts import run_as
from support.answer_house import MEMBER_UID, SYSTEM_UID

BIN = Path(sys.executable).parent
STRANGER_UID = 4343


def call(
    path: str, method: str, target: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """One request over the socket; returns status and JSON."""
    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.connect(path)
    try:
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, target, raw, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def service(standing_house: Path) -> Iterator[str]:
    """The path of a running service's socket."""
    config = standing_house.with_name("served.toml")
    door = tomllib.loads(config.read_text("utf-8"))["answerer"]["socket"]
    command = [str(BIN / "notewarden-answerer"), "--config", str(config)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        _wait_for(door, running)
        yield door
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
        assert not Path(door).exists()
    finally:
        running.kill()
        running.communicate()


def _wait_for(door: str, running: subprocess.Popen[bytes]) -> None:
    import time

    for _ in range(600):
        assert running.poll() is None, running.stderr and running.stderr.read()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(door)
            except OSError:
                time.sleep(0.05)
            else:
                return
    pytest.fail("the service did not start")


@pytest.fixture
def as_uid() -> Callable[..., Any]:
    """Runs a function as another account; needs root."""
    if os.geteuid() != 0:
        if os.environ.get("NOTEWARDEN_REQUIRE_SERVICES") == "1":
            pytest.fail("needs root to ask as other accounts")
        pytest.skip("needs root to ask as other accounts")
    return lambda uid, *args: run_as(uid, uid, call, *args)


QUESTION = {"question": "What is the zebrafish bonus?"}


def test_the_peer_is_the_asker(service: str, as_uid: Callable[..., Any]) -> None:
    status, body = as_uid(MEMBER_UID, service, "POST", "/v1/ask", QUESTION)
    assert (status, body["found"]) == (200, True)
    assert body["citations"][0]["path"] == "hr/salaries.md"
    status, body = as_uid(MEMBER_UID, service, "GET", "/v1/status")
    assert (status, body["user"]) == (200, "anna")
    status, body = as_uid(MEMBER_UID, service, "POST", "/v1/show", {"path": "it/many.md"})
    assert (status, body["exit_code"]) == (404, 3)


@pytest.mark.parametrize("uid", [STRANGER_UID, SYSTEM_UID, 65534])
def test_who_is_nobody_gets_nothing(service: str, as_uid: Callable[..., Any], uid: int) -> None:
    for method, target, body in (
        ("POST", "/v1/ask", QUESTION),
        ("POST", "/v1/search", {"words": "leave"}),
        ("POST", "/v1/show", {"path": "handbook/leave.md"}),
        ("GET", "/v1/status", None),
    ):
        status, told = as_uid(uid, service, method, target, body)
        assert (status, told["exit_code"]) == (403, 5)
        assert set(told) == {"error", "exit_code"}


def test_only_the_privileged_act_for_others(service: str, as_uid: Callable[..., Any]) -> None:
    status, body = as_uid(MEMBER_UID, service, "POST", "/v1/search", {"words": "gateway", "as": "ben"})
    assert (status, body["exit_code"]) == (403, 5)
    status, body = as_uid(MEMBER_UID, service, "POST", "/v1/search", {"words": "gateway", "explain": True})
    assert (status, body["exit_code"]) == (403, 5)
    status, body = as_uid(
        0, service, "POST", "/v1/search", {"words": "gateway", "as": "ben", "explain": True}
    )
    assert status == 200 and body["results"][0]["keyword_rank"]
    status, body = as_uid(0, service, "POST", "/v1/ask", QUESTION)
    assert (status, body["exit_code"]) == (403, 5), "root has no question of its own here"
    status, body = as_uid(0, service, "GET", "/v1/status")
    assert (status, body["notes"]) == (200, None)
    status, body = as_uid(0, service, "GET", "/v1/status?as=ben")
    assert (status, body["user"]) == (200, "ben")


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-User": "ben"},
        {"X-Forwarded-For": "127.0.0.1", "notewarden.peer_uid": "0"},
        {"X-Remote-User": "root", "Remote-User": "root"},
    ],
)
def test_headers_name_nobody(service: str, as_uid: Callable[..., Any], headers: dict[str, str]) -> None:
    status, body = as_uid(STRANGER_UID, service, "POST", "/v1/ask", QUESTION, headers)
    assert (status, body["exit_code"]) == (403, 5)


@pytest.mark.parametrize(
    ("target", "body", "headers", "status"),
    [
        ("/v1/ask", QUESTION, {"Authorization": "Bearer x"}, 400),
        ("/v1/ask", {**QUESTION, "user": "ben"}, {}, 400),
        ("/v1/ask", {**QUESTION, "k": "8"}, {}, 400),
        ("/v1/ask", {**QUESTION, "k": 0}, {}, 400),
        ("/v1/ask", {"question": ["x"]}, {}, 400),
        ("/v1/ask", {"question": "x" * 20_000}, {}, 400),
        ("/v1/ask", {"question": "   "}, {}, 400),
        ("/v1/ask", b"{", {}, 400),
        ("/v1/ask", b"[]", {}, 400),
        ("/v1/ask", b'{"question": "\\ud800"}', {}, 400),
        ("/v1/ask", b" " * 70_000, {}, 413),
        ("/v1/ask", None, {}, 400),
        ("/v1/show", {"path": "handbook/leave.md", "lines": "9-1"}, {}, 400),
        ("/v1/show", {"path": "handbook/leave\0.md"}, {}, 404),
        ("/v1/nothing", {}, {}, 404),
        ("/docs", {}, {}, 404),
        ("/openapi.json", {}, {}, 404),
    ],
)
def test_what_is_not_a_request_is_refused(
    service: str, as_uid: Callable[..., Any], target: str, body: Any, headers: dict[str, str], status: int
) -> None:
    found, told = as_uid(MEMBER_UID, service, "POST", target, body, headers)
    assert found == status
    assert set(told) == {"error", "exit_code"}


def test_a_status_with_other_parameters_is_refused(service: str, as_uid: Callable[..., Any]) -> None:
    assert as_uid(MEMBER_UID, service, "GET", "/v1/status?user=ben")[0] == 400
    assert as_uid(MEMBER_UID, service, "GET", "/v1/status?as=ben")[0] == 403


def test_the_command_goes_through_the_socket(service: str, standing_house: Path, as_uid: Any) -> None:
    config = standing_house.with_name("served.toml")
    command = [str(BIN / "ask"), "--config", str(config), "--json", "--as", "anna", "zebrafish bonus"]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["citations"][0]["path"] == "hr/salaries.md"
    done = subprocess.run([*command[:-3], "zebrafish"], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (5, b"")
    done = subprocess.run([*command[:-1], "xylophone"], capture_output=True, timeout=60)
    assert done.returncode == 3


def test_a_second_service_does_not_take_the_socket(service: str, standing_house: Path) -> None:
    config = standing_house.with_name("served.toml")
    command = [str(BIN / "notewarden-answerer"), "--config", str(config)]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == 1 and b"already listens" in done.stderr
    assert Path(service).is_socket()


def test_without_a_socket_there_is_no_service(standing_house: Path) -> None:
    command = [str(BIN / "notewarden-answerer"), "--config", str(standing_house)]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == 2 and b"socket" in done.stderr


def test_a_socket_that_systemd_made_is_taken_over(standing_house: Path, tmp_path: Path) -> None:
    config, path = standing_house.with_name("served.toml"), str(tmp_path / "passed.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(path)
        door.listen()
        start = 'exec 3<&"$0"; export LISTEN_FDS=1 LISTEN_PID=$$; exec "$1" --config "$2"'
        command = [
            "/bin/bash",
            "-c",
            start,
            str(door.fileno()),
            str(BIN / "notewarden-answerer"),
            str(config),
        ]
        running = subprocess.Popen(command, pass_fds=[door.fileno()], stderr=subprocess.PIPE)
    try:
        status, body = call(path, "GET", "/v1/status?as=ben")
        assert (status, body["user"]) == (200, "ben")
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
        assert Path(path).exists(), "it is systemd's to remove"
    finally:
        running.kill()
        running.communicate()
