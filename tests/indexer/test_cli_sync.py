"""`notewarden sync` and `reindex` as installed: JSON, exit codes, what is written and what is not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading

import pytest
from support.command import PROGRAM, House, run

from db import runs

SHARE_KEYS = [
    "share", "status", "seen", "hashed", "added", "changed", "moved", "deleted", "held", "acl_changed",
    "unreadable", "parked", "pending", "skipped",
]  # fmt: skip
NOWHERE = {"url": "postgresql://nobody@127.0.0.1:1/nothing"}


def test_the_report_has_the_contracts_keys_and_a_second_sync_finds_nothing_to_do(house: House) -> None:
    first = house.run("sync", "--json")
    assert (first.code, first.err) == (0, "")
    assert list(first.json) == ["run", "shares", "chunks_embedded", "chunks_reused", "seconds"]
    assert list(first.json["shares"][0]) == SHARE_KEYS
    assert (first.json["shares"][0]["added"], first.json["chunks_embedded"]) == (3, 3)
    second = house.run("sync", "--json").json
    assert second["run"] > first.json["run"]
    assert (second["shares"][0]["hashed"], second["chunks_embedded"]) == (0, 0)
    assert house.run("sync", "--full", "--json").json["shares"][0]["hashed"] == 3


def test_text_has_a_line_for_each_share_and_totals(house: House) -> None:
    answer = house.run("sync")
    assert answer.code == 0
    first, totals = answer.out.splitlines()
    assert first.startswith("notes: 3 seen, 3 hashed, 3 added")
    assert totals.startswith("1 shares, 3 chunks embedded, 0 reused")


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(house: House) -> None:
    house.run("sync")
    before = house.rows("select * from nw.note order by note_id"), house.rows("select * from nw.share")
    house.write("new.md")
    house.write("a.md", "# Other\n\nOther text.\n")
    (house.notes / "it/vpn.md").unlink()
    rehearsed = house.run("sync", "--dry-run", "--json")
    assert rehearsed.code == 0
    assert before == (
        house.rows("select * from nw.note order by note_id"),
        house.rows("select * from nw.share"),
    )
    assert len(house.rows("select from nw.run")) == 1
    assert rehearsed.json["cost"]["texts"] == 2
    assert rehearsed.json["cost"]["tokens"] > 10
    real = house.run("sync", "--json").json
    names = ("seen", "hashed", "added", "changed", "deleted", "held")
    assert [rehearsed.json["shares"][0][name] for name in names] == [3, 2, 1, 1, 1, 0]
    assert [real["shares"][0][name] for name in names] == [3, 2, 1, 1, 1, 0]
    assert rehearsed.json["chunks_embedded"] == real["chunks_embedded"] == 2


def test_an_unavailable_share_is_exit_4_with_json_and_stops_no_other(house: House) -> None:
    lost = {"name": "lost", "path": house.folder / "lost", "acl": {"source": "declared"}}
    house.configure(share=[lost, {"name": "notes", "path": house.notes, "acl": {"source": "declared"}}])
    answer = house.run("sync", "--json")
    assert answer.code == 4
    assert [(one["share"], one["status"]) for one in answer.json["shares"]] == [
        ("lost", "unavailable"),
        ("notes", "ok"),
    ]
    assert answer.json["shares"][1]["added"] == 3
    assert str(house.folder / "lost") in answer.sentence()
    assert house.run("sync", "--dry-run").code == 4


def test_a_note_that_may_not_be_read_is_exit_6_and_makes_status_unhealthy(
    house: House, as_root: None
) -> None:
    file = house.write("shut.md")
    file.chmod(0o600)
    os.chown(file, 61005, 61005)
    limited = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    answer = house.run("sync", "--json", before=limited)
    assert (answer.code, answer.json["shares"][0]["unreadable"]) == (6, 1)
    assert "notewarden status" in answer.sentence()
    status = house.run("status", "--json")
    assert (status.code, status.json["healthy"]) == (1, False)
    (note,) = status.json["notes"]
    assert list(note) == ["share", "path", "state", "reason", "attempts", "since"]
    assert (note["path"], note["state"], note["attempts"]) == ("shut.md", "unreadable", 1)
    assert any("shut.md" in reason for reason in status.json["reasons"])
    assert status.json["shares"][0]["coverage"] == 0.75
    assert "shut.md" in house.run("status").out


def test_an_unreachable_database_is_exit_7(house: House) -> None:
    house.configure(database=NOWHERE)
    answer = house.run("sync")
    assert answer.code == 7
    assert "[database] url" in answer.sentence()


def test_a_newer_schema_is_exit_7(house: House) -> None:
    house.run("sync")
    with house.open() as database, database.owner() as conn:
        conn.execute(
            "insert into nw.schema_version (version, name, checksum) values (999, 'later', sha256(''))"
        )
    answer = house.run("sync")
    assert answer.code == 7
    assert "upgrade notewarden" in answer.sentence()


@pytest.mark.parametrize("command", ["sync", "confirm-deletes", "reindex", "readable"])
def test_the_configuration_is_judged_before_the_database(house: House, command: str) -> None:
    house.configure(database=NOWHERE)
    text = house.config.read_text() + "\n[chunking]\nmax_token = 3\n"
    house.config.write_text(text)
    arguments = {"reindex": ["--all"], "readable": ["--as", "alice"]}.get(command, [])
    answer = house.run(command, *arguments)
    assert answer.code == 2
    for part in (str(house.config), "[chunking]", "max_token"):
        assert part in answer.sentence()


def test_a_mount_without_real_modes_is_exit_2_before_anything_is_touched(house: House) -> None:
    proc = {"name": "proc", "path": "/proc", "acl": {"source": "posix"}}
    house.configure(share=[proc], database=NOWHERE)
    answer = house.run("sync")
    assert answer.code == 2
    assert "declared" in answer.sentence()


def test_a_sync_waits_for_another_indexer_and_says_so(house: House) -> None:
    with house.open() as database, database.owner() as conn, runs.indexer_lock(conn):
        working = subprocess.Popen(
            [PROGRAM, "--config", house.config, "sync", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert working.stderr is not None
        assert "another indexer is at work" in working.stderr.readline()
    out, err = working.communicate(timeout=60)
    assert (working.returncode, err) == (0, "")
    assert '"added": 3' in out


def test_ctrl_c_is_exit_130_without_a_traceback(house: House) -> None:
    with house.open() as database, database.owner() as conn, runs.indexer_lock(conn):
        working = subprocess.Popen(
            [PROGRAM, "--config", house.config, "sync"],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
        )
        assert working.stderr is not None
        working.stderr.readline()
        working.send_signal(signal.SIGINT)
        _, err = working.communicate(timeout=60)
    assert (working.returncode, err) == (130, "notewarden: interrupted\n")


def test_reindex_makes_the_rows_of_a_folder_anew_and_no_others(house: House) -> None:
    house.run("sync")
    before = dict(
        house.rows(
            "select n.path, max(c.chunk_id) from nw.note n join nw.note_chunk c using (note_id) group by 1"
        )
    )
    answer = house.run("reindex", "it")
    assert answer.code == 0
    assert "Indexing 1 notes again." in answer.out
    after = dict(
        house.rows(
            "select n.path, max(c.chunk_id) from nw.note n join nw.note_chunk c using (note_id) group by 1"
        )
    )
    assert {path for path in after if after[path] != before[path]} == {b"it/vpn.md"}
    assert house.run("reindex", "--all").out.startswith("Indexing 3 notes again.")
    assert house.run("reindex", str(house.notes / "a.md"), "notes:hr/pay.md").out.startswith("Indexing 2 ")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [([], 2), (["a.md", "--all"], 2), (["nope.md"], 3), (["i"], 3), (["a.md", "--share", "other"], 2)],
)
def test_reindex_refuses_what_names_nothing(house: House, arguments: list[str], code: int) -> None:
    house.run("sync")
    answer = house.run("reindex", *arguments)
    assert answer.code == code
    answer.sentence()


def test_reindex_wants_the_share_where_two_have_the_note(house: House) -> None:
    shutil.copytree(house.notes, house.folder / "twin")
    both = [
        {"name": name, "path": house.folder / name, "acl": {"source": "declared"}}
        for name in ("notes", "twin")
    ]
    house.configure(share=both)
    house.run("sync")
    answer = house.run("reindex", "it/vpn.md")
    assert answer.code == 2
    assert "notes, twin" in answer.sentence()
    assert house.run("reindex", "it/vpn.md", "--share", "twin").code == 0
    assert house.run("reindex", "twin:it").out.startswith("Indexing 1 notes again.")


def test_a_path_in_another_normal_form_is_found(house: House) -> None:
    house.write("u\u0308ber.md")  # decomposed, as macOS writes names
    house.run("sync")
    assert house.run("reindex", "\u00fcber.md").out.startswith("Indexing 1 notes again.")


def test_errors_show_controls_escaped(house: House) -> None:
    answer = run("--config", "/no\x1b[31m/such\u202efile", "sync")
    assert answer.code == 2
    assert "\\x1b[31m/such\\u202efile" in answer.sentence()


def test_a_closed_pipe_is_no_fault(house: House) -> None:
    house.run("sync")
    done = subprocess.run(
        f"{PROGRAM} --config {house.config} sync --json | true",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""


def test_progress_tells_rate_and_time_left() -> None:
    from indexer.context import Progress
    from indexer.progress import describe

    line = describe(Progress("notes", 10, 100, 40), 5.0)
    assert line == "notes: 10 of 100 notes, 40 chunks embedded, 2.0 notes/s, 45 s left"
    assert describe(Progress("a\x1bb", 0, 5, 0), 0.0) == "a\\x1bb: 0 of 5 notes, 0 chunks embedded"


def test_the_quick_sync_polls_once_and_yields_to_another_indexer(house: House) -> None:
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="notewarden.quick_sync")
    quick = entry.load()
    with house.open() as database, database.owner() as conn, runs.indexer_lock(conn):
        waiting = threading.Thread(target=quick, args=(house.settings,))
        waiting.start()
        waiting.join(timeout=60)
        assert not waiting.is_alive()
    assert house.rows("select from nw.note") == []
    quick(house.settings)
    assert len(house.rows("select from nw.note")) == 3
