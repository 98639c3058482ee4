"""The survey: what a walk found against what is indexed. Pure comparison; nothing is read or decided here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from acl.model import AccessList
from db.ledger import Trouble
from db.notes import MOST_PATH, TRUSTED, Known
from indexer.hint import FORM, hint_of
from indexer.walk import Failure, Listing

Fresh = tuple[bytes, os.stat_result]

_TOO_LONG = f"what lies below has a path of more than {MOST_PATH} bytes; shorten the names of its folders"


@dataclass
class Survey:
    """Each indexed note is in one of the lists from unchanged to unseen, each new file in fresh or idle.

    `absent` were not listed though the nearest folder that still stands listed well; `shut` lie under a
    folder that refused us, `unseen` under one that failed; `idle` are files in trouble that did not change,
    `settled` those of them that are suspects: their rights are read again, their text is not tried again.
    """

    seen: int = 0
    root_entries: int = 0
    guards: dict[bytes, tuple[AccessList, ...]] = field(default_factory=dict)
    unchanged: dict[bytes, list[Known]] = field(default_factory=dict)
    suspects: list[Known] = field(default_factory=list)
    fresh: list[Fresh] = field(default_factory=list)
    idle: list[bytes] = field(default_factory=list)
    settled: set[bytes] = field(default_factory=set)
    absent: list[Known] = field(default_factory=list)
    shut: list[Known] = field(default_factory=list)
    unseen: list[Known] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    odd: list[tuple[bytes, str]] = field(default_factory=list)

    def hides(self, path: bytes) -> bool:
        """Tell whether a folder that failed to list is at or above `path`, so that nothing is known of it."""
        return bool(self.failures) and _nearest(path, {one.folder: one for one in self.failures}) is not None


class Surveyor:
    """Compares folder by folder as the walk goes."""

    def __init__(
        self, known: Mapping[bytes, Known], troubles: Mapping[bytes, Trouble], *, trust_hints: bool
    ) -> None:
        """`trust_hints` False makes every indexed note a suspect, to be hashed again."""
        self._left = dict(known)
        self._troubles = troubles
        self._trust = trust_hints

    def run(
        self, outcomes: Iterable[Listing | Failure], heartbeat: Callable[[int], None] = lambda seen: None
    ) -> Survey:
        """Consume a walk. `heartbeat` is told how many notes were seen, folder by folder."""
        survey = Survey()
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                survey.failures.append(outcome)
                continue
            self._add(survey, outcome)
            heartbeat(survey.seen)
        self._missing(survey)
        return survey

    def _add(self, survey: Survey, listing: Listing) -> None:
        survey.seen += len(listing.notes)
        survey.guards[listing.folder] = listing.guards
        survey.odd += [(nameable(path), reason) for path, reason in listing.odd]
        if not listing.folder:
            survey.root_entries = listing.entries
        unchanged = []
        take, trust, troubles, pack = self._left.pop, self._trust, self._troubles, FORM.pack
        for path, info in listing.notes:
            note = take(path, None)
            if note is None:
                self._add_fresh(survey, path, info)
            elif (
                trust
                and note.flags == TRUSTED
                and note.hint == pack(info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
                and not (troubles and path in troubles)
            ):
                unchanged.append(note)
            else:
                survey.suspects.append(note)
                if self._is_settled(path, info):
                    survey.settled.add(path)
        survey.unchanged[listing.folder] = unchanged

    def _add_fresh(self, survey: Survey, path: bytes, info: os.stat_result) -> None:
        if len(path) > MOST_PATH:
            survey.odd.append((nameable(path), _TOO_LONG))
        elif self._is_settled(path, info):
            survey.idle.append(path)
        else:
            survey.fresh.append((path, info))

    def _is_settled(self, path: bytes, info: os.stat_result) -> bool:
        """Whether this very version failed for good before."""
        trouble = self._troubles.get(path)
        if trouble is None or trouble.state not in ("skipped", "parked"):
            return False
        return trouble.hint is not None and trouble.hint == hint_of(info)

    def _missing(self, survey: Survey) -> None:
        failed = {failure.folder: failure for failure in survey.failures}
        for path, note in self._left.items():
            folder = path.rpartition(b"/")[0]
            above = None if folder in survey.guards else _nearest(folder, failed)
            if above is None:
                survey.absent.append(note)
            else:
                (survey.shut if above.refused else survey.unseen).append(note)


def nameable(path: bytes) -> bytes:
    """Return `path`, or where it is longer than the database keeps, the folder above that is not."""
    while len(path) > MOST_PATH:
        path = path.rpartition(b"/")[0]
    return path


def _nearest(folder: bytes, failed: Mapping[bytes, Failure]) -> Failure | None:
    while folder not in failed:
        if not folder:
            return None
        folder = folder.rpartition(b"/")[0]
    return failed[folder]
