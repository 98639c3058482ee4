"""The late check against a real Samba: what is revoked there moves no time, and is in no next answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.permission_world import BrittleEmbedder
from support.samba import IGNORING, Samba, ace_bytes, descriptor_bytes, store_descriptor
from support.smb_house import CAST, GIDS, READ, SmbHouse

from acl.directory import make_directory
from acl.token import build_token
from answerer.engine import Engine
from answerer.identity import Asker
from db.pool import Database
from indexer.sync import Indexer
from notewarden.errors import NotewardenError, NotInNotes, ShareUnavailable
from notewarden.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:unclosed:ResourceWarning")

WORD = "spoonbill"
NOTE = "sub/note.md"


class Nas:
    """One share on a server of its own, indexed; asked with a late check."""

    def __init__(
        self, server: Samba, folder: Path, database: Database, make: Callable[..., Settings]
    ) -> None:
        self.server, self.database, self.make = server, database, make
        self.house = SmbHouse(server, folder)
        self.root = self.house.add("late", IGNORING, model="nt", guards="nt_traverse")
        server.sharesec("late", "D:(A;;0x1f01ff;;;WD)")
        (self.root / "sub").mkdir()
        self.grant(self.root, "alice", "bob", mask=0x1F01FF)
        self.grant(self.root / "sub", "alice", "bob", mask=0x1F01FF)
        for name in (NOTE, "beside.md"):
            (self.root / name).write_text(f"# {name}\n\nThe {WORD} of {name} wades.\n")
            (self.root / name).chmod(0o666)
            self.grant(self.root / name, "alice", "bob")
        self.configure("require")
        Indexer(self.settings, database, embedder=BrittleEmbedder(16)).sync()

    def grant(self, path: Path, *names: str, mask: int = READ) -> None:
        """Store a descriptor that lets these people in and nobody else; `path` keeps its times."""
        if path.is_dir():
            path.chmod(0o777)
        aces = [ace_bytes(0, self.house.sid(name), mask) for name in names]
        store_descriptor(path, descriptor_bytes(self.house.sid("svc"), aces))

    def configure(self, late_check: str) -> None:
        self.settings = self.make(**self.house.tables(), answerer={"late_check": late_check})
        self.directory = make_directory(self.settings)
        self.engine = Engine(self.settings, self.database, self.directory, BrittleEmbedder(16))

    def sees(self, person: str) -> set[str]:
        """The notes that one person is shown, through all doors."""
        account = self.directory.user(person)
        asker = Asker(account.sid, account, build_token(self.directory, account), privileged=False)
        found = {row.path for row in self.engine.search(asker, WORD, k=50).result.results}
        found |= {one.path for one in self.engine.ask(asker, WORD).result.citations}
        try:
            found.add(self.engine.show(asker, NOTE).result.path)
        except NotInNotes:
            assert NOTE not in found
        return found


@pytest.fixture
def nas(
    start_samba: Callable[..., Samba],
    tmp_path: Path,
    database: Database,
    settings_factory: Callable[..., Settings],
) -> Iterator[Nas]:
    server = start_samba(CAST, GIDS, admin_users="svc")
    made = Nas(server, tmp_path, database, settings_factory)
    assert made.sees("alice") == made.sees("bob") == {NOTE, "beside.md"}
    yield made
    made.house.remove()


def by_note(nas: Nas) -> None:
    nas.grant(nas.root / NOTE, "bob")


def by_folder(nas: Nas) -> None:
    nas.grant(nas.root / "sub", "bob", mask=0x1F01FF)


def by_rename(nas: Nas) -> None:
    (nas.root / NOTE).rename(nas.root / "sub/other.md")


@pytest.mark.parametrize("change", [by_note, by_folder, by_rename], ids=lambda change: change.__name__)
def test_a_revocation_on_the_server_counts_in_the_very_next_answer(
    nas: Nas, change: Callable[[Nas], None]
) -> None:
    change(nas)
    assert nas.sees("alice") == {"beside.md"}
    assert nas.sees("bob") == {"beside.md"} | (set() if change is by_rename else {NOTE})


def test_the_shares_own_list_counts_in_the_very_next_answer(nas: Nas) -> None:
    bob, service = nas.house.sid("bob"), nas.house.sid("svc")
    nas.server.sharesec("late", f"D:(A;;0x1f01ff;;;{bob})(A;;0x1f01ff;;;{service})")
    assert nas.sees("alice") == set()
    assert nas.sees("bob") == {NOTE, "beside.md"}


def test_a_server_that_is_away(nas: Nas) -> None:
    nas.server.pause()
    nas.configure("require")
    with pytest.raises(ShareUnavailable):
        nas.sees("alice")
    nas.configure("prefer")
    assert nas.sees("alice") == {NOTE, "beside.md"}
    account: Any = nas.directory.user("alice")
    asker = Asker(account.sid, account, build_token(nas.directory, account), privileged=False)
    (notice,) = nas.engine.search(asker, WORD).notices
    assert "could not be reached" in notice


def test_a_server_that_refuses_the_service_is_no_server_that_is_away(nas: Nas) -> None:
    """An account that was locked out must not open what was revoked meanwhile."""
    by_note(nas)
    nas.server.inside("smbpasswd", "-c", nas.server.conf, "-L", "-d", "svc")
    nas.configure("prefer")
    try:
        assert nas.sees("alice") == set()
    except NotewardenError as error:
        assert error.exit_code in (2, 4)
