"""`notewarden doctor`: everything that can be wrong, found while the rest is looked at, with what to do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.command import RULES, Answer, Site, keys

from indexer.doctor.run import split


def found(answer: Answer) -> dict[str, dict[str, Any]]:
    assert keys(answer.json) == ["ok", "checks"]
    for check in answer.json["checks"]:
        assert keys(check) == ["name", "ok", "detail", "remedy"]
        assert check["detail"]
        assert check["ok"] or check["remedy"], "a fault without a remedy"
    return {check["name"]: check for check in answer.json["checks"]}


def faulty(answer: Answer) -> set[str]:
    assert answer.json["ok"] == (answer.code == 0)
    assert answer.code in (0, 2)
    return {name for name, check in found(answer).items() if not check["ok"]}


def test_a_sound_site_has_nothing_wrong(site: Site) -> None:
    assert site.run("sync").code == 0
    answer = site.run("doctor", "--json")
    assert faulty(answer) == set()
    checks = found(answer)
    assert "lists read for notes:" in checks["permissions notes"]["detail"]
    assert "PostgreSQL 18" in checks["database server"]["detail"]
    assert checks["embedding model"]["remedy"], "hash is warned of"
    assert set(checks) >= {
        "configuration",
        "secrets",
        "disk",
        "directory",
        "mount notes",
        "identity notes",
        "clock",
    }


def test_three_things_broken_are_all_told(site: Site) -> None:
    assert site.run("sync").code == 0
    secret = site.folder / "key"
    secret.write_text("k")
    secret.chmod(0o644)
    shutil.rmtree(site.notes)
    site.notes.mkdir()
    share = {
        "name": "notes", "path": site.notes, "external": True, "acl": {"source": "declared", "rule": RULES},
    }  # fmt: skip
    model = {"provider": "voyage", "api_key_file": secret, "base_url": "http://127.0.0.1:9"}
    site.configure(share=[share], embedding=model)
    answer = site.run("doctor", "--json")
    assert faulty(answer) >= {"secrets", "mount notes", "embedding model"}
    checks = found(answer)
    assert f"chmod 600 {secret}" in checks["secrets"]["remedy"]
    text = site.run("doctor")
    assert text.code == 2
    assert text.out.count("FAIL") == len(faulty(answer))
    assert "checks found something wrong" in text.out
    assert text.err == ""


def test_a_broken_configuration_is_named_and_the_rest_still_looked_at(site: Site) -> None:
    site.config.write_text("[schedule]\npoll = 'soon'\n")
    answer = site.run("doctor", "--json")
    assert faulty(answer) == {"configuration"}
    assert "poll" in found(answer)["configuration"]["detail"]


def test_a_configuration_that_others_may_change_is_refused(site: Site) -> None:
    site.people.chmod(0o666)
    answer = site.run("doctor", "--json")
    assert faulty(answer) == {"configuration"}
    assert "chmod go-w" in found(answer)["configuration"]["remedy"]


def test_a_database_that_is_not_there_costs_no_other_check(site: Site, tmp_path: Path) -> None:
    site.configure(database={"url": f"postgresql:///none?host={tmp_path}"})
    answer = site.run("doctor", "--json")
    assert faulty(answer) == {"database"}
    assert found(answer)["permissions notes"]["ok"]


def test_an_index_that_was_never_made_is_told(site: Site) -> None:
    answer = site.run("doctor", "--json")
    assert faulty(answer) == set()
    assert "sync" in found(answer)["identity notes"]["remedy"]


def test_nothing_is_changed(site: Site) -> None:
    before = site.rows("select count(*) from nw.share"), site.rows("select count(*) from nw.run")
    site.run("doctor")
    assert (site.rows("select count(*) from nw.share"), site.rows("select count(*) from nw.run")) == before


@pytest.mark.parametrize(
    ("sentence", "what", "remedy"),
    [
        ("It is broken; mend it.", "It is broken.", "Mend it."),
        ("It is broken (a; b); mend it. Nothing was deleted.", "It is broken (a; b).", "Mend it"),
    ],
)
def test_a_sentence_is_parted_into_fault_and_remedy(sentence: str, what: str, remedy: str) -> None:
    assert split(sentence)[0] == what
    assert split(sentence)[1].startswith(remedy)


def test_a_fault_of_the_configuration_is_to_be_corrected_there(site: Site) -> None:
    site.config.write_text("[schedule]\nlunch = 'noon'\n")
    check = found(site.run("doctor", "--json"))["configuration"]
    assert "lunch" in check["detail"]
    assert check["remedy"] == "Correct it in the configuration; config.example.toml lists every key."
