"""The permission world's share, served by a real Samba: its notes and what people see of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.permission_world import PermissionWorld
from support.samba import Samba, ace_bytes, descriptor_bytes, store_descriptor
from support.smb_house import CAST, GIDS, READ, SmbHouse

WORD = "walrus"
ALLOW, DENY = 0, 1


@pytest.fixture(scope="session")
def smb_server(start_samba: Callable[..., Samba]) -> Samba:
    return start_samba(CAST, GIDS, admin_users="svc")


class SmbWorld:
    """The permission world's share, served by Samba: its notes and what people see of them."""

    def __init__(self, world: PermissionWorld, house: SmbHouse) -> None:
        """The share moves to where every account can reach it."""
        self.world, self.house, self.root = world, house, house.exports / "notes"
        self.root.mkdir()
        self.root.chmod(0o755)
        world.root = self.root
        world.people(house.people_toml())

    def serve(self, options: dict[str, str], late_check: str = "require", **acl: Any) -> None:
        told = {"model": "nt", "guards": "bypass", "folder": "notes", **acl}
        share_keys = told.pop("share_keys", {})
        self.house.add("notes", options, **told)
        self.world.configure(late_check, self.house.shares["notes"]["acl"], share_keys=share_keys)

    def write(self, path: str, *aces: tuple[int, str], owner: str = "svc", text: str = "") -> Path:
        file = self.world.write(path, text or f"# {path}\n\nThe {WORD} of {path}.\n", 0o666)
        self.give(path, *aces, owner=owner)
        return file

    def give(self, path: str, *aces: tuple[int, str], owner: str = "svc") -> None:
        told = [ace_bytes(kind, self.house.sid(who), READ) for kind, who in aces]
        store_descriptor(self.root / path, descriptor_bytes(self.house.sid(owner), told))

    def readers(self, path: str, word: str = WORD) -> set[str]:
        """Who is shown a note by search; who is shown it otherwise is the same by the tests of the doors."""
        found = set()
        for name in ("alice", "bob", "carol", "dave"):
            result = self.world.engine.search(self.world.asker(name), word, k=1000).result
            found |= {name} if path in {row.path for row in result.results} else set()
        return found

    def trouble(self) -> dict[str, str]:
        rows = self.world.rows("select path, reason from nw.ledger")
        return {os.fsdecode(bytes(path)): reason for path, reason in rows}


@pytest.fixture
def smb(permission_world: PermissionWorld, smb_server: Samba, tmp_path: Path) -> Iterator[SmbWorld]:
    house = SmbHouse(smb_server, tmp_path)
    yield SmbWorld(permission_world, house)
    permission_world.restart()
    house.remove()
