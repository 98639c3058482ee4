"""A NAS's own accounts, against a real Samba: tokens are held to what the server lets people open."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from smb.smb_structs import OperationFailure
from support.samba import DOMAIN, IGNORING, Samba, ace_bytes, descriptor_bytes, people, store_descriptor

from acl.descriptor import parse_descriptor
from acl.directories.smb.directory import SmbDirectory, SmbDirectorySettings
from acl.directory import make_directory
from acl.evaluate import walk
from acl.model import READ_DATA
from acl.sid import Sid
from acl.token import build_token
from notewarden.errors import AskerUnknown, DirectoryUnreachable

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:unclosed:ResourceWarning")

GIDS = {"it": 72001, "hr": 72002, "helpdesk": 72003, "outer": 72004, "users": 72005, "all": 72006}
FOLK = {"alice": ["it"], "bob": ["hr"], "gone": [], "late": []}
IT, HELPDESK, OUTER, ALL = (Sid(f"{DOMAIN}-{rid}") for rid in (2001, 3001, 3002, 3003))
BUILTIN_USERS = "S-1-5-32-545"


@pytest.fixture
def tidy() -> Iterator[None]:
    """What a library left open is let go of within the test that it belongs to."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def server(start_samba: Callable[..., Samba], tmp_path_factory: pytest.TempPathFactory) -> Samba:
    """it is a domain group; helpdesk holds it; outer holds helpdesk; all holds everybody who logged in."""
    import tempfile

    root = Path(tempfile.mkdtemp(prefix="nwexp-", dir="/var/tmp"))
    root.chmod(0o755)
    running = start_samba(people("svc", *FOLK, groups=FOLK), GIDS, {"notes": (root, IGNORING)})
    add: Callable[..., str] = lambda *words: running.inside("net", "-s", running.conf, "groupmap", *words)  # noqa: E731
    add("add", "rid=2001", "unixgroup=it", "ntgroup=IT", "type=domain")
    for sid, name in ((HELPDESK, "helpdesk"), (OUTER, "outer"), (ALL, "all")):
        add("add", f"sid={sid}", f"unixgroup={name}", f"ntgroup={name}", "type=local")
    add("add", f"sid={BUILTIN_USERS}", "unixgroup=users", "ntgroup=Users", "type=builtin")
    add("addmem", HELPDESK, IT)
    add("addmem", OUTER, HELPDESK)
    add("addmem", ALL, "S-1-5-11")
    add("addmem", BUILTIN_USERS, HELPDESK)
    running.inside("smbpasswd", "-c", running.conf, "-L", "-d", "gone")
    return running


@pytest.fixture(scope="module")
def directory(server: Samba) -> Iterator[SmbDirectory]:
    with closing(SmbDirectory(settings(server))) as made:
        yield made


def settings(server: Samba, **changes: Any) -> SmbDirectorySettings:
    usual: dict[str, Any] = {
        "server": "127.0.0.1",
        "port": server.port,
        "username": "svc",
        "password": "pw-svc",
    }
    return SmbDirectorySettings(
        **{**usual, "uids": {"1000": "alice", "1001": "gone"}, "sole": True, **changes}
    )


SIDS = [IT, HELPDESK, OUTER, ALL, BUILTIN_USERS, f"{DOMAIN}-513", "S-1-1-0", "S-1-5-11", "S-1-5-2", "S-1-5-4",
        "S-1-22-1-71002", "S-1-22-1-71003", "S-1-22-2-72001", "S-1-5-32-544", f"{DOMAIN}-9999"]  # fmt: skip


def test_a_token_reads_what_the_server_lets_people_read(server: Samba, directory: SmbDirectory) -> None:
    """One note for each SID allowed, and one for each denied before everybody: opened for real."""
    root = server.shares["notes"][0]
    notes = {}
    for number, sid in enumerate(SIDS):
        notes[f"allow{number}"] = (sid, [ace_bytes(0, sid, 0x1F01FF)])
        notes[f"deny{number}"] = (sid, [ace_bytes(1, sid, 0x1F01FF), ace_bytes(0, "S-1-1-0", 0x1F01FF)])
    for name, (_, aces) in notes.items():
        (root / name).write_text("x")
        (root / name).chmod(0o666)
        store_descriptor(root / name, descriptor_bytes("S-1-5-18", aces))
    over, under = [], []
    for person in ("alice", "bob"):
        token = build_token(directory, directory.user(person))
        with closing(server.connect(person)) as session:
            for name, (sid, aces) in notes.items():
                descriptor = parse_descriptor(descriptor_bytes("S-1-5-18", aces)).qualified(directory._server)
                asked = Sid(next(iter(descriptor.aces or ())).sid)
                lost = frozenset() if directory.enumerable(asked) else frozenset({asked})
                verdict, truth = walk(descriptor, token, READ_DATA, lost), opens(session, name)
                over += [(person, name, sid)] if verdict and not truth else []
                under += [(person, name, sid)] if truth and not verdict else []
    assert over == []
    assert {(name.rstrip("0123456789"), sid) for _, name, sid in under} == {
        ("allow", "S-1-22-2-72001"),  # a mapped group's unix id, which no protocol tells
        ("deny", "S-1-22-2-72001"),
        ("deny", OUTER),  # an alias in an alias: the server does not count it, another might
        ("deny", "S-1-5-4"),  # INTERACTIVE depends on the log-in
    }


def opens(session: Any, name: str) -> bool:
    try:
        session.retrieveFile("notes", f"/{name}", io.BytesIO())
    except OperationFailure:
        return False
    return True


def test_the_chain_of_groups_is_told(directory: SmbDirectory) -> None:
    alice = directory.user("alice")
    through = directory.memberships(alice).through
    builtin = Sid(f"{BUILTIN_USERS}@{directory._server}")
    assert through[IT] == () and through[HELPDESK] == (IT,) and through[builtin] == (IT, HELPDESK)
    assert through[ALL] == ("S-1-5-11",)
    assert OUTER not in through and OUTER in build_token(directory, alice).deny


def test_beside_another_server_its_own_groups_stay_uncertain(server: Samba) -> None:
    with closing(SmbDirectory(settings(server, sole=False))) as directory:
        assert "?S-1-5-32" in build_token(directory, directory.user("alice")).deny


@pytest.mark.parametrize(
    "name",
    ["gone", "nobody1", "IT", "Users", "", "al*", "S-1-5-32-545", f"{DOMAIN}-2001", "S-1-5-21-1-2-3-1001"],
)
def test_who_is_no_usable_user_is_refused(directory: SmbDirectory, name: str) -> None:
    with pytest.raises(AskerUnknown):
        directory.user(name)


def test_names_sids_and_uids(directory: SmbDirectory, server: Samba) -> None:
    alice = directory.user("ALICE")
    assert (alice.name, alice.sid) == ("alice", server.people["alice"].sid)
    assert directory.user(alice.sid) == alice == directory.user_by_uid(1000)
    for uid in (0, 71002, 1001, 65534):
        with pytest.raises(AskerUnknown):
            directory.user_by_uid(uid)
    builtin = Sid(f"{BUILTIN_USERS}@{directory._server}")
    assert directory.resolve("it") == IT == directory.resolve("group:IT")
    assert directory.resolve("Users") == builtin and directory.name_of(builtin) == "Users"
    assert directory.name_of(Sid(f"{BUILTIN_USERS}@other")) is None and directory.name_of(IT) == "IT"
    assert directory.kind_of(alice.sid) == "user" and directory.kind_of(builtin) == "group"
    for name in ("user:IT", "group:alice", "nobody1"):
        with pytest.raises(LookupError):
            directory.resolve(name)


def test_groups_change_and_accounts_are_disabled_while_it_runs(
    server: Samba, directory: SmbDirectory
) -> None:
    late = directory.user("late")
    assert HELPDESK not in build_token(directory, late).allow
    server.inside("net", "-s", server.conf, "groupmap", "addmem", HELPDESK, late.sid)
    assert HELPDESK in build_token(directory, late).allow
    server.inside("net", "-s", server.conf, "groupmap", "delmem", HELPDESK, late.sid)
    assert HELPDESK not in build_token(directory, late).allow
    server.inside("smbpasswd", "-c", server.conf, "-L", "-d", "late")
    with pytest.raises(AskerUnknown):
        build_token(directory, late)
    server.inside("smbpasswd", "-c", server.conf, "-L", "-e", "late")
    server.inside("pdbedit", "-s", server.conf, "-x", "-u", "late")
    with pytest.raises(AskerUnknown):
        build_token(directory, late)


@pytest.mark.usefixtures("tidy")
@pytest.mark.parametrize("change", [{"password": "wrong"}, {"username": "nobody1"}, {"port": 1}], ids=str)
def test_a_nas_that_does_not_answer_gives_no_token(server: Samba, change: dict[str, Any]) -> None:
    with (
        closing(SmbDirectory(settings(server, **change))) as directory,
        pytest.raises(DirectoryUnreachable) as told,
    ):
        directory.user("alice")
    assert "pw-svc" not in str(told.value) and "wrong" not in str(told.value)


@pytest.mark.usefixtures("tidy")
def test_a_broken_connection_is_made_anew(directory: SmbDirectory) -> None:
    before = directory.user("alice")
    kept = directory._samr._kept
    assert kept is not None
    kept.samr.get_rpc_transport().get_smb_connection().getSMBServer().get_socket().close()
    assert directory.user("alice") == before


def test_it_is_configured(server: Samba, settings_factory: Any, tmp_path: Path) -> None:
    secret = tmp_path / "nas-password"
    secret.write_text("pw-svc")
    secret.chmod(0o600)
    table = {"source": "smb", "server": "127.0.0.1", "port": server.port, "username": "svc"}
    found = make_directory(settings_factory(directory={**table, "password_file": secret}))
    assert isinstance(found, SmbDirectory)
    with closing(found):
        assert found.user("bob").sid == server.people["bob"].sid
        assert not found._settings.sole, "the default share is local: another server's ids occur"
