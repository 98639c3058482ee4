"""Applying permissions: one transaction in which audiences are edited in place or notes are moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from acl.model import AccessList
from db.audiences import Audience, AudienceStore
from db.lists import ListStore
from db.notes import Known

_ROLES = ("parent", "note")


@dataclass(frozen=True)
class Wanted:
    """Who may read an indexed note from now on: its folder and the sorted ids of all its lists."""

    note: Known
    folder: bytes
    acl_ids: tuple[int, ...]


class Guards(dict[bytes, tuple[int, ...]]):
    """The ids of each folder's lists, stored when the first note needs them: most folders may hold none."""

    def __init__(self, lists: ListStore, found: Mapping[bytes, tuple[AccessList, ...]]) -> None:
        super().__init__()
        self._lists = lists
        self._found = found

    def __missing__(self, folder: bytes) -> tuple[int, ...]:
        ids = self[folder] = self._lists.ids(self._found[folder])
        return ids


class Standing:
    """The audiences as they stand when a sweep begins, with their lists told apart by role."""

    def __init__(self, audiences: AudienceStore, lists: ListStore) -> None:
        self._audiences = audiences.all()
        roles = lists.roles({one for audience in self._audiences.values() for one in audience.acl_ids})
        self._parts = {
            key: tuple(tuple(one for one in audience.acl_ids if roles.get(one) == role) for role in _ROLES)
            for key, audience in self._audiences.items()
        }
        self._closed = lists.closed()

    def is_right(
        self, audience_id: int, folder: bytes, parents: tuple[int, ...], declared: tuple[int, ...] | None
    ) -> bool:
        """Tell whether an audience needs no change for notes whose own lists did not change.

        `parents` and, where lists follow folders, `declared` are what was read in this sweep.
        """
        audience, (above, own) = self._audiences[audience_id], self._parts[audience_id]
        return (
            audience.folder == folder
            and above == parents
            and self._closed not in own
            and (declared is None or own == declared)
        )


class Policies:
    """Brings the audiences of one share to what a sweep has read."""

    def __init__(self, audiences: AudienceStore) -> None:
        self._audiences = audiences

    def apply(self, wanted: Iterable[Wanted]) -> set[int]:
        """Apply the sweep's verdicts and return the ids of the notes that changed their readers or folder.

        Must run inside a transaction. A row is edited in place only when every member was read and agrees;
        otherwise those that differ are moved out, and a note that nobody asked for here stays as it was.
        All edits come first: a note moved into a row that is edited afterwards would be edited along.
        """
        by_audience: dict[int, list[Wanted]] = defaultdict(list)
        for one in wanted:
            by_audience[one.note.audience_id].append(one)
        audiences = self._audiences.all() if by_audience else {}
        differing = {audiences[key]: _differing(audiences[key], ones) for key, ones in by_audience.items()}
        moving = [one for one, members in differing.items() if members and not self._edited(one, members)]
        for audience in moving:
            self._move(audience, differing[audience])
        return {one.note.note_id for ones in differing.values() for one in ones}

    def _edited(self, audience: Audience, differing: list[Wanted]) -> bool:
        """Edit the row in place if all its members agree on other lists in the same folder."""
        targets = {(one.folder, one.acl_ids) for one in differing}
        folder, acl_ids = next(iter(targets))
        if len(targets) > 1 or folder != audience.folder:
            return False
        if len(differing) != self._audiences.notes(audience.audience_id):
            return False
        self._audiences.edit(audience.audience_id, acl_ids)
        return True

    def _move(self, audience: Audience, differing: list[Wanted]) -> None:
        groups: dict[tuple[bytes, tuple[int, ...]], list[int]] = defaultdict(list)
        for one in differing:
            groups[(one.folder, one.acl_ids)].append(one.note.note_id)
        for (folder, acl_ids), note_ids in groups.items():
            self._audiences.move(note_ids, self._audiences.id_for(folder, acl_ids), [audience.audience_id])


def _differing(audience: Audience, members: list[Wanted]) -> list[Wanted]:
    right = (audience.folder, audience.acl_ids)
    return [one for one in members if (one.folder, one.acl_ids) != right]
