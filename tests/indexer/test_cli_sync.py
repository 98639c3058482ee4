"""`notewarden sync` and `reindex` as installed: JSON, exit codes, what is written and what is not."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import threading

import pytest
from support.command import PROGRAM, Site, run

from db import runs
from indexer.context import Progress
from indexer.progress import ProgressLine, describe

SHARE_KEYS = [
    "share", "status", "seen", "hashed", "added", "changed", "moved", "deleted", "held", "acl_changed",
    "unreadable", "parked", "pending", "skipped",
]  # fmt: skip
NOWHERE = {"url": "postgresql://nobody@127.0.0.1:1/nothing"}


def test_the_report_has_the_contracts_keys_and_a_second_sync_finds_nothing_to_do(site: Site) -> None:
    first = site.run("sync", "--json")
    assert (first.code, first.err) == (0, "")
    assert list(first.json) == ["run", "shares", "chunks_embedded", "chunks_reused", "seconds"]
    assert list(first.json["shares"][0]) == SHARE_KEYS
    assert (first.json["shares"][0]["added"], first.json["chunks_embedded"]) == (3, 3)
    second = site.run("sync", "--json").json
    assert second["run"] > first.json["run"]
    assert (second["shares"][0]["hashed"], second["chunks_embedded"]) == (0, 0)
    assert site.run("sync", "--full", "--json").json["shares"][0]["hashed"] == 3


def test_text_has_a_line_for_each_share_and_totals(site: Site) -> None:
    answer = site.run("sync")
    assert answer.code == 0
    first, totals = answer.out.splitlines()
    assert first.startswith("notes: 3 seen, 3 hashed, 3 added")
    assert totals.startswith("1 share, 3 chunks embedded, 0 reused")


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(site: Site) -> None:
    site.run("sync")
    before = site.rows("select * from nw.note order by note_id"), site.rows("select * from nw.share")
    site.write("new.md")
    site.write("a.md", "# Other\n\nOther text.\n")
    (site.notes / "it/vpn.md").unlink()
    rehearsed = site.run("sync", "--dry-run", "--json")
    assert rehearsed.code == 0
    assert before == (
        site.rows("select * from nw.note order by note_id"),
        site.rows("select * from nw.share"),
    )
    assert len(site.rows("select from nw.run")) == 1
    assert rehearsed.json["cost"]["texts"] == 2
    assert rehearsed.json["cost"]["tokens"] > 10
    real = site.run("sync", "--json").json
    names = ("seen", "hashed", "added", "changed", "deleted", "held")
    assert [rehearsed.json["shares"][0][name] for name in names] == [3, 2, 1, 1, 1, 0]
    assert [real["shares"][0][name] for name in names] == [3, 2, 1, 1, 1, 0]
    assert rehearsed.json["chunks_embedded"] == real["chunks_embedded"] == 2


def test_an_unavailable_share_is_exit_4_with_json_and_stops_no_other(site: Site) -> None:
    lost = {"name": "lost", "path": site.folder / "lost", "acl": {"source": "declared"}}
    site.configure(share=[lost, {"name": "notes", "path": site.notes, "acl": {"source": "declared"}}])
    answer = site.run("sync", "--json")
    assert answer.code == 4
    assert [(one["share"], one["status"]) for one in answer.json["shares"]] == [
        ("lost", "unavailable"),
        ("notes", "ok"),
    ]
    assert answer.json["shares"][1]["added"] == 3
    assert str(site.folder / "lost") in answer.sentence()
    assert site.run("sync", "--dry-run").code == 4


def test_a_note_that_may_not_be_read_is_exit_6_and_makes_status_unhealthy(site: Site, as_root: None) -> None:
    file = site.write("shut.md")
    file.chmod(0o600)
    os.chown(file, 61005, 61005)
    limited = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    answer = site.run("sync", "--json", before=limited)
    assert (answer.code, answer.json["shares"][0]["unreadable"]) == (6, 1)
    assert "notewarden status" in answer.sentence()
    status = site.run("status", "--json")
    assert (status.code, status.json["healthy"]) == (1, False)
    (note,) = status.json["notes"]
    assert list(note) == ["share", "path", "state", "reason", "attempts", "since"]
    assert (note["path"], note["state"], note["attempts"]) == ("shut.md", "unreadable", 1)
    assert any("shut.md" in reason for reason in status.json["reasons"])
    assert status.json["shares"][0]["coverage"] == 0.75
    assert "shut.md" in site.run("status").out


def test_an_unreachable_database_is_exit_7(site: Site) -> None:
    site.configure(database=NOWHERE)
    answer = site.run("sync")
    assert answer.code == 7
    assert "[database] url" in answer.sentence()


def test_a_newer_schema_is_exit_7(site: Site) -> None:
    site.run("sync")
    with site.open() as database, database.owner() as conn:
        conn.execute(
            "insert into nw.schema_version (version, name, checksum) values (999, 'later', sha256(''))"
        )
    answer = site.run("sync")
    assert answer.code == 7
    assert "upgrade notewarden" in answer.sentence()


@pytest.mark.parametrize("command", ["sync", "confirm-deletes", "reindex", "readable"])
def test_the_configuration_is_judged_before_the_database(site: Site, command: str) -> None:
    site.configure(database=NOWHERE)
    text = site.config.read_text() + "\n[chunking]\nmax_token = 3\n"
    site.config.write_text(text)
    arguments = {"reindex": ["--all"], "readable": ["--as", "alice"]}.get(command, [])
    answer = site.run(command, *arguments)
    assert answer.code == 2
    for part in (str(site.config), "[chunking]", "max_token"):
        assert part in answer.sentence()


def test_a_mount_without_real_modes_is_exit_2_before_anything_is_touched(site: Site) -> None:
    proc = {"name": "proc", "path": "/proc", "acl": {"source": "posix"}}
    site.configure(share=[proc], database=NOWHERE)
    answer = site.run("sync")
    assert answer.code == 2
    assert "declared" in answer.sentence()


def test_a_sync_waits_for_another_indexer_and_says_so(site: Site) -> None:
    with site.open() as database, database.owner() as conn, runs.indexer_lock(conn):
        working = subprocess.Popen(
            [PROGRAM, "--config", site.config, "sync", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert working.stderr is not None
        assert "another indexer is at work" in working.stderr.readline()
    out, err = working.communicate(timeout=60)
    assert (working.returncode, err) == (0, "")
    assert '"added": 3' in out


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_is_exit_130_without_a_traceback(site: Site, stop: signal.Signals) -> None:
    with site.open() as database, database.owner() as conn, runs.indexer_lock(conn):
        working = subprocess.Popen(
            [PROGRAM, "--config", site.config, "sync"],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
        )
        assert working.stderr is not None
        working.stderr.readline()
        working.send_signal(stop)
        _, err = working.communicate(timeout=60)
    assert (working.returncode, err) == (130, "notewarden: interrupted\n")


def test_reindex_makes_the_rows_of_a_folder_anew_and_no_others(site: Site) -> None:
    site.run("sync")
    before = dict(
        site.rows(
            "select n.path, max(c.chunk_id) from nw.note n join nw.note_chunk c using (note_id) group by 1"
        )
    )
    answer = site.run("reindex", "it")
    assert answer.code == 0
    assert "Indexing 1 note again." in answer.out
    after = dict(
        site.rows(
            "select n.path, max(c.chunk_id) from nw.note n join nw.note_chunk c using (note_id) group by 1"
        )
    )
    assert {path for path in after if after[path] != before[path]} == {b"it/vpn.md"}
    assert site.run("reindex", "--all").out.startswith("Indexing 3 notes again.")
    assert site.run("reindex", str(site.notes / "a.md"), "notes:hr/pay.md").out.startswith("Indexing 2 ")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [([], 2), (["a.md", "--all"], 2), (["nope.md"], 3), (["i"], 3), (["a.md", "--share", "other"], 2)],
)
def test_reindex_refuses_what_names_nothing(site: Site, arguments: list[str], code: int) -> None:
    site.run("sync")
    answer = site.run("reindex", *arguments)
    assert answer.code == code
    answer.sentence()


def test_reindex_wants_the_share_where_two_have_the_note(site: Site) -> None:
    shutil.copytree(site.notes, site.folder / "twin")
    both = [
        {"name": name, "path": site.folder / name, "acl": {"source": "declared"}}
        for name in ("notes", "twin")
    ]
    site.configure(share=both)
    site.run("sync")
    answer = site.run("reindex", "it/vpn.md")
    assert answer.code == 2
    assert "notes, twin" in answer.sentence()
    assert site.run("reindex", "it/vpn.md", "--share", "twin").code == 0
    assert site.run("reindex", "twin:it").out.startswith("Indexing 1 note again.")


def test_a_path_in_another_normal_form_is_found(site: Site) -> None:
    site.write("u\u0308ber.md")  # decomposed, as macOS writes names
    site.run("sync")
    assert site.run("reindex", "\u00fcber.md").out.startswith("Indexing 1 note again.")


def test_errors_show_controls_escaped(site: Site) -> None:
    answer = run("--config", "/no\x1b[31m/such\u202efile", "sync")
    assert answer.code == 2
    assert "\\x1b[31m/such\\u202efile" in answer.sentence()


def test_a_closed_pipe_is_no_fault(site: Site) -> None:
    site.run("sync")
    done = subprocess.run(
        f"{PROGRAM} --config {site.config} sync --json | true",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""


def test_progress_tells_rate_and_time_left() -> None:
    line = describe(Progress("notes", 10, 100, 40), 5.0)
    assert line == "notes: 10 of 100 notes, 40 chunks embedded, 2.0 notes/s, 45 s left"
    assert describe(Progress("a\x1bb", 0, 5, 0), 0.0) == "a\\x1bb: 0 of 5 notes, 0 chunks embedded"


def test_the_quick_sync_polls_once_and_yields_to_another_indexer(site: Site) -> None:
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="notewarden.quick_sync")
    quick = entry.load()
    with site.open() as database, database.owner() as conn, runs.indexer_lock(conn):
        waiting = threading.Thread(target=quick, args=(site.settings,))
        waiting.start()
        waiting.join(timeout=60)
        assert not waiting.is_alive()
    assert site.rows("select from nw.note") == []
    quick(site.settings)
    assert len(site.rows("select from nw.note")) == 3


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def told(screen: Screen, **options: bool) -> str:
    """What ten steps of 4 s each leave on a screen."""
    clock = iter(range(0, 400, 4))
    line = ProgressLine(screen, clock=lambda: float(next(clock)), **options)
    for done in range(1, 11):
        line(Progress("notes", done, 10, done))
    line.close()
    return screen.getvalue()


def test_progress_moves_one_line_on_a_terminal_and_is_sparse_elsewhere() -> None:
    terminal = told(Screen(True), terminal_only=True)
    assert terminal.count("\r\x1b[K") == 11
    assert "\n" not in terminal
    lines = told(Screen(False)).splitlines()
    assert 3 <= len(lines) <= 4
    assert all(line.startswith("notewarden: notes: ") and "left" in line for line in lines)
    assert told(Screen(False), terminal_only=True) == ""
