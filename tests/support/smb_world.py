"""Random worlds on a real Samba: trees of descriptors, modes and ACLs, people in nested groups, share gates.

The truth is what the server does when every person opens every note. Everything is drawn from one seed.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smb.smb_structs import OperationFailure
from support.posix_acls import GROUP, GROUP_OBJ, MASK, NO_ID, OTHER, OWNER, USER, acl_bytes
from support.samba import (
    DOMAIN,
    KINDS,
    Person,
    Samba,
    ace_bytes,
    descriptor_bytes,
    store_descriptor,
)

from acl.posix import XATTR

SERVICE = "svc"
# In [global], so that it holds on IPC$ too: only to such an account Samba tells a share's own descriptor.
SERVER_OPTIONS = {"admin users": SERVICE}
GIDS = {"ga": 72001, "gb": 72002, "gc": 72003, "gd": 72004, "ge": 72005}
# Members of the first are members of the second too; the server knows only who is in what in the end.
NESTED = {"ga": "gb", "gc": "gb", "gb": "ge"}

READ, ALL, WRITE = 0x120089, 0x1F01FF, 0x120116
# No mask differs from reading by FILE_READ_ATTRIBUTES alone: Samba grants that with the folder's list right.
ALLOW_MASKS = (READ, READ, READ, ALL, READ | 0x20, WRITE, 0x1, READ & ~1, 0x2)
DENY_MASKS = (READ, ALL, 0x1, 0x8, 0x20000, 0x2, WRITE & ~0x120000)
ORPHAN = "S-1-5-21-9-9-9-1234"


def cast(count: int) -> dict[str, Person]:
    """The service's account and `count` people, in no group yet."""
    names = [SERVICE, *(f"u{n}" for n in range(count))]
    return {name: Person(name, 71001 + n) for n, name in enumerate(names)}


def flat(groups: Sequence[str]) -> list[str]:
    """Groups with those that they are nested in."""
    found: list[str] = []
    for group in groups:
        here: str | None = group
        while here is not None:
            found.append(here)
            here = NESTED.get(here)
    return sorted(set(found))


@dataclass
class World:
    """One share of one kind, with notes, people and gates."""

    server: Samba
    name: str
    kind: str
    dice: random.Random
    root: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="nwexp-", dir="/var/tmp")))
    direct: dict[str, list[str]] = field(default_factory=dict)
    gates: dict[str, Any] = field(default_factory=dict)

    @property
    def people(self) -> list[str]:
        return [name for name in self.server.people if name != SERVICE]

    def build(self, notes: int) -> World:
        """Draw everything and serve it."""
        self.root.chmod(0o755)
        for name in self.people:
            self.direct[name] = self.dice.sample(sorted(GIDS), self.dice.choice([0, 0, 1, 1, 2]))
            self.server.set_groups(name, flat(self.direct[name]))
        folders = [self.root, *self._folders()]
        for number in range(notes):
            self._note(self.dice.choice(folders) / f"n{number}.md")
        # From the leaves up, though root would not mind: nothing is written below any more.
        for folder in reversed(folders):
            self._rights(folder, folder=True)
        self._serve()
        return self

    def remove(self) -> None:
        shutil.rmtree(self.root)

    def paths(self) -> list[str]:
        found = self.root.rglob("*.md")
        return sorted(str(path.relative_to(self.root)) for path in found)

    def truth(self) -> dict[str, set[str]]:
        """Whom the server really lets open what: one session per person, every note opened and read."""
        return {name: self._opened(name) for name in self.people}

    def people_toml(self) -> str:
        """The same people for our directory, with groups nested."""
        lines = [f'[groups.domain-users]\nsid = "{DOMAIN}-513"']
        for name in self.people:
            one = self.server.people[name]
            groups = ["domain-users", "everyday", *self.direct[name]]
            lines.append(
                f'[users.{name}]\ngroups = {groups}\nsid = "{one.sid}"\nsids = ["S-1-22-1-{one.uid}"]'
            )
        for group, gid in {**GIDS, "everyday": self.server.gids["everyday"], "root": 0}.items():
            above = [NESTED[group]] if group in NESTED else []
            lines.append(f'[groups.{group}]\ngroups = {above}\nsid = "S-1-22-2-{gid}"')
        return "\n".join(lines).replace("'", '"') + "\n"

    def acl_settings(self, password_file: Path, **more: Any) -> dict[str, Any]:
        """[share.acl], rightly declared for this kind of share."""
        return {
            "source": "smb",
            "model": "posix" if self.kind == "plain" else "nt+posix",
            "guards": "posix_x",
            "server": "127.0.0.1",
            "port": self.server.port,
            "share": self.name,
            "admin_share": f"{self.name}-all$",
            "username": SERVICE,
            "password_file": password_file,
            "posix_path": self.root,
            "same_ids": True,
            **self.gates,
            **more,
        }

    def _folders(self) -> list[Path]:
        made: list[Path] = []
        for number in range(self.dice.randint(3, 7)):
            folder = self.dice.choice([self.root, *made]) / f"d{number}"
            folder.mkdir()
            made.append(folder)
        return made

    def _note(self, path: Path) -> None:
        path.write_text(f"# About {path.name}\n\nThis is the note {path.name} of this world.\n")
        self._rights(path, folder=False)

    def _rights(self, path: Path, *, folder: bool) -> None:
        uid, gid = self._uid(), self._gid()
        os.chown(path, uid, gid)
        path.chmod(self.dice.choice([0o755, 0o755, 0o751, 0o711, 0o750, 0o700]) if folder else self._mode())
        if self.dice.random() < 0.4:
            os.setxattr(path, XATTR, self._posix_acl(folder))
        if self.kind != "plain" and self.dice.random() < 0.85:
            store_descriptor(path, self._descriptor(uid))

    def _mode(self) -> int:
        return self.dice.choice(
            [0o666, 0o644, 0o640, 0o600, 0o604, 0o040, 0o444, 0o400, self.dice.randrange(0o1000)]
        )

    def _posix_acl(self, folder: bool) -> bytes:
        def bits() -> int:
            return self.dice.choice([7, 5, 5, 1, 0] if folder else [7, 6, 4, 4, 0, 2])

        uids = sorted({self._uid() for _ in range(self.dice.randint(0, 2))})
        gids = sorted({self._gid() for _ in range(self.dice.randint(0, 2))})
        return acl_bytes(
            [
                (OWNER, bits(), NO_ID),
                *((USER, bits(), uid) for uid in uids),
                (GROUP_OBJ, bits(), NO_ID),
                *((GROUP, bits(), gid) for gid in gids),
                # Not the mask ---: Linux looks at no named entry then; the standard closes, as we do.
                (MASK, self.dice.choice([7, 7, 5, 4, 1]), NO_ID),
                (OTHER, bits(), NO_ID),
            ]
        )

    def _descriptor(self, uid: int) -> bytes:
        owner = self.dice.choice([self._user_sid(uid), self._anybody(), self._anybody()])
        aces = [self._ace() for _ in range(self.dice.choice([0, 1, 2, 2, 3, 3, 4, 6]))]
        if self.dice.random() < 0.5:
            aces.append(ace_bytes(0, "S-1-1-0", READ))
        return descriptor_bytes(owner, aces)

    def _ace(self) -> bytes:
        deny = self.dice.random() < 0.35
        mask = self.dice.choice(DENY_MASKS if deny else ALLOW_MASKS)
        flags = self.dice.choice([0, 0, 0, 0, 0x10, 0x08 | 0x3])
        return ace_bytes(int(deny), self._anybody(known=deny), mask, flags)

    def _anybody(self, *, known: bool = True) -> str:
        """A principal; a denied one is `known`, since one that nobody can resolve counts as everybody."""
        users = [self.server.people[name] for name in self.people]
        one = self.dice.choice(users)
        group = f"S-1-22-2-{self.dice.choice(list(GIDS.values()))}"
        specials = ["S-1-1-0", "S-1-5-11", "S-1-5-2", "S-1-3-4", "S-1-3-0", f"{DOMAIN}-513", "S-1-22-2-72000"]
        special = self.dice.choice(specials if known else [*specials, ORPHAN])
        return self.dice.choice([one.sid, one.sid, f"S-1-22-1-{one.uid}", group, group, group, special])

    def _uid(self) -> int:
        return self.dice.choice([self.server.people[name].uid for name in self.people] + [0])

    def _gid(self) -> int:
        return self.dice.choice([*GIDS.values(), self.server.gids["everyday"], 0])

    def _user_sid(self, uid: int) -> str:
        known = [one.sid for one in self.server.people.values() if one.uid == uid]
        return known[0] if known else f"S-1-22-1-{uid}"

    def _serve(self) -> None:
        """The real share with its gates, and the administrators' hidden one of the same path."""
        options = {**KINDS[self.kind], "admin users": "nobody"}
        admin = {**KINDS[self.kind], "read only": "yes", "valid users": SERVICE}
        gate = self.dice.choice(["none", "valid", "invalid", "descriptor", "descriptor"])
        if gate == "valid":
            readers = [self.dice.choice(self.people), self.dice.choice(sorted(GIDS))]
            options["valid users"] = f"{readers[0]} @{readers[1]}"
            self.gates["share_readers"] = [f"user:{readers[0]}", f"group:{readers[1]}"]
        if gate == "invalid":
            denied = [self.dice.choice(self.people), self.dice.choice(sorted(GIDS))]
            options["invalid users"] = f"{denied[0]} @{denied[1]}"
            self.gates["share_denied"] = [f"user:{denied[0]}", f"group:{denied[1]}"]
        self.server.share(self.name, self.root, options)
        self.server.share(f"{self.name}-all$", self.root, admin)
        if gate == "descriptor":
            self.server.sharesec(self.name, self._share_sddl())

    def _share_sddl(self) -> str:
        aces = [f"(A;;0x1200a9;;;S-1-22-2-{gid})" for gid in self.dice.sample(sorted(GIDS.values()), 3)]
        aces.append(f"(A;;0x1f01ff;;;{self.server.people[self.dice.choice(self.people)].sid})")
        if self.dice.random() < 0.6:
            aces.append("(A;;0x1200a9;;;WD)")
        if self.dice.random() < 0.5:
            aces.insert(0, f"(D;;0x1f01ff;;;{self.server.people[self.dice.choice(self.people)].sid})")
        return f"O:BAG:SYD:{''.join(aces)}"

    def _opened(self, name: str) -> set[str]:
        found = set()
        with contextlib.closing(self.server.connect(name)) as session:
            for path in self.paths():
                text = io.BytesIO()
                try:
                    session.retrieveFile(self.name, path, text)
                except OperationFailure as error:
                    status = error.smb_messages[-1].status
                    assert status in (0xC0000022, 0xC00000CC), f"{path}: {status:#x}"
                    continue
                assert text.getvalue().startswith(b"# About")
                found.add(path)
        return found
