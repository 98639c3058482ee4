"""Who is let in, and what is read of the machine to know it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from support.answer_house import MEMBER_UID, SYSTEM_UID, write_house

from acl.directory import make_directory
from answerer.identity import Doorkeeper, peer_uid, require_all_ids, uid_min
from notewarden.errors import AskerNotAllowed, AskerUnknown, ConfigError
from notewarden.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    tmp_path.chmod(0o700)
    found = write_house(tmp_path)
    found.state_dir.mkdir()
    return found


def door(settings: Settings, *, service: bool = True) -> Doorkeeper:
    return Doorkeeper(make_directory(settings), settings, service=service)


def test_a_uid_is_who_the_file_says_and_no_namesake(settings: Settings) -> None:
    asker = door(settings).asker(MEMBER_UID)
    assert (asker.account.name, asker.acts_for_another, asker.privileged) == ("anna", False, False)
    with pytest.raises(AskerUnknown):
        door(settings).asker(7777)
    with pytest.raises(AskerUnknown):
        door(settings, service=False).asker(65534)


def test_a_system_account_asks_in_process_but_not_at_the_service(settings: Settings) -> None:
    assert door(settings, service=False).asker(SYSTEM_UID).account.name == "cleo"
    with pytest.raises(AskerNotAllowed):
        door(settings).asker(SYSTEM_UID, may_lack=True)


def test_as_is_for_root_the_service_and_the_owner_of_the_index(settings: Settings) -> None:
    asker = door(settings).asker(0, "ben")
    assert asker.account.name == "ben" and asker.acts_for_another and asker.privileged
    with pytest.raises(AskerNotAllowed):
        door(settings).asker(MEMBER_UID, "ben")
    if os.geteuid() == 0:
        os.chown(settings.state_dir, 4444, -1)
        assert door(settings).asker(4444, "ben").account.name == "ben"
        assert door(settings, service=False).asker(4444, "ben").account.name == "ben"
    with pytest.raises(AskerUnknown):
        door(settings).asker(0, "nobody-known")


def test_the_kernel_names_the_peer() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert peer_uid(one) == os.geteuid()


def test_the_first_uid_of_people(tmp_path: Path) -> None:
    file = tmp_path / "login.defs"
    assert uid_min(file) == 1000
    file.write_text("# UID_MIN 1\nSYS_UID_MIN 100\nUID_MIN\t\t 500\n", "utf-8")
    assert uid_min(file) == 500


@pytest.mark.parametrize("lines", ["0 100000 65536\n", "1000 1000 1\n", "0 0 65536\n", ""])
def test_a_user_namespace_is_no_place_to_know_people(tmp_path: Path, lines: str) -> None:
    file = tmp_path / "uid_map"
    file.write_text(lines, "ascii")
    with pytest.raises(ConfigError, match="user ids"):
        require_all_ids(file)
    file.write_text("         0          0 4294967295\n", "ascii")
    require_all_ids(file)
