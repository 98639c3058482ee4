"""The units as they are shipped, run by a real systemd on a machine of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machine import ROOT, Machine, booted, why_not

PACKAGES = ("notewarden", "acl", "db", "indexer", "answerer")
SERVICES = ("notewarden", "notewarden-answerer", "notewarden-database", "notewarden-sync")
MOST_EXPOSURE = 1.5

CONFIG = """
state_dir = "/var/lib/notewarden"
[database]
url = "postgresql:///notewarden?host=/run/notewarden-database&user=notewarden"
reader_url = "postgresql:///notewarden?host=/run/notewarden-database&user=notewarden_reader"
[schedule]
poll = "2s"
[[share]]
name = "notes"
path = "/srv/notes"
[share.acl]
source = "posix"
[directory]
source = "nss"
token_ttl = "1s"
[answerer]
socket = "/run/notewarden/answerer.sock"
late_check = "require"
late_check_socket = "/run/notewarden/late-check.sock"
user = "notewarden-answerer"
"""

# What an admin adds for a local folder whose notes are not everybody's, and a shorter watchdog for the test.
DROP_IN = "[Service]\nSupplementaryGroups=hr\nWatchdogSec=4\nRestartSec=1\n"

# The interpreter of the test may bring a library of its own, from a place that services do not see.
PROGRAM = """#!/bin/sh
export LD_LIBRARY_PATH=/opt/python/lib
exec /opt/notewarden/bin/python -c 'import sys; from {module} import main; sys.exit(main())' "$@"
"""
PYTHON = ("/usr/bin/env", "LD_LIBRARY_PATH=/opt/python/lib", "/opt/notewarden/bin/python", "-c")
CONNECT = "import psycopg; psycopg.connect('host=/run/notewarden-database dbname=notewarden user={role}')"
BULK = """for i in $(seq 400); do
  printf '# Note %s\\n\\n%s' $i "$(seq -s ' ' 200)" >/srv/notes/bulk-$i.md
done"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    reason = why_not()
    if reason and os.environ.get("NOTEWARDEN_REQUIRE_SERVICES") == "1":
        pytest.fail(f"a machine with systemd is demanded here: {reason}")
    if reason:
        pytest.skip(reason)
    code = tmp_path_factory.mktemp("machine")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, code / "src" / package, ignore=shutil.ignore_patterns("__pycache__"))
    install(code / "stage", "install")
    with booted(code) as machine:
        prepare(machine)
        yield machine


def install(root: Path, what: str) -> str:
    """Run the shipped installer below `root`, without the program itself."""
    root.mkdir(exist_ok=True)
    done = subprocess.run(
        ["bash", str(ROOT / "deploy/install.sh"), what],
        env={**os.environ, "DESTDIR": str(root), "VENV": "no"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def prepare(machine: Machine) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = f"/opt/notewarden/lib/{version}/site-packages"
    machine.run("/bin/sh", "-c", "cp -a /opt/code/stage/. / && chmod -R go+rX /opt/code")
    machine.run("mkdir", "-p", site, "/opt/notewarden/bin")
    machine.run("ln", "-s", f"/opt/python/bin/{version}", "/opt/notewarden/bin/python")
    machine.write("/opt/notewarden/pyvenv.cfg", "home = /opt/python/bin\n")
    machine.write(f"{site}/all.pth", "/opt/code/src\nimport site; site.addsitedir('/opt/packages')\n")
    modules = {
        "notewarden": "indexer.cli",
        "ask": "answerer.ask",
        "notewarden-answerer": "answerer.service",
        "notewarden-database": "db.service",
    }
    for name, module in modules.items():
        machine.write(f"/opt/notewarden/bin/{name}", PROGRAM.format(module=module), 0o755)
    for command in (
        "systemd-sysusers",
        "systemd-tmpfiles --create notewarden.conf",
        "groupadd -f team",
        "groupadd -f hr",
        "useradd -m -u 4501 -G team alice",
        "useradd -m -u 4502 -G team,hr bob",
    ):
        machine.run(*command.split())
    machine.write("/etc/notewarden/config.toml", CONFIG)
    machine.write("/etc/notewarden/secrets/indexer/nas-password", "open sesame\n", 0o600)
    machine.write("/etc/systemd/system/notewarden.service.d/site.conf", DROP_IN)
    machine.run("mkdir", "/srv/notes")
    machine.run("mount", "-t", "tmpfs", "-o", "mode=755", "notes", "/srv/notes")
    machine.write("/srv/notes/vpn.md", "# VPN\n\nThe certificate is renewed with the tool certbot.\n")
    machine.write("/srv/notes/hr/pay.md", "# Pay\n\nThe salary band of level four is secret.\n", 0o640)
    machine.run("chgrp", "-R", "hr", "/srv/notes/hr")
    machine.run("chmod", "2750", "/srv/notes/hr")
    machine.run("systemctl", "daemon-reload")
    for unit in ("notewarden-database.service", "notewarden-late-check.socket", "notewarden-answerer.socket"):
        started = machine.run("systemctl", "start", unit, check=False, timeout=120)
        assert started.returncode == 0, machine.log()
    started = machine.run("systemctl", "start", "notewarden.service", check=False, timeout=120)
    assert started.returncode == 0, machine.log()


def ask(machine: Machine, user: str, *words: str) -> subprocess.CompletedProcess[str]:
    return machine.run("runuser", "-u", user, "--", "/usr/local/bin/ask", *words, check=False, timeout=120)


def paths(done: subprocess.CompletedProcess[str]) -> set[str]:
    return {one["path"] for one in json.loads(done.stdout)["results"]} if done.stdout else set()


def indexed(machine: Machine, path: str) -> bool:
    done = machine.run("notewarden", "readable", "--as", "bob", "--json", check=False)
    return path in done.stdout


def main_pid(machine: Machine, unit: str = "notewarden.service") -> int:
    return int(machine.show(unit, "MainPID"))


def test_it_is_ready_says_what_it_does_and_polls(machine: Machine) -> None:
    assert machine.show("notewarden.service", "ActiveState") == "active"
    machine.write("/srv/notes/new.md", "# New\n\nWritten while the daemon runs.\n")
    machine.wait("the new note", lambda: indexed(machine, "new.md"), 30)
    machine.wait("a status", lambda: "next poll" in machine.show("notewarden.service", "StatusText"), 20)


def test_the_two_services_and_the_database_are_three_accounts(machine: Machine) -> None:
    ask(machine, "alice", "search", "certificate")
    owners = {
        unit: machine.out("stat", "-c", "%U", f"/proc/{main_pid(machine, unit + '.service')}")
        for unit in ("notewarden", "notewarden-answerer", "notewarden-database")
    }
    assert owners == {name: name for name in owners}


def test_a_question_over_the_socket_is_answered_as_who_asks(machine: Machine) -> None:
    machine.wait("the index", lambda: indexed(machine, "hr/pay.md"), 30)
    found = ask(machine, "alice", "search", "certificate", "--json")
    assert found.returncode == 0, found.stderr + machine.log()
    assert "vpn.md" in paths(found)
    answered = ask(machine, "alice", "how is the VPN certificate renewed", "--json")
    assert json.loads(answered.stdout)["citations"][0]["path"] == "vpn.md"
    assert paths(ask(machine, "bob", "search", "salary band", "--json")) >= {"hr/pay.md"}
    assert "hr/pay.md" not in paths(ask(machine, "alice", "search", "salary band", "--json"))
    refused = machine.run("runuser", "-u", "daemon", "--", "/usr/local/bin/ask", "search", "vpn", check=False)
    assert refused.returncode == 5, "a service account has no question of its own"


def test_the_late_check_door_is_the_answerers_alone(machine: Machine) -> None:
    assert machine.out("stat", "-c", "%U %a", "/run/notewarden/late-check.sock") == "notewarden-answerer 600"


def secrets_of(machine: Machine, service: str) -> str:
    """What a service sees of the secrets it was given: they are mounted for it alone."""
    folder = f"/proc/{main_pid(machine, service)}/root/run/credentials/{service}"
    return machine.run("/bin/sh", "-c", f"cd {folder} && head -v *", check=False).stdout


def test_a_secret_reaches_its_own_service_and_nobody_else(machine: Machine) -> None:
    ask(machine, "alice", "search", "certificate")
    assert "secret_nas-password" in secrets_of(machine, "notewarden.service")
    assert "open sesame" in secrets_of(machine, "notewarden.service")
    assert "nas-password" not in secrets_of(machine, "notewarden-answerer.service")
    for user in ("alice", "notewarden-answerer", "notewarden"):
        seen = machine.run(
            "runuser", "-u", user, "--", "cat", "/etc/notewarden/secrets/indexer/nas-password", check=False
        )
        assert seen.returncode != 0


def connect(machine: Machine, role: str, *as_whom: str) -> str:
    """Try to log in to the database; return what was said."""
    return machine.run("runuser", *as_whom, "--", *PYTHON, CONNECT.format(role=role), check=False).stderr


def test_other_accounts_get_nowhere_near_the_database(machine: Machine) -> None:
    answerer = ("-u", "notewarden-answerer", "-g", "notewarden-database")
    assert "Permission denied" in connect(machine, "notewarden_reader", "-u", "alice")
    assert "Peer authentication failed" in connect(machine, "notewarden", *answerer)
    assert connect(machine, "notewarden_reader", *answerer) == ""
    stranger = ("-u", "alice", "-g", "notewarden-database")
    for role in ("notewarden", "notewarden_reader", "notewarden_admin"):
        assert "Peer authentication failed" in connect(machine, role, *stranger)


def test_the_admin_command_works_through_the_daemon(machine: Machine) -> None:
    done = machine.run("notewarden", "sync", "--json", check=False)
    assert done.returncode == 0, done.stderr + machine.log()
    assert json.loads(done.stdout)["shares"][0]["status"] == "ok"
    second = machine.run("notewarden", "run", check=False)
    assert second.returncode == 1
    assert "notewarden run" in second.stderr


def test_a_reload_is_heard(machine: Machine) -> None:
    machine.write("/etc/notewarden/config.toml", CONFIG.replace('poll = "2s"', 'poll = "nonsense"'))
    machine.run("systemctl", "reload", "notewarden.service")
    status = lambda: machine.show("notewarden.service", "StatusText")  # noqa: E731
    machine.wait("the refusal", lambda: "refused" in status(), 20)
    machine.write("/etc/notewarden/config.toml", CONFIG)
    machine.run("systemctl", "reload", "notewarden.service")
    machine.wait("the old words again", lambda: "refused" not in status(), 20)


def test_killed_it_is_started_again_and_goes_on(machine: Machine) -> None:
    before = main_pid(machine)
    machine.run("kill", "-9", str(before))
    machine.wait("another process", lambda: main_pid(machine) not in (0, before), 40)
    machine.write("/srv/notes/after-kill.md", "# After\n")
    machine.wait("its polls", lambda: indexed(machine, "after-kill.md"), 40)


def test_a_daemon_that_hangs_is_ended_by_the_watchdog(machine: Machine) -> None:
    before = main_pid(machine)
    machine.wait("readiness", lambda: machine.show("notewarden.service", "ActiveState") == "active", 40)
    machine.run("kill", "-STOP", str(before))
    machine.wait("another process", lambda: main_pid(machine) not in (0, before), 60)
    log = machine.out("journalctl", "-u", "notewarden.service", "--no-pager", "-n", "300")
    assert "Watchdog timeout" in log
    machine.write("/srv/notes/after-watchdog.md", "# After\n")
    machine.wait("its polls", lambda: indexed(machine, "after-watchdog.md"), 40)


def test_the_answerer_is_started_again_by_the_next_question(machine: Machine) -> None:
    machine.run("systemctl", "stop", "notewarden-answerer.service")
    assert "vpn.md" in paths(ask(machine, "alice", "search", "certificate", "--json"))


def test_it_stops_within_5_seconds_in_the_middle_of_embedding(machine: Machine) -> None:
    machine.run("/bin/sh", "-c", BULK)
    words = lambda: machine.show("notewarden.service", "StatusText")  # noqa: E731
    machine.wait("the work", lambda: " notes" in words(), 60)
    began = time.monotonic()
    machine.run("systemctl", "stop", "notewarden.service")
    assert time.monotonic() - began < 5.5  # 5 s, and nsenter's own
    assert machine.show("notewarden.service", "Result") == "success"
    assert machine.show("notewarden.service", "ExecMainStatus") == "0"
    machine.run("/bin/sh", "-c", "rm /srv/notes/bulk-*")


def test_one_shot_polls_by_a_timer_count_unfinished_notes_as_success(machine: Machine) -> None:
    machine.run("systemctl", "stop", "notewarden.service")
    machine.write("/srv/notes/closed.md", "# Closed\n", 0o000)
    started = machine.run("systemctl", "start", "notewarden-sync.service", check=False, timeout=120)
    assert started.returncode == 0, machine.log()
    said = machine.out("journalctl", "-u", "notewarden-sync.service", "--no-pager", "-o", "cat")
    assert "unreadable" in said
    assert "Some notes stand pending" in said, "it ended with exit code 6"
    assert machine.show("notewarden-sync.service", "Result") == "success"
    machine.run("rm", "/srv/notes/closed.md")
    assert machine.show("notewarden-sync.timer", "Unit") == "notewarden-sync.service"
    machine.run("systemctl", "start", "notewarden.service", timeout=120)


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_may_do_little(machine: Machine, service: str) -> None:
    table = machine.out("systemd-analyze", "security", "--no-pager", f"{service}.service")
    line = next(line for line in table.splitlines() if "Overall exposure level" in line)
    score = float(line.split(":")[1].split()[0])
    assert score <= MOST_EXPOSURE
    assert machine.show(f"{service}.service", "PrivateUsers") == "no"


def test_uninstalling_leaves_what_is_the_admins(tmp_path: Path) -> None:
    install(tmp_path, "install")
    kept = tmp_path / "etc/notewarden/config.toml"
    kept.write_text("mine")
    (tmp_path / "var/lib/notewarden").mkdir(parents=True)
    assert (tmp_path / "etc/systemd/system/notewarden.service").is_file()
    install(tmp_path, "uninstall")
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir()}
    assert left == {"etc/notewarden/config.toml"}
    assert (tmp_path / "var/lib/notewarden").is_dir()
