"""`notewarden readable`: every note that a user may read, by the one decision, as the reader role."""

from __future__ import annotations

from typing import Any

from acl.directory import Account, Directory
from acl.token import build_token
from db import audit
from db.pool import Database
from db.search import reading
from indexer.actor import actor_of
from indexer.notepaths import Place
from indexer.output import shown
from notewarden.display import show_path


def readable_places(database: Database, directory: Directory, account: Account) -> list[Place]:
    """Return the notes `account` may read now, sorted, after the audit row stands.

    Raises AskerUnknown, DirectoryUnreachable, DatabaseUnavailable.
    """
    token = build_token(directory, account)
    with database.owner() as conn:
        audit.add(conn, audit.Act(actor_of(directory), account.sid, "readable"))
    with database.reader() as conn, reading(conn, token) as found:
        return sorted(Place(share, path) for _, share, path in found.notes())


def as_json(account: Account, places: list[Place]) -> dict[str, Any]:
    """Return the list as the contract writes it."""
    notes = [{"share": place.share, "path": show_path(place.path)} for place in places]
    return {"user": account.name, "notes": notes}


def as_text(places: list[Place]) -> str:
    """Return one line a note."""
    return "\n".join(f"{place.share}:{shown(place.path)}" for place in places)
