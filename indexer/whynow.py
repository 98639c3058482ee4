"""What `why` says beside the index's verdict: what the share itself shows now, and what nobody can ask it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from acl.directory import Directory
from acl.evaluate import readable
from acl.live import NoteNow
from acl.token import Token
from db import latecheck, lists, notes
from db.pool import Connection
from indexer.latecheck import look_at
from indexer.notepaths import Place
from notewarden.settings_sections import ShareSettings


def doubts_about(
    conn: Connection, share: ShareSettings, directory: Directory, place: Place, token: Token | None
) -> list[str]:
    """Return one sentence for each thing in which the share differs from the index, or cannot be asked.

    Raises DirectoryUnreachable.
    """
    policy = notes.policy(conn, place.share, place.path)
    found = list(declared_gates(share))
    if policy is None:
        return found
    stored = lists.stored(conn, [*policy.share_acl_ids, *policy.acl_ids])
    keys = {one.key for one in stored.values()}
    for now in look_at(share, directory, latecheck.indexed(conn, [policy.note_id])).values():
        found += _differences(now, keys, token)
    return found


def declared_gates(share: ShareSettings) -> Iterator[str]:
    """Say which gates of a share are declared although its lists are read: no late check can ask for them."""
    acl = share.acl
    named = [key for key in ("share_readers", "share_denied") if getattr(acl, key) is not None]
    if named and acl.source != "declared":
        yield (
            f"whom the share {share.name!r} admits is declared in the configuration ({', '.join(named)}); "
            "it cannot be checked on the server"
        )


def _differences(now: NoteNow, keys: Collection[bytes], token: Token | None) -> Iterator[str]:
    if now.state == "unreachable":
        yield "the share cannot be reached now: this is what the index says"
    elif now.state == "gone":
        yield "the note is not there any more: a late check shows it to nobody, the next sync takes it out"
    elif now.state == "error":
        yield "the share does not tell this note's permissions now: a late check shows it to nobody"
    elif not {one.key for one in now.lists} <= set(keys):
        yield "the share has other permissions now than the index: until the next sync both must pass" + (
            "" if token is None else _passing(now, token)
        )
    if now.state == "changed":
        yield "its text has changed since it was indexed"


def _passing(now: NoteNow, token: Token) -> str:
    return ", and the new ones " + ("do" if readable(now.lists, token, now.unresolvable) else "do not")
