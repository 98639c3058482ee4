"""Files from places that somebody else could write to are refused; each case has its trusted twin."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from notewarden.errors import ConfigError
from notewarden.trust import read_trusted, require_trusted

OTHER = 54_321


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "etc"
    folder.mkdir(mode=0o755)
    made = folder / "config.toml"
    made.write_text("# ours\n")
    made.chmod(0o644)
    return made


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")


def test_a_file_of_ours_is_trusted_and_read(file: Path) -> None:
    require_trusted(file)
    assert read_trusted(file) == b"# ours\n"


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(ConfigError, match=f"chmod go-w {file}"):
        require_trusted(file)


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_a_folder_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    with pytest.raises(ConfigError, match=str(file.parent)):
        require_trusted(file)


def test_a_sticky_folder_is_as_good_as_a_closed_one(file: Path) -> None:
    file.parent.chmod(0o1777)
    require_trusted(file)


def test_a_folder_further_up_counts_too(file: Path) -> None:
    file.parent.parent.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write"):
        require_trusted(file)


@pytest.mark.usefixtures("as_root")
def test_a_file_of_another_account_is_refused(file: Path) -> None:
    os.chown(file, OTHER, OTHER)
    with pytest.raises(ConfigError, match=str(OTHER)):
        require_trusted(file)


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_folder_of_another_account_is_refused_sticky_or_not(file: Path, mode: int) -> None:
    os.chown(file.parent, OTHER, OTHER)
    file.parent.chmod(mode)
    with pytest.raises(ConfigError, match="could replace it"):
        require_trusted(file)


def test_a_link_is_trusted_only_if_its_own_folder_and_its_target_are(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    require_trusted(link)
    file.parent.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write"):
        require_trusted(link)


def test_a_link_on_the_way_is_followed_step_by_step(file: Path, tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    (open_folder / "middle.toml").symlink_to(file)
    outer = tmp_path / "outer.toml"
    outer.symlink_to("open/middle.toml")
    require_trusted(outer)
    open_folder.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write"):
        require_trusted(outer)


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ConfigError):
        require_trusted(tmp_path / "a")


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo"])
def test_only_a_regular_file_is_trusted(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "x"
    if kind == "folder":
        place.mkdir()
    elif kind == "fifo":
        os.mkfifo(place, 0o600)
    with pytest.raises(ConfigError):
        require_trusted(place)


def test_a_file_inside_a_share_is_refused_however_the_share_is_spelt(file: Path, tmp_path: Path) -> None:
    require_trusted(file, [tmp_path / "other"])
    spelt = tmp_path / "spelt"
    spelt.symlink_to(file.parent)
    for root in (file.parent, tmp_path, spelt):
        with pytest.raises(ConfigError, match="inside the share"):
            require_trusted(file, [root])


def test_a_neighbour_of_a_share_is_not_inside_it(file: Path) -> None:
    (file.parent / "conf").mkdir()
    require_trusted(file, [file.parent / "conf"])
