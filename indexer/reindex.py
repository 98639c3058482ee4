"""`notewarden reindex`: make the rows of some notes anew, the old ones serving until the new ones stand."""

from __future__ import annotations

from collections.abc import Sequence

from db import ledger, notes, shares
from db.audiences import AudienceStore
from db.notes import NoteStore
from db.pool import Connection, Database
from indexer.notepaths import NotePaths, Place
from notewarden.settings import Settings
from notewarden.settings_sections import ShareSettings


def index_paths(conn: Connection, settings: Settings, share: str | None = None) -> NotePaths:
    """Return the notes that an argument can name: the indexed ones. Raises UsageError for no such share."""
    names = [one.name for one in settings.shares]
    places = (Place(name, path) for name, path in notes.paths(conn, names))
    return NotePaths(places, settings.shares, share)


def outdate(
    database: Database, settings: Settings, arguments: Sequence[str] | None, share: str | None = None
) -> int:
    """Let the next sync make the notes that `arguments` name (None: all) anew; return how many.

    A parked note is tried again, and one kept under a narrower rule follows its folder's. Raises NotInNotes
    or UsageError, before anything is changed, for an argument that names nothing or too much.
    """
    with database.owner() as conn:
        names = [one.name for one in settings.shares]
        known = [Place(name, path) for name, path in notes.paths(conn, names)]
        troubled = [Place(one.share, one.path) for one in ledger.standing(conn, names)]
        paths = NotePaths([*known, *troubled], settings.shares, share)
        wanted = (
            paths.all() if arguments is None else {one for text in arguments for one in paths.below(text)}
        )
        for one in settings.shares:
            _outdate(conn, one, {place.path for place in wanted if place.share == one.name})
    return len(wanted)


def _outdate(conn: Connection, share: ShareSettings, paths: set[bytes]) -> None:
    if not paths:
        return
    row = shares.declare(conn, share.name, str(share.path), share.link, share.acl.max_age)
    store = NoteStore(conn, row.share_id, AudienceStore(conn, row.share_id))
    with conn.transaction():
        ids = [note.note_id for path, note in store.known().items() if path in paths]
        store.outdate(ids)
        store.release_narrow(ids)
        ledger.clear(conn, row.share_id, sorted(paths))
