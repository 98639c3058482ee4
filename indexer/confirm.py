"""`notewarden confirm-deletes`: an admin says that notes which are gone were really deleted."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from acl.directory import Directory
from acl.sid import Sid
from db import audit, ledger, shares
from db.audiences import AudienceStore
from db.notes import Known, NoteStore
from db.pool import Connection, Database
from indexer.actor import actor_of
from indexer.files import Files
from indexer.identity import Identity, is_gone, opened_share
from indexer.patience import Patience
from indexer.patterns import Patterns
from indexer.sync import sole_indexer
from notewarden.errors import ShareUnavailable, UsageError
from notewarden.settings import Settings
from notewarden.settings_sections import ShareSettings

_T = TypeVar("_T")


@dataclass(frozen=True)
class Confirmed:
    """How many notes of a share went, and how many held ones are there again."""

    share: str
    deleted: int
    returned: int


class Confirmation:
    """Deletes held notes at once, each after one more look."""

    def __init__(
        self,
        database: Database,
        directory: Directory,
        files: Files | None = None,
        *,
        actor: Sid | None = None,
    ) -> None:
        """`actor`: the admin who asked for it, where that is not the account of this process."""
        self._database = database
        self._directory = directory
        self._files = files or Files()
        self._actor = actor

    def confirm(self, share: ShareSettings, *, emptied: bool = False) -> Confirmed:
        """Delete what is held of `share`; with `emptied` all its notes, if its root is empty and itself.

        Raises ShareUnavailable, IndexerBusy, DatabaseUnavailable; then nothing was deleted.
        """
        with self._database.owner() as conn, sole_indexer(conn):
            row = shares.declare(conn, share.name, str(share.path), share.link, share.acl.max_age)
            store = NoteStore(conn, row.share_id, AudienceStore(conn, row.share_id))
            known = store.known()
            held = {path: note_id for note_id, path, _ in store.held()}
            if not held and not (emptied and known):
                return Confirmed(share.name, 0, 0)
            patience = Patience(share.name)
            with closing(patience), opened_share(self._files, share.path, patience) as root:
                identity = Identity(self._files, share, (row.identity or {}).get("root"))
                _answered(patience, share, lambda: identity.check(root, known.values()))
                asked = held
                patterns = Patterns(share.include, share.exclude)
                entries = _answered(patience, share, lambda: self._files.scan(root))
                if all(patterns.is_junk(name) for name, _ in entries):
                    asked = self._all_of(share, known, emptied=emptied)
                gone = {
                    path: asked[path]
                    for path in asked
                    if _answered(patience, share, partial(self._gone, share, root, path))
                }
                self._record(conn, share, len(gone), emptied=emptied)
                _answered(patience, share, lambda: identity.still(root))
                _delete(conn, row.share_id, store, gone)
        return Confirmed(share.name, len(gone), len(asked) - len(gone))

    def _all_of(self, share: ShareSettings, known: dict[bytes, Known], *, emptied: bool) -> dict[bytes, int]:
        if emptied:
            return {path: note.note_id for path, note in known.items()}
        raise ShareUnavailable(
            f"The folder of share {share.name!r} is empty; check the mount, or run `notewarden "
            f"confirm-deletes --share {share.name} --emptied` if it was really emptied. Nothing was deleted."
        )

    def _gone(self, share: ShareSettings, root: int, path: bytes) -> bool:
        """A name that the share's patterns no longer take is gone from the share too."""
        taken = Patterns(share.include, share.exclude).takes_path(os.fsdecode(path))
        return not taken or is_gone(self._files, root, path)

    def _record(self, conn: Connection, share: ShareSettings, count: int, *, emptied: bool) -> None:
        actor = self._actor or actor_of(self._directory)
        detail = {"notes": count, "emptied": emptied}
        audit.add(conn, audit.Act(actor, actor, "confirm-deletes", share.name, detail))


@dataclass(frozen=True)
class AllConfirmed:
    """What became of each share, and of those that could not be looked at."""

    done: tuple[Confirmed, ...]
    trouble: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as it travels from the daemon to the command."""
        return {"done": [vars(one) for one in self.done], "trouble": list(self.trouble)}

    @classmethod
    def from_json(cls, made: Mapping[str, Any]) -> AllConfirmed:
        """Return what `as_json` made."""
        return cls(tuple(Confirmed(**one) for one in made["done"]), tuple(made["trouble"]))


def confirm_shares(
    confirmation: Confirmation, shares: Sequence[ShareSettings], *, emptied: bool
) -> AllConfirmed:
    """Confirm share by share; one that cannot be looked at costs no other. Raises as `confirm` else."""
    done: list[Confirmed] = []
    trouble: list[str] = []
    for share in shares:
        try:
            done.append(confirmation.confirm(share, emptied=emptied))
        except ShareUnavailable as error:
            trouble.append(f"{share.name}: {error}")
    return AllConfirmed(tuple(done), tuple(trouble))


def wanted_shares(settings: Settings, share: str | None) -> list[ShareSettings]:
    """Return the shares that `--share` means. Raises UsageError where there is none."""
    found = [one for one in settings.shares if share in (None, one.name)]
    if not found:
        raise UsageError(f"The configuration has no share {share!r}." if share else "There is no share.")
    return found


def _answered(patience: Patience, share: ShareSettings, look: Callable[[], _T]) -> _T:
    try:
        return patience.call(look)
    except OSError as error:
        raise ShareUnavailable(
            f"The folder of share {share.name!r} cannot be read ({error.strerror}). Nothing was deleted."
        ) from error


def _delete(conn: Connection, share_id: int, store: NoteStore, gone: dict[bytes, int]) -> None:
    with conn.transaction():
        store.delete(list(gone.values()))
        ledger.clear(conn, share_id, list(gone))
        AudienceStore(conn, share_id).drop_empty()
