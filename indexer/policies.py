"""Applying permissions: one transaction in which audiences are edited in place or notes are moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from db.audiences import Audience, AudienceStore
from db.notes import Known


@dataclass(frozen=True)
class Wanted:
    """Who may read an indexed note from now on: its folder and the sorted ids of all its lists."""

    note: Known
    folder: bytes
    acl_ids: tuple[int, ...]


class Policies:
    """Brings the audiences of one share to what a sweep has read."""

    def __init__(self, audiences: AudienceStore) -> None:
        self._audiences = audiences

    def apply(self, wanted: Iterable[Wanted]) -> int:
        """Apply the sweep's verdicts and return how many notes changed their readers.

        Must run inside a transaction. A row is edited in place only when every member was read and agrees;
        otherwise those that differ are moved out, and a note that nobody asked for here stays as it was.
        """
        audiences = self._audiences.all()
        by_audience: dict[int, list[Wanted]] = defaultdict(list)
        for one in wanted:
            by_audience[one.note.audience_id].append(one)
        return sum(
            self._settle(audiences[audience_id], members) for audience_id, members in by_audience.items()
        )

    def _settle(self, audience: Audience, members: list[Wanted]) -> int:
        right = (audience.folder, audience.acl_ids)
        differing = [one for one in members if (one.folder, one.acl_ids) != right]
        if not differing:
            return 0
        targets = {(one.folder, one.acl_ids) for one in differing}
        folder, acl_ids = next(iter(targets))
        if len(differing) == audience.notes and len(targets) == 1 and folder == audience.folder:
            self._audiences.edit(audience.audience_id, acl_ids)
        else:
            self._move(audience, differing)
        return len(differing)

    def _move(self, audience: Audience, differing: list[Wanted]) -> None:
        groups: dict[tuple[bytes, tuple[int, ...]], list[int]] = defaultdict(list)
        for one in differing:
            groups[(one.folder, one.acl_ids)].append(one.note.note_id)
        for (folder, acl_ids), note_ids in groups.items():
            self._audiences.move(note_ids, self._audiences.id_for(folder, acl_ids), [audience.audience_id])
