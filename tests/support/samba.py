"""A throw-away Samba: an smbd of our own with its own users, on a high port of 127.0.0.1.

Its accounts exist only in a private mount namespace, where passwd, group and nsswitch.conf are ours: nothing
on the machine changes. It needs root, and the package samba. It answers in half a second, without systemd,
nmbd or winbindd.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from smb.SMBConnection import SMBConnection

DOMAIN = "S-1-5-21-3001-3002-3003"
PLAIN: dict[str, str] = {}
ACL_XATTR = {"vfs objects": "acl_xattr", "map acl inherit": "yes"}
IGNORING = {**ACL_XATTR, "acl_xattr:ignore system acls": "yes"}
KINDS = {"plain": PLAIN, "acl_xattr": ACL_XATTR, "ignoring": IGNORING}

# In a process namespace of its own nothing of it can be left over: its first process takes all with it, and
# goes itself when the test run is killed.
_UNSHARE = (
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--propagation",
    "private",
)
_NEEDED = ("setpriv", "smbd", "net", "smbpasswd", "pdbedit", "unshare", "nsenter")
_DIRS = {
    "private": "private dir",
    "state": "state directory",
    "cache": "cache directory",
    "lock": "lock directory",
    "pid": "pid directory",
    "ncalrpc": "ncalrpc dir",
}


@dataclass(frozen=True)
class Person:
    """A user of the server. `sid` is what its SAM gave, known once it runs."""

    name: str
    uid: int
    groups: tuple[str, ...] = ()
    sid: str = ""


@dataclass
class Samba:
    """A server with its people; `gids` are its groups, with `everyday` the primary group of all."""

    people: dict[str, Person]
    gids: dict[str, int]
    options: Mapping[str, str] = field(default_factory=dict)
    shares: dict[str, tuple[Path, Mapping[str, str]]] = field(default_factory=dict)
    port: int = 0
    folder: Path = Path("/nonexistent")
    pid: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _edition: int = 0

    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nwsmb-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.port = free_port()
        self._write_accounts()
        self._write_conf()
        start = self.folder / "start"
        start.write_text(self._script())
        start.chmod(0o700)
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                [*_UNSHARE, "/bin/sh", str(start)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await()
        self.pid = self._first_process()
        self._learn_sids()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def pause(self) -> None:
        """Be dead: the port refuses, and no process that held a session is left."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None
        deadline = time.monotonic() + 10
        while Path(f"/proc/{self.pid}").exists():  # the namespace's first process, which takes all with it
            assert time.monotonic() < deadline, "the server did not die"
            time.sleep(0.01)

    def add_share(self, name: str, path: Path, **options: str) -> None:
        """Serve one more folder; a keyword's blanks are written as underscores, a colon as two."""
        told = {key.replace("__", ":").replace("_", " "): value for key, value in options.items()}
        self.share(name, path, told)

    def share(self, name: str, path: Path, options: Mapping[str, str]) -> None:
        """Serve one more folder, or the same name anew with other options."""
        self.shares[name] = (path, options)
        self._edition += 1
        self._write_conf()
        if self._process is not None:
            os.kill(self.pid, signal.SIGHUP)
            self._await_share(name)

    def inside(self, *command: str, stdin: str = "") -> str:
        """Run a command where the server's accounts exist; return its output."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.pid), "-m", "--", *command],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    @property
    def conf(self) -> str:
        return str(self.folder / "smb.conf")

    def connect(self, user: str, password: str | None = None) -> SMBConnection:
        """A pysmb session of one user."""
        secret = f"pw-{user}" if password is None else password
        session = SMBConnection(user, secret, "test", "NWTEST", use_ntlm_v2=True, is_direct_tcp=True)
        assert session.connect("127.0.0.1", self.port, timeout=20), f"{user} cannot log in"
        return session

    def token_sids(self, name: str) -> list[str]:
        """Every SID that this server puts into a user's token, besides those of every log-in."""
        one = self.people[name]
        unix = [f"S-1-22-1-{one.uid}", *(f"S-1-22-2-{self.gids[group]}" for group in self._groups(one))]
        return [one.sid, f"{DOMAIN}-513", *unix]

    def set_groups(self, name: str, groups: Sequence[str]) -> None:
        """Change who is in what; counts for the user's next session."""
        old = self.people[name]
        self.people[name] = Person(name, old.uid, tuple(groups), old.sid)
        self._write_accounts()

    def sharesec(self, name: str, sddl: str) -> None:
        """Set a share's own descriptor."""
        self.inside("sharesec", "-s", self.conf, name, "-S", sddl)

    def _groups(self, one: Person) -> tuple[str, ...]:
        return ("everyday", *one.groups)

    def _write_accounts(self) -> None:
        passwd, group = Path("/etc/passwd").read_text(), Path("/etc/group").read_text()
        primary = self.gids["everyday"]
        for one in self.people.values():
            passwd += f"{one.name}:x:{one.uid}:{primary}::/nonexistent:/bin/false\n"
        for name, gid in self.gids.items():
            members = ",".join(one.name for one in self.people.values() if name in one.groups)
            group += f"{name}:x:{gid}:{members}\n"
        # Written in place: the namespace sees these very files.
        (self.folder / "passwd").write_text(passwd)
        (self.folder / "group").write_text(group)
        (self.folder / "nsswitch.conf").write_text(
            "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"
        )

    def _write_conf(self) -> None:
        top = {
            "server role": "standalone server",
            "workgroup": "NWTEST",
            "netbios name": "NWTEST",
            "smb ports": str(self.port),
            "interfaces": "127.0.0.1/8",
            "bind interfaces only": "yes",
            "disable netbios": "yes",
            "load printers": "no",
            "disable spoolss": "yes",
            "printcap name": "/dev/null",
            "map to guest": "never",
            "guest account": "nobody",
            "passdb backend": f"tdbsam:{self.folder}/private/passdb.tdb",
            "log file": str(self.folder / "smbd.log"),
            "log level": "0",
            "kernel oplocks": "no",
            **{option: str(self.folder / name) for name, option in _DIRS.items()},
            **self.options,
        }
        lines = ["[global]", *(f"{key} = {value}" for key, value in top.items())]
        for name, (path, options) in self.shares.items():
            usual = {
                "comment": f"edition {self._edition}",
                "path": str(path),
                "read only": "no",
                "store dos attributes": "no",
                **options,
            }
            lines += [f"[{name}]", *(f"{key} = {value}" for key, value in usual.items())]
        (self.folder / "smb.conf").write_text("\n".join(lines) + "\n")

    def _script(self) -> str:
        for name in _DIRS:
            (self.folder / name).mkdir(exist_ok=True)
        for one in self.people.values():  # smbpasswd asks twice
            (self.folder / f"pw.{one.name}").write_text(f"pw-{one.name}\npw-{one.name}\n")
        lines = ["set -e", f"cd {self.folder}"]
        lines += [f"mount --bind {name} /etc/{name}" for name in ("passwd", "group", "nsswitch.conf")]
        lines.append(f"net -s {self.conf} setlocalsid {DOMAIN}")
        lines += [f"smbpasswd -c {self.conf} -L -a -s {name} < pw.{name}" for name in self.people]
        lines.append(f"exec smbd -s {self.conf} -F --no-process-group")
        return "\n".join(lines) + "\n"

    def _first_process(self) -> int:
        assert self._process is not None
        outer = self._process.pid
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    def _await(self) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            assert self._process is not None
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise AssertionError(f"smbd did not start: {(self.folder / 'log').read_text()}")

    def _await_share(self, name: str) -> None:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            if _is_served(self, name):
                return
            time.sleep(0.02)
        raise AssertionError(f"the share {name} is not served")

    def _learn_sids(self) -> None:
        told = self.inside("pdbedit", "-s", self.conf, "-L", "-v")
        found = re.findall(r"^Unix username:\s*(\S+).*?^User SID:\s*(\S+)", told, re.MULTILINE | re.DOTALL)
        for name, sid in found:
            old = self.people[name]
            self.people[name] = Person(name, old.uid, old.groups, sid)
        assert all(one.sid for one in self.people.values())


def _is_served(server: Samba, name: str) -> bool:
    """Whether a new session sees the share as it was last configured."""
    user = next(iter(server.people))
    with contextlib.closing(server.connect(user)) as session:
        told = {one.name.lower(): one.comments for one in session.listShares()}
        return told.get(name.lower(), "").rstrip("\0") == f"edition {server._edition}"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def people(
    *names: str, groups: Mapping[str, Sequence[str]] | None = None, first_uid: int = 71001
) -> dict[str, Person]:
    """Users by name, with ids that no account of the machine has."""
    told = groups or {}
    return {name: Person(name, first_uid + n, tuple(told.get(name, ()))) for n, name in enumerate(names)}


def sid_bytes(sid: str) -> bytes:
    """A SID as it is sent (MS-DTYP 2.4.2)."""
    _, revision, authority, *parts = sid.partition("@")[0].split("-")
    head = struct.pack("BB", int(revision), len(parts)) + int(authority).to_bytes(6, "big")
    return head + b"".join(struct.pack("<I", int(part)) for part in parts)


def ace_bytes(kind: int, sid: str, mask: int, flags: int = 0) -> bytes:
    """One entry (MS-DTYP 2.4.4.2): kind 0 allows, 1 denies."""
    body = struct.pack("<I", mask) + sid_bytes(sid)
    return struct.pack("<BBH", kind, flags, 4 + len(body)) + body


def descriptor_bytes(owner: str, aces: Sequence[bytes] | None, group: str = f"{DOMAIN}-513") -> bytes:
    """A self-relative descriptor (MS-DTYP 2.4.6); aces None: no DACL at all."""
    owner_raw, group_raw = sid_bytes(owner), sid_bytes(group)
    control = 0x8000 if aces is None else 0x8004
    acl = b""
    if aces is not None:
        joined = b"".join(aces)
        acl = struct.pack("<BBHHH", 2, 0, 8 + len(joined), len(aces), 0) + joined
    at_owner = 20
    at_group = at_owner + len(owner_raw)
    at_dacl = at_group + len(group_raw) if aces is not None else 0
    head = struct.pack("<BBHIIII", 1, 0, control, at_owner, at_group, 0, at_dacl)
    return head + owner_raw + group_raw + acl


def store_descriptor(path: Path, raw: bytes) -> None:
    """Store a descriptor as acl_xattr does (version 1: without a hash, so that modes vary on their own).

    Its offsets count from the attribute's start there, which is eight bytes before the descriptor.
    """
    head = struct.pack("<HHI", 1, 1, 0x00020000)
    revision, padding, control, *offsets = struct.unpack_from("<BBHIIII", raw)
    moved = [at + len(head) if at else 0 for at in offsets]
    os.setxattr(
        path, "security.NTACL", head + struct.pack("<BBHIIII", revision, padding, control, *moved) + raw[20:]
    )


@pytest.fixture(scope="session")
def samba_needed() -> Callable[[], None]:
    """Return a function that skips, or in CI fails, where a Samba of our own cannot run."""

    def check() -> None:
        missing = [
            name for name in _NEEDED if shutil.which(name) is None and not Path(f"/usr/sbin/{name}").exists()
        ]
        why = f"needs the package samba ({', '.join(missing)} missing)" if missing else ""
        why = why or ("needs root, for a private mount namespace" if os.geteuid() else "")
        if why and os.environ.get("NOTEWARDEN_REQUIRE_SERVICES") == "1":
            pytest.fail(why)
        if why:
            pytest.skip(why)

    return check


@pytest.fixture(scope="session")
def start_samba(samba_needed: Callable[[], None]) -> Iterator[Callable[..., Samba]]:
    """Return a function that starts a server; all are stopped at the end of the run."""
    running: list[Samba] = []

    def start(
        folk: Mapping[str, Person],
        gids: Mapping[str, int],
        shares: Mapping[str, tuple[Path, Mapping[str, str]]] | None = None,
        **options: str,
    ) -> Samba:
        samba_needed()
        told = {key.replace("__", ":").replace("_", " "): value for key, value in options.items()}
        server = Samba(dict(folk), {"everyday": 72000, **gids}, told, dict(shares or {}))
        running.append(server)
        server.start()
        return server

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def export(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that every account can reach, for a share's tree."""
    folder = Path(tempfile.mkdtemp(prefix="nwexp-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
