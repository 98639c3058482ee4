"""`notewarden status` and `confirm-deletes` as installed: what is unhealthy, and what ends it."""

from __future__ import annotations

from typing import Any

import pytest
from support.command import PEOPLE, RULES, Site

from acl.directory import make_directory
from db import runs
from indexer.sync import Indexer

SHARE_KEYS = [
    "share", "notes", "chunks", "coverage", "oldest_pending_s", "last_poll", "last_acl_sweep",
    "last_embedded", "held",
]  # fmt: skip


def reasons(site: Site, code: int = 1) -> list[str]:
    answer = site.run("status", "--json")
    assert answer.code == code
    found: list[str] = answer.json["reasons"]
    assert answer.json["healthy"] is (not found)
    return found


def sql(site: Site, statement: str) -> None:
    with site.open() as database, database.owner() as conn:
        conn.execute(statement)  # type: ignore[call-overload]


def test_a_healthy_index_has_the_contracts_keys(site: Site) -> None:
    site.run("sync")
    answer = site.run("status", "--json")
    assert answer.code == 0
    assert list(answer.json) == ["healthy", "reasons", "shares", "notes", "cost"]
    (share,) = answer.json["shares"]
    assert list(share) == SHARE_KEYS
    assert (share["notes"], share["chunks"], share["coverage"], share["held"]) == (3, 3, 1.0, 0)
    assert share["oldest_pending_s"] is None
    assert all(share[name].endswith("Z") for name in ("last_poll", "last_acl_sweep", "last_embedded"))
    assert (answer.json["healthy"], answer.json["notes"]) == (True, [])
    assert "`hash`" in answer.sentence()
    assert "Healthy." in site.run("status").out


def test_an_index_that_was_never_synced_says_so(site: Site) -> None:
    answer = site.run("status", "--json")
    assert answer.code == 1
    (share,) = answer.json["shares"]
    assert (share["notes"], share["coverage"], share["last_poll"], share["last_embedded"]) == (
        0,
        0.0,
        None,
        None,
    )
    assert "never synced" in answer.json["reasons"][0]


def test_an_unavailable_share_is_unhealthy(site: Site) -> None:
    site.run("sync")
    site.notes.rename(site.folder / "away")
    assert site.run("sync").code == 4
    (reason,) = reasons(site)
    assert "unavailable" in reason
    assert str(site.notes) in reason


def test_a_sweep_is_too_old_from_half_of_max_age_on(site: Site) -> None:
    site.run("sync")
    sql(site, "update nw.share set swept_at = swept_at - interval '11 hours 50 minutes'")
    assert reasons(site, 0) == []
    sql(site, "update nw.share set swept_at = swept_at - interval '20 minutes'")
    (reason,) = reasons(site)
    assert "12 h" in reason


def test_an_old_poll_counts_only_where_a_daemon_has_run(site: Site) -> None:
    site.run("sync")
    sql(site, "update nw.share set polled_at = polled_at - interval '16 minutes'")
    assert reasons(site, 0) == []
    with site.open() as database, database.owner() as conn:
        runs.end(conn, runs.begin(conn, "sync", daemon=True)[0], {}, 0)
    (reason,) = reasons(site)
    assert "last poll" in reason


@pytest.mark.parametrize(
    ("state", "unhealthy"), [("parked", True), ("unreadable", True), ("skipped", False), ("pending", False)]
)
def test_notes_in_trouble_are_listed_and_some_are_unhealthy(site: Site, state: str, unhealthy: bool) -> None:
    site.run("sync")
    sql(
        site,
        "insert into nw.ledger (share_id, path, state, reason)"
        f" select share_id, '\\x62ff2e6d64', '{state}', 'because' from nw.share",
    )
    answer = site.run("status", "--json")
    (note,) = answer.json["notes"]
    assert (note["share"], note["path"], note["state"], note["reason"]) == (
        "notes",
        "b\\xff.md",
        state,
        "because",
    )
    assert answer.code == int(unhealthy)
    assert answer.json["shares"][0]["coverage"] == (1.0 if state == "skipped" else 0.75)
    assert (answer.json["shares"][0]["oldest_pending_s"] is not None) is (state == "pending")


def test_a_list_that_nobody_can_understand_counts_as_unreadable(site: Site) -> None:
    with site.open() as database:
        indexer = Indexer(site.settings, database, directory=make_directory(site.settings))
        indexer.sync()
        site.people.write_text(PEOPLE.replace("[users.alice]", "[users.alicia]"))  # denied in hr
        report = indexer.sync()
    assert (report.shares[0].unreadable, report.exit_code) == (1, 6)
    answer = site.run("status", "--json")
    assert answer.code == 1
    (note,) = answer.json["notes"]
    assert (note["path"], note["state"]) == ("hr/pay.md", "unreadable")
    assert "alice" in note["reason"]


def test_a_rule_kept_narrower_is_unhealthy_until_reindex_says_otherwise(site: Site) -> None:
    site.run("sync")
    (site.notes / "hr/pay.md").rename(site.notes / "pay.md")
    site.run("sync")
    (reason,) = reasons(site)
    assert "notes:pay.md" in reason
    assert paths(site, "alice") == {"a.md", "it/vpn.md"}
    site.run("reindex", "pay.md")
    assert reasons(site, 0) == []
    assert paths(site, "alice") == {"a.md", "it/vpn.md", "pay.md"}


def paths(site: Site, user: str) -> set[str]:
    return {note["path"] for note in site.run("readable", "--as", user, "--json").json["notes"]}


@pytest.fixture
def held(site: Site) -> Site:
    """A site in which three notes of six are gone, more than may go at once."""
    share: dict[str, Any] = {
        "name": "notes",
        "path": site.notes,
        "acl": {"source": "declared", "rule": RULES},
    }
    site.configure(share=[share], deletes={"hold_count": 2})
    for number in range(3):
        site.write(f"old/{number}.md")
    site.run("sync")
    for number in range(3):
        (site.notes / f"old/{number}.md").unlink()
    answer = site.run("sync", "--json")
    assert (answer.code, answer.json["shares"][0]["held"], answer.json["shares"][0]["deleted"]) == (6, 3, 0)
    return site


def test_held_notes_are_unhealthy_hidden_and_go_when_confirmed(held: Site) -> None:
    (reason,) = reasons(held)
    assert "confirm-deletes" in reason
    status = held.run("status", "--json").json["shares"][0]
    assert (status["held"], status["notes"]) == (3, 3)
    assert paths(held, "bob") == {"a.md", "hr/pay.md"}
    answer = held.run("confirm-deletes")
    assert (answer.code, answer.out) == (0, "3 notes deleted from the index.\n")
    assert len(held.rows("select from nw.note")) == 3
    assert held.rows("select actor, action, subject from nw.audit where action = 'confirm-deletes'")[0][
        1:
    ] == (
        "confirm-deletes",
        "notes",
    )
    assert reasons(held, 0) == []
    again = held.run("confirm-deletes")
    assert (again.code, again.out) == (0, "0 notes deleted from the index.\n")


def test_a_held_note_that_is_there_again_stays(held: Site) -> None:
    held.write("old/1.md")
    answer = held.run("confirm-deletes", "--share", "notes")
    assert (answer.code, answer.out) == (0, "2 notes deleted from the index.\n")
    assert "there again" in answer.sentence()
    assert held.run("sync").code == 0
    assert "old/1.md" in paths(held, "bob")


def test_nothing_is_confirmed_on_a_share_that_is_not_the_share(held: Site) -> None:
    held.notes.rename(held.folder / "real")
    assert held.run("confirm-deletes").code == 4
    held.notes.mkdir()
    assert held.run("confirm-deletes").code == 4
    answer = held.run("confirm-deletes", "--share", "notes", "--emptied")
    assert answer.code == 4
    assert "not the share" in answer.sentence()
    assert len(held.rows("select from nw.note")) == 6


def test_an_emptied_root_goes_only_when_told(site: Site) -> None:
    site.run("sync")
    for file in sorted(site.notes.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    answer = site.run("sync")
    assert answer.code == 4
    assert "--emptied" in answer.sentence()
    assert site.run("confirm-deletes").out == "0 notes deleted from the index.\n"
    assert site.run("confirm-deletes", "--emptied").code == 2
    assert site.run("confirm-deletes", "--share", "nope", "--emptied").code == 2
    answer = site.run("confirm-deletes", "--share", "notes", "--emptied")
    assert (answer.code, answer.out) == (0, "3 notes deleted from the index.\n")
    assert site.rows("select from nw.note") == []
    assert site.run("sync").code == 0


def test_emptied_deletes_nothing_from_a_root_that_is_not_empty(site: Site) -> None:
    site.run("sync")
    answer = site.run("confirm-deletes", "--share", "notes", "--emptied")
    assert (answer.code, answer.out) == (0, "0 notes deleted from the index.\n")
    assert len(site.rows("select from nw.note")) == 3
