"""Arguments that name notes and folders."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable

import pytest
from support.answer_house import House

from answerer.engine import Where
from notewarden.errors import NotInNotes, UsageError


def path_of(house: House, person: str, argument: str, share: str | None = None) -> str:
    shown = house.engine.show(house.asker(person), argument, share).result
    return f"{shown.share}:{shown.path}"


def test_forms_of_one_path(house: House) -> None:
    for argument in (
        "handbook/leave.md",
        "./handbook/leave.md",
        "notes:handbook/leave.md",
        f"{house.folder}/notes/handbook/leave.md",
        f"{house.folder}/notes/hr/../handbook/leave.md",
    ):
        assert path_of(house, "cleo", argument) == "notes:handbook/leave.md"
    for argument in ("handbook/latin\udce9.md", r"handbook/latin\xe9.md"):
        assert path_of(house, "cleo", argument) == r"notes:handbook/latin\xe9.md"


def test_an_equal_normal_form_is_found_if_it_is_the_only_one(build_house: Callable[..., House]) -> None:
    house = build_house()
    stored = "böse/überblick.md"
    other = unicodedata.normalize("NFD", stored)
    assert other != stored
    assert path_of(house, "cleo", other) == f"notes:{stored}"
    (house.folder / "notes" / other).parent.mkdir()
    (house.folder / "notes" / other).write_text("# The other one\n", "utf-8")
    house.sync()
    assert path_of(house, "cleo", stored) == f"notes:{stored}"
    mixed = unicodedata.normalize("NFD", "böse") + "/überblick.md"
    with pytest.raises(NotInNotes):
        path_of(house, "cleo", mixed)


def test_two_shares_have_it_only_if_both_may_be_read(house: House) -> None:
    with pytest.raises(UsageError, match="lab, notes"):
        path_of(house, "ben", "it/vpn.md")
    assert path_of(house, "ben", "lab:it/vpn.md") == "lab:it/vpn.md"
    assert path_of(house, "ben", "it/vpn.md", "notes") == "notes:it/vpn.md"
    with pytest.raises(NotInNotes):
        path_of(house, "cleo", "it/vpn.md")


def folders_found(house: House, person: str, where: Where) -> set[str]:
    rows = house.engine.search(house.asker(person), "vpn leave salaries", where, k=500).result.results
    return {f"{row.share}:{row.path.rpartition('/')[0]}" for row in rows}


def test_folders_end_at_component_borders(house: House) -> None:
    assert folders_found(house, "anna", Where(folders=("hr",))) == {"notes:hr"}
    assert folders_found(house, "ben", Where(folders=("hr",))) == set()
    assert folders_found(house, "ben", Where(folders=("hr-old",))) == {"notes:hr-old"}
    assert folders_found(house, "ben", Where(folders=("hr-old", "it"))) == {
        "notes:hr-old",
        "notes:it",
        "lab:it",
    }
    assert folders_found(house, "ben", Where("lab", ("it",))) == {"lab:it"}
    assert folders_found(house, "ben", Where(folders=(f"{house.folder}/lab/it",))) == {"lab:it"}
    assert folders_found(house, "ben", Where("lab")) == {"lab:it", "lab:open"}
    assert folders_found(house, "ben", Where("no-such-share")) == set()
    nfd = unicodedata.normalize("NFD", "böse")
    assert folders_found(house, "cleo", Where(folders=(nfd,))) == {"notes:böse"}
    assert folders_found(house, "cleo", Where("notes", (".",))) == {"notes:böse", "notes:handbook"}


def test_folders_of_two_shares_do_not_mix(house: House) -> None:
    with pytest.raises(UsageError, match="one share"):
        house.engine.search(house.asker("ben"), "vpn", Where(folders=("lab:it", "notes:it")))
    assert folders_found(house, "ben", Where("lab", ("notes:it",))) == set()


def test_lines_of_a_note(house: House) -> None:
    asker = house.asker("cleo")
    shown = house.engine.show(asker, "handbook/leave.md", lines=(7, 9)).result
    whole = house.engine.show(asker, "handbook/leave.md").result.text
    raw = (house.folder / "notes/handbook/leave.md").read_text("utf-8")
    assert raw.endswith(whole)
    lines = raw.splitlines(keepends=True)
    assert shown.text == "".join(lines[6:9])
    with pytest.raises(NotInNotes, match="lines"):
        house.engine.show(asker, "handbook/leave.md", lines=(100, 120))


def test_the_name_of_a_hidden_share_means_nothing(build_house: Callable[..., House]) -> None:
    house = build_house()
    (house.folder / "lab/open/hours.md").unlink()
    house.sync()
    told = []
    for share in ("lab", "unknown"):
        where = Where(folders=(f"{share}:it", "handbook"))
        told.append(house.engine.search(house.asker("cleo"), "leave", where, k=500).result)
    assert told[0] == told[1]
    assert told[0].results, "the other folder still counts"


def test_a_hidden_share_does_not_show_by_its_age(build_house: Callable[..., House]) -> None:
    house = build_house()
    (house.folder / "lab/open/hours.md").unlink()
    house.sync()
    (house.folder / "lab").rename(house.folder / "lab away")
    time.sleep(1.1)
    house.sync()
    asker = house.asker("cleo")
    ages = [
        house.engine.search(asker, "leave", where).result.as_of
        for where in (
            Where(),
            Where("lab"),
            Where("unknown"),
            Where(folders=("unknown",)),
            Where(folders=("hr",)),
        )
    ]
    assert len(set(ages)) == 1, "the age of the share that was away would tell that there is one"
