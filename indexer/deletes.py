"""When a missing note is a deleted note: few at once, or proved again; many only when an admin agrees."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from notewarden.settings import DeletesSettings


@dataclass(frozen=True)
class Verdict:
    """Ids of notes whose rows go now, and of those that are only hidden for the time being."""

    delete: tuple[int, ...]
    hold: tuple[int, ...]


def judge(gone: dict[int, int], in_share: int, rules: DeletesSettings) -> Verdict:
    """Judge notes proved gone in this poll: `gone` maps note id to the polls that missed it before.

    Up to `hold_count` go at once. More are held; the poll that finds them gone for the `confirm_polls`-th
    time deletes them, unless they are also more than `hold_share` of the `in_share` notes indexed: then
    only an admin's confirmation does.
    """
    if len(gone) <= rules.hold_count:
        return Verdict(tuple(gone), ())
    confirmed = [note_id for note_id, missing in gone.items() if missing + 1 >= rules.confirm_polls]
    if not _few(confirmed, gone, in_share, rules):
        confirmed = []
    kept = set(gone) - set(confirmed)
    return Verdict(tuple(confirmed), tuple(kept))


def _few(confirmed: Collection[int], gone: Collection[int], in_share: int, rules: DeletesSettings) -> bool:
    return bool(confirmed) and len(gone) <= rules.hold_share * in_share
