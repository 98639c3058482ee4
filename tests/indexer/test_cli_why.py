"""`notewarden readable` and `why` as installed: the verdict is the decision's, and it is explained."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
from support.command import Site

from acl.directory import make_directory
from indexer.readable import readable_places

SAMPLE = Path(__file__).parents[2] / "examples"


def readable(site: Site, user: str) -> set[str]:
    answer = site.run("readable", "--as", user, "--json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json["user"] == user
    return {note["path"] for note in answer.json["notes"]}


def test_readable_lists_what_the_rules_open_sorted(site: Site) -> None:
    site.write("b.md")
    site.run("sync")
    answer = site.run("readable", "--as", "alice", "--json")
    assert answer.json == {
        "user": "alice",
        "notes": [{"share": "notes", "path": path} for path in ("a.md", "b.md", "it/vpn.md")],
    }
    assert readable(site, "bob") == {"a.md", "b.md", "hr/pay.md"}
    assert site.run("readable", "--as", "alice").out.splitlines() == [
        "notes:a.md",
        "notes:b.md",
        "notes:it/vpn.md",
    ]


def test_readable_is_empty_and_exit_0_where_nothing_may_be_read(site: Site) -> None:
    assert readable(site, "alice") == set()
    answer = site.run("readable", "--as", "alice")
    assert (answer.code, answer.out) == (0, "")
    assert "no note" in answer.sentence()


@pytest.mark.parametrize("arguments", [["readable"], ["why", "a.md"]])
def test_an_unknown_user_is_exit_5(site: Site, arguments: list[str]) -> None:
    site.run("sync")
    answer = site.run(*arguments, "--as", "nobody-here")
    assert answer.code == 5
    assert "nobody-here" in answer.sentence()


def test_an_unusable_directory_is_no_answer(site: Site) -> None:
    site.run("sync")
    site.people.write_text("[users.alice")
    assert site.run("readable", "--as", "alice").code in (2, 5)


def test_looking_at_others_rights_is_audited(site: Site) -> None:
    site.run("sync")
    site.run("readable", "--as", "alice")
    site.run("why", "hr/pay.md", "--as", "bob")
    told = site.rows("select action, subject, actor <> asker from nw.audit order by audit_id")
    assert told == [("readable", "", True), ("why", "notes:hr/pay.md", True)]


def test_why_names_layer_entry_and_the_groups_on_the_way(site: Site) -> None:
    site.run("sync")
    answer = site.run("why", "it/vpn.md", "--as", "alice", "--json")
    assert list(answer.json) == ["user", "share", "path", "readable", "layers"]
    assert (answer.json["user"], answer.json["path"], answer.json["readable"]) == ("alice", "it/vpn.md", True)
    share, note = answer.json["layers"]
    assert list(share) == ["layer", "path", "readable", "ace", "sid", "through"]
    assert (share["layer"], share["readable"], share["sid"]) == ("share", True, "S-1-1-0")
    assert (note["layer"], note["path"], note["ace"], note["through"]) == (
        "note",
        "it/vpn.md",
        "allow it",
        ["oncall"],
    )
    assert note["sid"].startswith("S-1-")


def test_why_tells_what_keeps_somebody_out(site: Site) -> None:
    site.run("sync")
    denied = site.run("why", "hr/pay.md", "--as", "alice", "--json")
    assert (denied.code, denied.json["readable"]) == (0, False)
    assert [(one["layer"], one["readable"], one["ace"]) for one in denied.json["layers"]] == [
        ("share", True, "allow everyone: the share declares no readers"),
        ("note", False, "deny alice (user:alice)"),
    ]
    unnamed = site.run("why", "it/vpn.md", "--as", "bob").out
    assert "bob may not read notes:it/vpn.md" in unnamed
    assert "no entry speaks of this user" in unnamed


def test_why_without_a_user_tells_who_may(site: Site) -> None:
    site.run("sync")
    answer = site.run("why", "hr/pay.md", "--json")
    assert (answer.json["user"], answer.json["readable"]) == (None, None)
    note = answer.json["layers"][-1]
    assert (note["readable"], note["sid"], note["through"]) == (None, None, [])
    assert "allow hr" in note["ace"]


def test_why_shows_every_folder_on_the_way_of_a_posix_share(site: Site) -> None:
    site.configure(share=[{"name": "notes", "path": site.notes, "acl": {"source": "posix"}}])
    (site.notes / "it").chmod(0o711)
    (site.notes / "it/vpn.md").chmod(0o600)
    site.run("sync")
    found = site.run("why", "it/vpn.md", "--as", "bob", "--json").json
    assert [(one["layer"], one["path"], one["readable"]) for one in found["layers"]] == [
        ("share", "", True),
        ("parent", "", True),
        ("parent", "it", True),
        ("note", "it/vpn.md", False),
    ]
    assert found["readable"] is False
    admin = site.run("why", "it/vpn.md", "--as", "admin", "--json").json
    assert (admin["readable"], admin["layers"][-1]["sid"]) == (True, f"S-1-22-1-{os.geteuid()}")


def test_old_permissions_close_the_share_and_why_says_so(site: Site) -> None:
    site.run("sync")
    with site.open() as database, database.owner() as conn:
        conn.execute("update nw.share set swept_at = swept_at - interval '25 hours'")
    found = site.run("why", "a.md", "--as", "alice", "--json")
    assert found.json["readable"] is False
    assert found.err == ""
    assert (found.json["layers"][0]["layer"], found.json["layers"][0]["readable"]) == ("share", False)
    assert "too old" in found.json["layers"][0]["ace"]
    assert readable(site, "alice") == set()


def test_why_of_what_is_not_indexed_is_exit_3(site: Site) -> None:
    site.run("sync")
    assert site.run("why", "it").code == 3
    (site.notes / "link.md").symlink_to(site.notes / "a.md")
    site.run("sync")
    answer = site.run("why", "link.md", "--as", "alice")
    assert answer.code == 3
    assert "skipped: a link" in answer.sentence()
    answer = site.run("why", "gone\x1b.md")
    assert answer.code == 3
    assert "gone\\x1b.md" in answer.sentence()


def test_controls_in_names_reach_no_terminal(site: Site) -> None:
    site.write("e\x1b[31mvil\u202e.md")
    site.run("sync")
    for arguments in (["readable", "--as", "alice"], ["readable", "--as", "alice", "--json"], ["status"]):
        answer = site.run(*arguments)
        assert not set(answer.out) & {"\x1b", "\u202e"}
    assert "e\x1b[31mvil\u202e.md" in readable(site, "alice")
    assert site.run("why", "e\x1b[31mvil\u202e.md", "--as", "alice").code == 0


def test_readable_and_why_equal_the_samples_rules(site: Site) -> None:
    """Rule by rule, person by person: what is written down by hand is what the command says."""
    truth = json.loads((SAMPLE / "truth.json").read_text())
    rights = tomllib.loads((SAMPLE / "rules.toml").read_text())["share"]["acl"]
    site.configure(
        share=[{"name": "notes", "path": SAMPLE / "notes", "acl": rights}],
        directory={"source": "file", "file": SAMPLE / "people.toml"},
    )
    answer = site.run("sync", "--json")
    assert answer.code == 0, answer.err
    directory = make_directory(site.settings)
    with site.open() as database:
        for person, paths in truth.items():
            places = readable_places(database, directory, directory.user(person))
            assert {os.fsdecode(place.path) for place in places} == set(paths)
    assert readable(site, "karl") == set(truth["karl"])
    indexed = [path.decode() for (path,) in site.rows("select path from nw.note order by path")]
    for person, path in (("tom", "hr/own-case/"), ("karl", "projects/kestrel/pricing/"), ("mei", "board/")):
        note = next(name for name in indexed if name.startswith(path))
        found = site.run("why", note, "--as", person, "--json")
        assert found.json["readable"] is (note in truth[person])
        assert all(one["readable"] for one in found.json["layers"]) is found.json["readable"]
        assert found.err == ""
