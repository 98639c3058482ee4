"""What the compiled lists say of real files is what the kernel grants to real processes."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.posix_acls import GROUP, GROUP_OBJ, MASK, NO_ID, OTHER, OWNER, USER, acl_bytes

from acl.compile import Meaning
from acl.evaluate import readable
from acl.model import AccessList
from acl.mounts import all_ids_mapped
from acl.posix import EXECUTE, READ, XATTR, PosixState, compile_posix
from acl.sid import AUTHENTICATED, EVERYONE, NETWORK, Sid, uncertain_names, unix_group, unix_user
from acl.token import Token

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all_ids_mapped(),
    reason="NOT COMPARED WITH THE KERNEL: only root can take on other accounts' ids",
)

UIDS, GIDS = (50_001, 50_002, 50_003), (60_001, 60_002, 60_003)
ASKERS = [
    (50_001, (60_001,)),
    (50_001, (60_009, 60_002, 60_003)),
    (50_002, (60_002, 60_001)),
    (50_003, (60_003,)),
    (50_004, (60_009,)),
    (50_004, (60_001, 60_002, 60_003)),
]
FILES, FOLDERS = 300, 80

# Runs as the asker: every path is tried from one open folder, so that nothing above it matters.
PROBE = """
import json, os, sys
fd, uid, gids, names = json.loads(sys.argv[1])
os.setgroups(gids[1:]); os.setresgid(gids[0], gids[0], gids[0]); os.setresuid(uid, uid, uid)
def reads(name):
    try:
        os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=fd))
        return True
    except PermissionError:
        return False
print(json.dumps([name for name in names if reads(name)]))
"""


@dataclass(frozen=True)
class World:
    """A real folder with files in it, and what we compiled for each of them."""

    seed: int
    root: Path
    lists: dict[str, tuple[AccessList, ...]]
    masked: frozenset[str]


def random_acl(dice: random.Random) -> tuple[int, bytes | None]:
    """Permission bits, and in three of four cases an ACL in which every mask but --- occurs."""
    mode = dice.choice([dice.randrange(0o1000), 0o644, 0o640, 0o604, 0o600, 0o750, 0o701])
    if dice.random() < 0.25:
        return mode, None
    users = {uid: dice.randrange(8) for uid in dice.sample(UIDS, dice.randrange(3))}
    groups = {gid: dice.randrange(8) for gid in dice.sample(GIDS, dice.randrange(4))}
    entries = [
        (OWNER, mode >> 6, NO_ID),
        *((USER, bits, uid) for uid, bits in sorted(users.items())),
        (GROUP_OBJ, dice.randrange(8), NO_ID),
        *((GROUP, bits, gid) for gid, bits in sorted(groups.items())),
        (MASK, dice.randrange(8), NO_ID),
        (OTHER, mode & 7, NO_ID),
    ]
    return mode, acl_bytes(entries)


def compiled(path: Path, right: int, role: str) -> AccessList:
    info = path.stat()
    try:
        xattr: bytes | None = os.getxattr(path, XATTR)
    except OSError:
        xattr = None
    state = PosixState(info.st_uid, info.st_gid, info.st_mode, xattr)
    return compile_posix(state, right, Meaning("host", "posix", role))  # type: ignore[arg-type]


def dress(path: Path, dice: random.Random) -> None:
    mode, xattr = random_acl(dice)
    os.chown(path, dice.choice(UIDS), dice.choice(GIDS))
    path.chmod(mode)
    if xattr is not None:
        os.setxattr(path, XATTR, xattr)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    root = Path(tempfile.mkdtemp(prefix="notewarden-kernel-"))
    try:
        root.chmod(0o755)
        lists: dict[str, tuple[AccessList, ...]] = {}
        for number in range(FILES):
            note = root / f"{number}.md"
            note.write_text("secret")
            dress(note, dice)
            lists[note.name] = (compiled(note, READ, "note"),)
        for number in range(FOLDERS):
            outer = root / f"d{number}"
            inner = outer / "inner"
            inner.mkdir(parents=True)
            note = inner / "n.md"
            note.write_text("secret")
            note.chmod(0o644)
            dress(inner, dice)
            dress(outer, dice)
            parents = (compiled(outer, EXECUTE, "parent"), compiled(inner, EXECUTE, "parent"))
            lists[str(note.relative_to(root))] = (*parents, compiled(note, READ, "note"))
        yield World(seed, root, lists, frozenset(name for name in lists if has_empty_mask(root / name, root)))
    finally:
        shutil.rmtree(root)


def has_empty_mask(path: Path, root: Path) -> bool:
    """Whether an ACL on the way has the mask ---, where Linux looks at no named entry and we do."""
    found = False
    while path != root:
        mode = path.stat().st_mode
        found |= XATTR in os.listxattr(path) and not mode & 0o070
        path = path.parent
    return found


def granted(world: World, uid: int, gids: tuple[int, ...]) -> set[str]:
    fd = os.open(world.root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        asked = json.dumps([fd, uid, gids, list(world.lists)])
        run = subprocess.run(
            [sys.executable, "-I", "-c", PROBE, asked], pass_fds=[fd], stdout=subprocess.PIPE, check=True
        )
    finally:
        os.close(fd)
    return set(json.loads(run.stdout))


@pytest.mark.parametrize(("uid", "gids"), ASKERS)
def test_the_kernel_agrees(world: World, uid: int, gids: tuple[int, ...]) -> None:
    allow = {
        unix_user(uid, "host"),
        *(unix_group(gid, "host") for gid in gids),
        EVERYONE,
        AUTHENTICATED,
        NETWORK,
    }
    certain: frozenset[Sid] = uncertain_names(("S-1-22-1@host", "S-1-22-2@host"))
    token = Token(unix_user(uid, "host"), "asker", frozenset(allow), frozenset(allow) | certain)
    ours = {name for name, lists in world.lists.items() if readable(lists, token)}
    theirs = granted(world, uid, gids)
    assert ours - theirs == set(), f"shown, though the kernel refuses (seed {world.seed})"
    assert theirs - ours <= world.masked, f"hidden, though the kernel grants (seed {world.seed})"
    assert ours
    assert len(ours) < len(world.lists)
