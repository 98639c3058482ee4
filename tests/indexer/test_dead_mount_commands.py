"""The commands while the share's mount is dead: each ends, says so in a sentence, and loses nothing.

They run as processes of their own, since a thread that hangs must not keep one from ending; only the waiting
is made shorter than in use.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.command import Answer, Site
from test_dead_mount import served, stop

SHORT = "import sys; from notewarden import patient; patient.LIMIT_S, patient.FIRST_S = 0.3, 0.6; "
MAIN = {
    "notewarden": "from indexer.cli import main; sys.exit(main())",
    "ask": "from answerer.ask import main; sys.exit(main())",
}


@pytest.fixture
def server(site: Site) -> Iterator[subprocess.Popen[str]]:
    """The site's notes, behind a mount whose server is the process that is given."""
    behind = site.folder / "behind"
    site.notes.rename(behind)
    site.notes.mkdir()
    with served(behind, site.notes) as process:
        yield process


def command(site: Site, *words: str, program: str = "notewarden") -> Answer:
    """Run it with short limits; one that hangs fails the test."""
    line = [sys.executable, "-c", SHORT + MAIN[program], "--config", str(site.config), *words]
    return Answer(subprocess.run(line, capture_output=True, text=True, timeout=20, check=False))


def test_sync_says_it_in_a_sentence_status_knows_it_and_no_row_is_lost(
    site: Site, server: subprocess.Popen[str]
) -> None:
    assert command(site, "sync").code == 0
    rows = site.rows("select note_id, path, content_hash from nw.note order by note_id")
    stop(server)
    before = command(site, "status", "--json")  # no poll has seen it yet
    assert before.code == 1 and any("does not answer" in reason for reason in before.json["reasons"])
    synced = command(site, "sync", "--json")
    assert (synced.code, synced.json["shares"][0]["status"]) == (4, "unavailable")
    assert f"{site.notes} does not answer" in synced.sentence()
    assert len(rows) == 3 and rows == site.rows("select note_id, path, content_hash from nw.note order by 1")
    status = site.run("status", "--json")  # as installed, with the limits it has in use
    assert (status.code, status.json["shares"][0]["notes"]) == (1, 3)
    assert any("does not answer" in reason for reason in status.json["reasons"])


def test_doctor_names_the_mount_and_the_remedy(site: Site, server: subprocess.Popen[str]) -> None:
    assert command(site, "sync").code == 0
    stop(server)
    done = command(site, "doctor", "--json")
    checks = {check["name"]: check for check in done.json["checks"]}
    assert done.code == 2 and checks["configuration"]["ok"] and checks["database"]["ok"]
    assert not checks["mount notes"]["ok"]
    assert f"does not answer (fuse.notes from notes at {site.notes})" in checks["mount notes"]["detail"]
    assert "umount -l" in checks["mount notes"]["remedy"]
    assert not checks["permissions notes"]["ok"] and not checks["identity notes"]["ok"]


def test_the_other_commands_end_too(site: Site, server: subprocess.Popen[str]) -> None:
    assert command(site, "sync").code == 0
    stop(server)
    named = str(site.notes / "it/vpn.md")
    why = command(site, "why", named, "--as", "alice", "--json")
    assert (why.code, why.json["readable"]) == (0, True)
    assert "cannot be reached" in why.sentence()
    assert command(site, "chunks", named).code == 2
    folder = command(site, "init", "--notes", str(site.notes), "--force")
    assert folder.code == 4 and "does not answer" in folder.sentence()


def test_an_answer_goes_by_the_index_or_is_refused_as_the_late_check_is_configured(
    site: Site, server: subprocess.Popen[str]
) -> None:
    site.configure(database={"url": "embedded"})
    assert command(site, "sync").code == 0
    stop(server)
    preferred = command(site, "search", "vpn", "--json", program="ask")
    assert preferred.code == 0 and preferred.json["results"]
    assert "could not be reached" in preferred.sentence()
    with site.config.open("a") as file:
        file.write('[answerer]\nlate_check = "require"\n')
    required = command(site, "search", "vpn", "--json", program="ask")
    assert (required.code, required.out) == (4, "")
    assert "late_check requires it" in required.sentence()
