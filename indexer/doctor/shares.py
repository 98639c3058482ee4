"""What doctor looks at in each share: mount, permissions, identity, and who people are."""

from __future__ import annotations

import os
import stat
from collections import deque

from acl.diagnosis import diagnose
from acl.directory import make_directory
from acl.model import AccessList
from acl.mounts import Mount, mount_above, mount_of
from acl.source import Source, make_source
from db import shares as rows
from db.audiences import AudienceStore
from db.notes import NoteStore
from db.pool import Database
from indexer.doctor.report import Check
from indexer.files import Files, opened_folder, opened_note
from indexer.identity import Identity, opened_share
from indexer.output import counted, shown
from indexer.patterns import Patterns
from indexer.whynow import declared_gates
from notewarden import patient
from notewarden.errors import AskerUnknown
from notewarden.settings import Settings
from notewarden.settings_sections import ShareSettings

_MOST_FOLDERS = 200
_NETWORK = frozenset({"cifs", "smb3", "nfs", "nfs4"})


def people(settings: Settings) -> Check:
    """The directory of users and groups answers."""
    directory = make_directory(settings)
    accounts = directory.accounts()
    count = "it is asked for one account at a time" if accounts is None else counted(len(accounts), "account")
    try:
        own = f"; this account is {directory.user_by_uid(os.geteuid()).name} there"
    except AskerUnknown:
        own = ""
    return Check("directory", True, f"{settings.directory.source}: {count}{own}.")


def mounted(share: ShareSettings) -> Check:
    """The share's folder opens, holds something, and is mounted in a way that does not mislead."""
    name, files = f"mount {share.name}", Files()
    if not _answers(share):
        return _silent(name, share)
    if not share.path.is_dir():
        return Check(
            name,
            False,
            f"There is no folder {share.path}.",
            "Mount the share there, or correct [[share]] path.",
        )
    mount = mount_of(share.path)
    with opened_share(files, share.path) as root:
        count = len(files.scan(root))
    detail = f"{share.path}: {mount.kind} from {mount.source}, {count} entries at its root."
    if not count:
        return Check(name, False, f"{share.path} is empty ({mount.kind}).", "Mount the share there.")
    remedy = _better(mount)
    return Check(name, True, detail, remedy)


def _answers(share: ShareSettings) -> bool:
    return patient.answers(share.path, patient.FIRST_S)


def _silent(name: str, share: ShareSettings) -> Check:
    mount = mount_above(share.path)
    of = "" if mount is None else f" ({mount.kind} from {mount.source} at {shown(mount.point)})"
    return Check(
        name,
        False,
        f"The mount of {share.path} does not answer{of}.",
        "See whether its server and the network are up; if they are, mount it anew: `umount -l` it first.",
    )


def _better(mount: Mount) -> str:
    if mount.kind in ("cifs", "smb3") and "serverino" not in mount.options:
        return "Mount with serverino: without it a moved note looks like another one, and is read over SMB."
    if mount.kind in _NETWORK and "soft" not in mount.options:
        return "Mount with soft: a server that is gone then gives an error instead of a hanging poll."
    if mount.kind in _NETWORK and "ro" not in mount.options:
        return "Mount with ro: notewarden never writes there."
    return ""


def permissions(settings: Settings, share: ShareSettings) -> Check:
    """The source of rights can be asked (a NAS is logged in to), and one note's lists can be read."""
    name = f"permissions {share.name}"
    if not _answers(share):
        return Check(
            name, False, "Not looked at: the mount does not answer.", f"Mend mount {share.name} first."
        )
    if not share.path.is_dir():
        return Check(
            name, False, "Not looked at: the folder is not there.", f"Mend mount {share.name} first."
        )
    source = make_source(share, make_directory(settings))
    source.check()
    files = Files()
    with opened_share(files, share.path) as root:
        path = first_note(files, root, share)
        lists = list(source.share_lists())
        with opened_folder(files, root, b"") as folder:
            lists += source.parent_lists(folder, b"")
        if path is None:
            return Check(
                name, True, f"{share.acl.source}: {len(lists)} lists of share and root; no note found."
            )
        lists += _of_note(files, root, path, source)
    closed = [one for one in lists if one.status != "ok"]
    detail = f"{share.acl.source}: {len(lists)} lists read for {share.name}:{shown(path)}."
    if closed:
        return Check(
            name, False, f"{detail} Nobody may read it: {closed[0].reason}.",
            f"Correct its permissions on the server; `notewarden why {shown(path)}` shows each layer.",
        )  # fmt: skip
    gates = "".join(f" {one[0].upper()}{one[1:]}." for one in declared_gates(share))
    return Check(name, True, detail + gates)


def diagnosed(share: ShareSettings) -> list[Check]:
    """What a look at the share's file server recognises; nothing where none is asked or no mount answers."""
    if not _answers(share):
        return []
    return [
        Check(f"{one.name} {share.name}", one.ok, f"{one.detail.rstrip('.')}.", one.remedy)
        for one in diagnose(share)
    ]


def _of_note(files: Files, root: int, path: bytes, source: Source) -> list[AccessList]:
    with opened_note(files, root, path) as fd:
        return list(source.note_lists(fd, path))


def first_note(files: Files, root: int, share: ShareSettings) -> bytes | None:
    """Return the path of some note near the root, None where the first folders hold none."""
    patterns = Patterns(share.include, share.exclude)
    waiting, seen = deque([b""]), 0
    while waiting and seen < _MOST_FOLDERS:
        folder = waiting.popleft()
        seen += 1
        with opened_folder(files, root, folder) as fd:
            entries = files.scan(fd)
        for name, info in entries:
            path = (folder + b"/" if folder else b"") + os.fsencode(name)
            if stat.S_ISDIR(info.st_mode):
                waiting.append(path)
            elif stat.S_ISREG(info.st_mode) and patterns.takes_path(os.fsdecode(path)):
                return path
    return None


def identity(database: Database, share: ShareSettings) -> Check:
    """The folder is the one that was indexed."""
    name = f"identity {share.name}"
    with database.owner() as conn:
        known = rows.known(conn, share.name)
        if known is None or not known.identity:
            return Check(name, True, "Not indexed yet.", "Run `notewarden sync`.")
        notes = NoteStore(conn, known.share_id, AudienceStore(conn, known.share_id)).known().values()
    files = Files()
    with opened_share(files, share.path) as root:
        Identity(files, share, known.identity.get("root")).check(root, notes)
    return Check(name, True, "The folder is the one that was indexed.")
