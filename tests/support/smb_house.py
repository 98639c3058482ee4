"""A small Samba with people we know by name, and shares whose notes each show one situation."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smb.smb_structs import OperationFailure
from support.samba import DOMAIN, Samba, people

READ = 0x120089
GIDS = {"staff": 72001, "sales": 72002}
# alice, bob and carol are staff, carol is in sales too, dave in nothing.
CAST = people(
    "svc", "alice", "bob", "carol", "dave",
    groups={"alice": ["staff"], "bob": ["staff"], "carol": ["staff", "sales"]},
)  # fmt: skip
EVERYBODY = frozenset({"alice", "bob", "carol", "dave"})
STAFF = frozenset({"alice", "bob", "carol"})
BIN = Path(sys.executable).parent


@dataclass
class SmbHouse:
    """The server, its shares' folders, and our configuration for them."""

    server: Samba
    folder: Path
    shares: dict[str, dict[str, Any]] = field(default_factory=dict)
    exports: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="nwexp-", dir="/var/tmp")))

    def __post_init__(self) -> None:
        self.exports.chmod(0o755)
        self.people = self.folder / "people.toml"
        self.people.write_text(self.people_toml())
        self.people.chmod(0o600)
        self.secret = self.folder / "password"
        self.secret.write_text("pw-svc")
        self.secret.chmod(0o600)

    def remove(self) -> None:
        shutil.rmtree(self.exports)

    def sid(self, name: str) -> str:
        """The SID of a person or group; any other text is one already."""
        if name in self.server.people:
            return self.server.people[name].sid
        return f"S-1-22-2-{GIDS[name]}" if name in GIDS else name

    def uid(self, name: str) -> int:
        return self.server.people[name].uid if name in self.server.people else 0

    def add(self, name: str, options: Mapping[str, str], **acl: Any) -> Path:
        """Serve a folder as a share and, through a hidden one, to the administrator."""
        root = self.exports / str(acl.pop("folder", name))
        if not root.exists():
            root.mkdir()
            root.chmod(0o777)
        self.server.share(name, root, {**options, "admin users": "nobody"})
        hidden = {key: value for key, value in options.items() if key != "valid users"}
        self.server.share(f"{name}-all$", root, {**hidden, "read only": "yes", "valid users": "svc"})
        rights = {
            "source": "smb",
            "server": "127.0.0.1",
            "port": self.server.port,
            "share": name,
            "admin_share": f"{name}-all$",
            "username": "svc",
            "password_file": self.secret,
            "same_ids": True,
            **acl,
        }
        self.shares[name] = {"name": name, "path": root, "acl": rights}
        return root

    def tables(self) -> dict[str, Any]:
        """Our configuration."""
        return {
            "share": list(self.shares.values()),
            "directory": {"source": "file", "file": self.people},
        }

    def write_config(self) -> Path:
        """Write the configuration file, with an embedded index beside it; return its path."""
        lines = [f"state_dir = {_value(self.folder / 'state')}", "[embedding]", 'provider = "hash"']
        lines += ["[directory]", 'source = "file"', f"file = {_value(self.people)}"]
        for share in self.shares.values():
            lines += ["[[share]]", f"name = {_value(share['name'])}", f"path = {_value(share['path'])}"]
            lines += ["[share.acl]", *(f"{key} = {_value(value)}" for key, value in share["acl"].items())]
        file = self.folder / "config.toml"
        file.write_text("\n".join(lines) + "\n")
        file.chmod(0o600)
        return file

    def people_toml(self) -> str:
        lines = ['[users.admin]\ngroups = []\nsids = ["S-1-22-1-0"]']
        for name, one in self.server.people.items():
            groups = json.dumps(["domain-users", "everyday", *one.groups])
            lines.append(
                f'[users.{name}]\ngroups = {groups}\nsid = "{one.sid}"\nsids = ["S-1-22-1-{one.uid}"]'
            )
        lines.append(f'[groups.domain-users]\nsid = "{DOMAIN}-513"')
        for group, gid in {**GIDS, "everyday": 72000, "root": 0}.items():
            lines.append(f'[groups.{group}]\nsid = "S-1-22-2-{gid}"')
        return "\n".join(lines) + "\n"

    def truth(self, share: str) -> dict[str, set[str]]:
        """Which notes each person opens on the server."""
        return {name: self._opened(share, name) for name in sorted(EVERYBODY)}

    def _opened(self, share: str, name: str) -> set[str]:
        root = self.shares[share]["path"]
        found = set()
        with contextlib.closing(self.server.connect(name)) as session:
            for path in sorted(str(one.relative_to(root)) for one in root.rglob("*.md")):
                try:
                    session.retrieveFile(share, path, io.BytesIO())
                except OperationFailure:
                    continue
                found.add(path)
        return found


def _value(value: Any) -> str:
    return json.dumps(str(value) if isinstance(value, Path) else value)


def command(program: str, config: Path, *words: str, good: Sequence[int] = (0,)) -> Any:
    """Run an installed command with --json; return what it said."""
    done = subprocess.run(
        [BIN / program, "--config", config, *words, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ},
        check=False,
    )
    assert done.returncode in good, f"{program} {words}: {done.returncode} {done.stdout[:500]}{done.stderr}"
    return json.loads(done.stdout)


def searched(config: Path, word: str, name: str) -> set[tuple[str, str]]:
    """What `ask search` shows one person of the notes with a word: (share, path)."""
    told = command("ask", config, "search", word, "-k", "1000", "--no-sync", "--as", name, good=(0, 3))
    return {(row["share"], row["path"]) for row in told["results"]}
