"""The permission half of a poll: read what may have changed, decide who may read what, apply it at once.

No embedding is computed here. A wider policy counts only together with the text it was read with; a narrower
one at once; what cannot be read is closed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from acl.directory import Directory
from acl.model import AccessList
from acl.source import Prefetching, Source
from db.audiences import AudienceStore
from db.ledger import State
from db.lists import ListStore, stored
from db.notes import FileState, Known, Narrowed, NoteStore
from db.pool import Connection
from indexer.files import Files
from indexer.hint import inode_of
from indexer.identity import is_gone
from indexer.moves import MoveFinder
from indexer.narrowing import opens
from indexer.patience import Patience
from indexer.patterns import Patterns
from indexer.policies import Guards, Standing, Wanted
from indexer.reading import NoteGone, NoteMoving, NoteReader, NoteTooLarge, ReadNote
from indexer.survey import Survey
from notewarden.errors import NoteError


@dataclass(frozen=True)
class Job:
    """A note whose rows are to be made: `note` None is a new one; `as_move` counts it as moved."""

    path: bytes
    note: Known | None
    as_move: bool = False


@dataclass
class Verdicts:
    """What a sweep found, before anything is written."""

    wanted: list[Wanted] = field(default_factory=list)
    verified: list[tuple[Known, FileState, tuple[int, ...]]] = field(default_factory=list)
    renamed: list[tuple[Known, bytes]] = field(default_factory=list)
    narrowed: list[tuple[Known, Narrowed]] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    relisted: dict[tuple[int, ...], list[int]] = field(default_factory=dict)
    unread: int = 0
    gone: list[Known] = field(default_factory=list)
    emptied: list[Known] = field(default_factory=list)
    back: list[int] = field(default_factory=list)
    trouble: list[tuple[bytes, State, str, bytes | None]] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    settled: set[bytes] = field(default_factory=set)
    hashed: set[bytes] = field(default_factory=set)


@dataclass(frozen=True)
class OpenShare:
    """One share while it is polled: `root` is its open folder."""

    source: Source
    reader: NoteReader
    files: Files
    patterns: Patterns
    root: int
    patience: Patience = field(default_factory=lambda: Patience(""))


@dataclass
class Stores:
    """The repositories of one share, on one connection."""

    conn: Connection
    share_id: int
    lists: ListStore
    audiences: AudienceStore
    notes: NoteStore
    narrow: dict[int, Narrowed] = field(default_factory=dict)

    def kept_narrow(self, note_id: int) -> tuple[int, ...]:
        """The lists of the narrower rule that a renamed note keeps, () for none."""
        kept = self.narrow.get(note_id)
        return () if kept is None else kept.old


def asks_each(source: Source) -> bool:
    """Whether a complete sweep of this source must ask for every note's lists."""
    return not (source.by_folder or source.ctime_tells)


class Sweep:
    """Reads and decides for one share; `root` is its open folder."""

    def __init__(
        self,
        stores: Stores,
        share: OpenShare,
        directory: Directory,
        *,
        full: bool = False,
        permissions: bool = True,
        close_unseen: bool = False,
    ) -> None:
        """`full`: hash the notes too whose size and times say that nothing changed.

        `permissions` False leaves out the lists that would have to be asked for note by note: those of notes
        whose times cannot tell that a list changed. It is no complete sweep then (`asks_each`).
        `close_unseen`: hide the notes that cannot be looked at, so that the sweep is complete without them.
        """
        self._full = full
        self._permissions = permissions
        self._close_unseen = close_unseen
        self._stores = stores
        self._share = share
        self._source = share.source
        self._reader = share.reader
        self._root = share.root
        self._directory = directory
        self._closed = (stores.lists.closed(),)
        self._standing = Standing(stores.audiences, stores.lists)
        self._replaced: list[tuple[Known, ReadNote]] = []
        self._owns: dict[int, tuple[int, ...]] | None = None
        self.found = Verdicts()

    def run(self, survey: Survey) -> Verdicts:
        """Decide for every indexed note of the survey; unseen ones are left as they are."""
        self._not_seen(survey.unseen)
        self.found.settled = survey.settled
        guards = Guards(self._stores.lists, survey.guards)
        for folder, notes in survey.unchanged.items():
            if notes:
                self._unchanged(folder, guards[folder], notes)
        for note in survey.suspects:
            self._suspect(note, guards[note.path.rpartition(b"/")[0]])
        for note in survey.shut:
            self._want(note, note.path.rpartition(b"/")[0], self._closed)
        self._absent(survey, guards)
        return self.found

    def _not_seen(self, notes: Sequence[Known]) -> None:
        """Leave notes as they are of which nothing could be learnt; for a while only."""
        if not self._close_unseen:
            self.found.unread += len(notes)
            return
        for note in notes:
            self._want(note, note.path.rpartition(b"/")[0], self._closed)

    def _unchanged(self, folder: bytes, parents: tuple[int, ...], notes: list[Known]) -> None:
        if self._full and notes:
            notes = self._verified_by_hash(folder, parents, notes)
        declared = self._by_folder(folder) if notes and self._source.by_folder else None
        notes = self._not_settled(folder, parents, declared, notes)
        reread = self._permissions and asks_each(self._source)
        if reread and isinstance(self._source, Prefetching):
            self._source.prefetch(folder, [note.path.rpartition(b"/")[2] for note in notes])
        targets: dict[tuple[int, ...], tuple[int, ...]] = {}
        for note in notes:
            own = self._indexed_own(note)
            if reread and not self._lists_stand(note):
                self._suspect(note, parents)
                continue
            if declared is not None:
                own = self._relist(note, declared)
            if own not in targets:
                targets[own] = tuple(sorted({*parents, *own}))
            self.found.wanted.append(Wanted(note, folder, targets[own]))

    def _not_settled(
        self, folder: bytes, parents: tuple[int, ...], declared: tuple[int, ...] | None, notes: list[Known]
    ) -> list[Known]:
        """Leave out the notes of audiences that are right as they stand: nearly every note of a poll."""
        if declared is None and not self._source.ctime_tells:
            return notes
        wrong = {
            audience_id
            for audience_id in {note.audience_id for note in notes}
            if not self._standing.is_right(audience_id, folder, parents, declared)
        }
        return [note for note in notes if note.audience_id in wrong] if wrong else []

    def _by_folder(self, folder: bytes) -> tuple[int, ...]:
        prefix = folder + b"/" if folder else b""
        return self._stores.lists.ids(self._source.note_lists(-1, prefix + b"note"))

    def _verified_by_hash(self, folder: bytes, parents: tuple[int, ...], notes: list[Known]) -> list[Known]:
        """Return those whose text is what is indexed; the others are read again with their lists."""
        same = self._reader.unchanged(self._root, folder, notes)
        self.found.hashed.update(note.path for note in notes if note.note_id in same)
        for note in notes:
            if note.note_id not in same:
                self._suspect(note, parents)
        return [note for note in notes if note.note_id in same]

    def _relist(self, note: Known, declared: tuple[int, ...]) -> tuple[int, ...]:
        own = self._held_narrow(note, declared)
        if own != self._indexed_own(note):
            self.found.relisted.setdefault(own, []).append(note.note_id)
        return own

    def _lists_stand(self, note: Known) -> bool:
        """Read the lists alone of a note whose times cannot tell of them."""
        try:
            lists = self._reader.lists(self._root, note.path)
        except NoteError:
            return False
        return self._stores.lists.ids(lists) == self._indexed_own(note)

    def _suspect(self, note: Known, parents: tuple[int, ...]) -> None:
        folder = note.path.rpartition(b"/")[0]
        try:
            read = self._reader.read(self._root, note.path)
        except NoteError as error:
            self._want(note, folder, self._after_failure(note, parents, error))
            return
        self.found.hashed.add(note.path)
        if note.absent:
            self.found.back.append(note.note_id)
        changed = read.state.content_hash != note.content_hash
        if changed and inode_of(read.state.hint) != inode_of(note.hint):
            self._replaced.append((note, read))  # judged when it is known what moved
        else:
            self._judge_read(note, read, parents)

    def _judge_read(self, note: Known, read: ReadNote, parents: tuple[int, ...]) -> None:
        live = self._own(note, read.lists)
        folder = note.path.rpartition(b"/")[0]
        if read.state.content_hash == note.content_hash:
            self.found.verified.append((note, read.state, live))
            self._want(note, folder, {*parents, *live})
            again = note.stale
        else:
            # The old text goes on serving only those who pass its own policy and the live one.
            self._want(note, folder, {*parents, *self._indexed_own(note), *live})
            again = True
        if again and note.path not in self.found.settled:
            self.found.jobs.append(Job(note.path, note))

    def _after_failure(self, note: Known, parents: tuple[int, ...], error: NoteError) -> Iterable[int]:
        if isinstance(error, NoteTooLarge):
            self.found.emptied.append(note)
            self.found.trouble.append((note.path, "skipped", error.reason, error.hint))
        elif isinstance(error, NoteMoving):
            self.found.trouble.append((note.path, "pending", error.reason, None))
            if error.lists is not None:
                return {*parents, *self._indexed_own(note), *self._own(note, error.lists)}
        elif not isinstance(error, NoteGone):
            self.found.trouble.append((note.path, "unreadable", error.reason, None))
        return self._closed

    def _own(self, note: Known, lists: tuple[AccessList, ...]) -> tuple[int, ...]:
        ids = self._stores.lists.ids(lists)
        return self._held_narrow(note, ids) if self._source.by_folder else ids

    def _held_narrow(self, note: Known, declared: tuple[int, ...]) -> tuple[int, ...]:
        """Keep the narrower rule beside that of the new folder, until that rule itself changes."""
        kept = self._stores.narrow.get(note.note_id)
        if kept is None:
            return declared
        if kept.beside != declared:
            self.found.released.append(note.note_id)
            return declared
        return tuple(sorted({*declared, *kept.old}))

    def _indexed_own(self, note: Known) -> tuple[int, ...]:
        """The note's own lists as they were read with the indexed text."""
        if self._owns is None:  # most polls never ask
            self._owns = self._stores.notes.own_lists()
        return self._owns[note.note_id]

    def _want(self, note: Known, folder: bytes, acl_ids: Iterable[int]) -> None:
        self.found.wanted.append(Wanted(note, folder, tuple(sorted(set(acl_ids)))))

    def _absent(self, survey: Survey, guards: Mapping[bytes, tuple[int, ...]]) -> None:
        gone = [note for note in survey.absent if self._is_gone(note)]
        proved = {note.note_id for note in gone}
        self._not_seen([note for note in survey.absent if note.note_id not in proved])  # there after all
        finder = self._moves(survey, gone, guards)
        left = list(self._replaced)
        while freed := next((one for one in left if one[0].note_id in finder.taken), None):
            left.remove(freed)
            self._refill(*freed, guards[freed[0].path.rpartition(b"/")[0]], finder)
        for note, read in left:
            self._judge_replaced(note, read, guards[note.path.rpartition(b"/")[0]], finder)
        for note in gone:
            if note.note_id not in finder.taken:
                self.found.gone.append(note)
                self._want(note, note.path.rpartition(b"/")[0], self._closed)

    def _refill(self, note: Known, read: ReadNote, parents: tuple[int, ...], finder: MoveFinder) -> None:
        """Find out what stands where `note` stood before it went elsewhere: another note, or a new one."""
        origin = next(iter(finder.origins(read)), None)
        if origin is None:
            self.found.jobs.append(Job(note.path, None))
        else:
            finder.taken.add(origin.note_id)
            self._rename(origin, read, parents)

    def _judge_replaced(
        self, note: Known, read: ReadNote, parents: tuple[int, ...], finder: MoveFinder
    ) -> None:
        """Judge a note in whose place another file stands: that may have come from a narrower rule."""
        origins = finder.origins(read) if self._source.by_folder else []
        for origin in (one for one in origins if one.note_id != note.note_id):
            old = self._indexed_own(origin)
            if self._opens(old, read.lists):
                kept = Narrowed(old, self._stores.lists.ids(read.lists))
                self._stores.narrow[note.note_id] = kept
                self.found.narrowed.append((note, kept))
                break
        self._judge_read(note, read, parents)

    def _is_gone(self, note: Known) -> bool:
        """Look a second time; a name that is no longer a note of this share counts as gone too."""
        if not self._share.patterns.takes_path(os.fsdecode(note.path)):
            return True
        try:
            return self._share.patience.call(lambda: is_gone(self._share.files, self._root, note.path))
        except TimeoutError:
            return False

    def _moves(
        self, survey: Survey, gone: list[Known], guards: Mapping[bytes, tuple[int, ...]]
    ) -> MoveFinder:
        finder = MoveFinder(gone, [note for note, _ in self._replaced])
        for path, info in survey.fresh:
            read = self._read_candidate(path) if finder.may_match(info.st_ino, info.st_size) else None
            note = self._taken(finder, info.st_ino, read) if read is not None else None
            if note is None or read is None:
                self.found.jobs.append(Job(path, None))
            else:
                self._rename(note, read, guards[path.rpartition(b"/")[0]])
        return finder

    def _taken(self, finder: MoveFinder, inode: int, read: ReadNote) -> Known | None:
        def follow(note: Known) -> bool:
            if self._reader.is_old_file_of(self._root, read.path, note):
                return True
            # Under declared rules a rename with an edit must not open what the old rule kept closed.
            return self._source.by_folder and self._opens(self._indexed_own(note), read.lists)

        return finder.take(inode, read.path, read, follow=follow)

    def _read_candidate(self, path: bytes) -> ReadNote | None:
        try:
            read = self._reader.read(self._root, path)
        except NoteError:
            return None  # it is tried again, and recorded, when its rows are to be made
        self.found.hashed.add(path)
        return read

    def _rename(self, note: Known, read: ReadNote, parents: tuple[int, ...]) -> None:
        live = self._stores.lists.ids(read.lists)
        own = set(live)
        same_text = read.state.content_hash == note.content_hash
        if self._source.by_folder and self._opens(self._indexed_own(note), read.lists):
            self.found.narrowed.append((note, Narrowed(self._indexed_own(note), live)))
            own |= set(self._indexed_own(note))
        else:
            self.found.released += [note.note_id] if note.note_id in self._stores.narrow else []
            own |= set() if same_text else set(self._indexed_own(note))
        if same_text:
            self.found.verified.append((note, read.state, tuple(sorted(own))))
        self.found.renamed.append((note, read.path))
        self._want(note, read.path.rpartition(b"/")[0], {*parents, *own})
        self.found.jobs.append(Job(read.path, note, as_move=True))

    def _opens(self, old: Sequence[int], new: tuple[AccessList, ...]) -> bool:
        """Whether a rename would let anybody in whom the old rule kept out."""
        before = tuple(stored(self._stores.conn, old).values())
        return opens(self._directory, before, new)
