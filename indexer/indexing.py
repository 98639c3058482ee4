"""The text half of a poll: cut, embed and store, one note at a time.

Embedding happens before the transaction. A note that fails is recorded and costs no other note anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TypeVar

from db import ledger, shares
from db.chunkrows import NewChunk, Vector
from db.errors import DatabaseFault, TryAgain
from db.notes import About, Guard, NewNote
from indexer.chunking import Chunk, ChunkedNote, chunk
from indexer.context import Progress, Run
from indexer.held import Held
from indexer.reading import NoteGone, ReadNote
from indexer.report import ShareReport
from indexer.sweep import Job, OpenShare, Stores
from indexer.vectors import Group, Made, Maker
from notewarden.errors import (
    EmbeddingFailed,
    NoteError,
    NoteSkipped,
    NoteUnreadable,
    NotewardenError,
    ShareUnavailable,
)
from notewarden.log import get_logger
from notewarden.settings_sections import ShareSettings
from notewarden.terms import count_terms, detect_language

_log = get_logger(__name__)
_T = TypeVar("_T")

BATCH_TEXTS = 64
BATCH_NOTES = 32
PARK_AFTER = 3
FRUITLESS_RUNS = 3

# Cutting takes time in step with the text; beyond this it does not end.
_CUT_S, _CUT_BYTES_PER_S = 60.0, 20_000

# Changed notes that are kept in memory until a new generation takes over.
_HELD_BYTES = 32_000_000

_STOPPED = (
    f"in {FRUITLESS_RUNS} runs in a row the embedding model did nothing; until one text gets through, "
    "no others are tried"
)


class _NotAsked(EmbeddingFailed):
    """The model failed before in this run, so it was not asked."""


@dataclass(frozen=True)
class Prepared:
    """A note that was read and cut, waiting for its vectors; `groups` are its chunks as they are embedded."""

    job: Job
    read: ReadNote
    cut: ChunkedNote
    groups: tuple[Group, ...]

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys of its chunks, in order."""
        return tuple(one.key for group in self.groups for one in group)


class Indexing:
    """Works through the jobs of one share."""

    def __init__(
        self, run: Run, share: ShareSettings, opened: OpenShare, stores: Stores, report: ShareReport
    ) -> None:
        self._run = run
        self._settings = share
        self._opened = opened
        self._stores = stores
        self._report = report
        self._maker = Maker(run, stores.notes)
        self._guards: Mapping[bytes, tuple[int, ...]] = {}
        self._refused: str | None = None
        self._waiting: list[bytes] = []
        self._held_bytes = 0
        self._saved = 0
        self._done = 0
        self.hashed: set[bytes] = set()

    def work(self, jobs: Sequence[Job], guards: Mapping[bytes, tuple[int, ...]]) -> None:
        """Make the rows of each job's note, in this order. `guards` are the parents' list ids by folder.

        After runs that got nothing from the model one text is tried first, and the rest only if it gets
        through.
        """
        self._guards = guards
        batch: list[Prepared] = []
        for number, job in enumerate(jobs):
            if self._run.stopped():
                break
            if self._is_hopeless():
                self._waiting += [one.path for one in jobs[number:]]
                self._refused = _STOPPED
                break
            prepared = self._prepare(job)
            if prepared is not None and not self._holds(prepared):
                batch.append(prepared)
            if self._is_full(batch):
                self._finish(batch, len(jobs))
                batch = []
        self._finish(batch, len(jobs))
        ledger.wait(self._run.conn, self._stores.share_id, self._waiting, self._refused or "")
        if self._saved:
            shares.embedded(self._run.conn, self._stores.share_id)

    def _is_probing(self) -> bool:
        return self._run.tries.fruitless >= FRUITLESS_RUNS and not self._run.report.chunks_embedded

    def _is_hopeless(self) -> bool:
        return self._is_probing() and self._run.tries.asked > 0

    def _is_full(self, batch: Sequence[Prepared]) -> bool:
        if batch and self._is_probing():
            return True
        return len(batch) >= BATCH_NOTES or sum(len(one.keys) for one in batch) >= BATCH_TEXTS

    def _prepare(self, job: Job) -> Prepared | None:
        try:
            return self._cut(job)
        except NoteGone:
            return None  # the next poll finds it missing
        except NoteSkipped as error:
            self._skip(job, error)
        except NoteUnreadable as error:
            self._trouble(job, "unreadable", error.reason)
        except NoteError as error:
            self._trouble(job, "pending", error.reason)
        return None

    def _cut(self, job: Job) -> Prepared | None:
        read = self._opened.reader.read(self._opened.root, job.path)
        self.hashed.add(job.path)
        settings, budget = self._settings, self._run.max_tokens
        try:
            cut = self._opened.patience.call(
                lambda: chunk(read.raw, job.path, max_tokens=budget, max_chunks=settings.max_chunks),
                limit_s=_CUT_S + len(read.raw) / _CUT_BYTES_PER_S,
                breakable=True,
            )
        except NoteSkipped as error:
            error.hint = read.state.hint if read.state.hint_trusted else None  # type: ignore[attr-defined]
            raise
        except (NoteError, ShareUnavailable):
            raise
        except Exception as error:  # one poison note never costs another
            _log.warning(
                "cutting failed", path=job.path.decode("utf-8", "backslashreplace"), kind=type(error).__name__
            )
            self._trouble(
                job,
                "pending",
                "cutting it into chunks did not end"
                if isinstance(error, TimeoutError)
                else f"cutting it into chunks failed ({type(error).__name__})",
                read=read,
                permanent=True,
            )
            return None
        return Prepared(job, read, cut, tuple(self._maker.groups(cut.chunks)))

    def _finish(self, batch: list[Prepared], total: int, *, sent: bool = False) -> None:
        """Embed and store; `sent`: these texts were sent to the model before, among others."""
        if not batch:
            return
        try:
            made = self.vectors(batch)
        except EmbeddingFailed as error:
            self._after_failure(batch, total, error, sent=sent)
            return
        self._save(batch, made)
        self._tell(len(batch), total)

    def _holds(self, one: Prepared) -> bool:
        """Keep a changed note for the moment when the generation that is built takes over.

        Its old rows serve on until then, to those who pass the old policy and the live one: stored now, its
        new text would be nowhere, since the model that serves cannot be asked any more.
        """
        note = one.job.note
        if self._run.serving or note is None or note.content_hash == one.read.state.content_hash:
            return False
        self._held_bytes += len(one.read.raw)
        if self._held_bytes > _HELD_BYTES:
            return False
        self._run.waiting.append(Held(self, one))
        return True

    def _after_failure(
        self, batch: list[Prepared], total: int, error: EmbeddingFailed, *, sent: bool
    ) -> None:
        """Try a failed batch note by note: one poison note costs no other. A refusal ends the run's tries."""
        asked = not isinstance(error, _NotAsked)
        if len(batch) > 1:
            for one in batch:
                self._finish([one], total, sent=sent or asked)
            return
        if asked or sent:
            self.failed(batch[0], error)
        else:
            self._waiting.append(batch[0].job.path)
        self._tell(1, total)

    def failed(self, one: Prepared, error: EmbeddingFailed) -> None:
        """Record that the model refused a note, or failed."""
        if not error.permanent:
            self._refused = str(error)
        self._trouble(one.job, "pending", str(error), read=one.read, permanent=error.permanent)

    def vectors(self, batch: Sequence[Prepared]) -> Made:
        """Return the vectors of all chunks of these notes. Raises EmbeddingFailed."""
        keys = [key for one in batch for key in one.keys]
        made = self._maker.known(keys)
        missing = self._maker.missing([group for one in batch for group in one.groups], made)
        count = sum(map(len, missing))
        if missing:
            if self._refused is not None:
                raise _NotAsked(self._refused)
            self._run.tries.asked += 1
            self._maker.fill(made, missing)
            self._run.report.chunks_embedded += count
        self._run.report.chunks_reused += len(keys) - count
        return made

    def _save(self, batch: Sequence[Prepared], made: Made) -> None:
        rows = [(one, self._tried(one, partial(self.row, one, made))) for one in batch]
        self._stores.notes.expect([row for _, row in rows if row is not None])
        for one, row in rows:
            if row is not None:
                self._tried(one, partial(self._store_and_count, one, row, made))

    def _tried(self, one: Prepared, step: Callable[[], _T]) -> _T | None:
        """Do a step for one note; where that fails it is recorded, and costs no other note anything."""
        try:
            return step()
        except DatabaseFault as error:
            self.refused(one, error)
        except NotewardenError:
            raise
        except Exception as error:  # one poison note never costs another
            reason = f"making its rows failed ({type(error).__name__})"
            self._trouble(one.job, "pending", reason, read=one.read, permanent=True)
        return None

    def _store_and_count(self, one: Prepared, row: NewNote, made: Made) -> None:
        self.store(row, made)
        self.count(one)

    def row(self, one: Prepared, made: Made) -> NewNote:
        """Return the note as it is to be stored; the ids of its lists are known from here on."""
        job, folder = one.job, one.job.path.rpartition(b"/")[0]
        own = set(self._stores.lists.ids(one.read.lists))
        if job.note is not None:
            own |= set(self._stores.kept_narrow(job.note.note_id))
        about = _about(one.cut)
        return NewNote(
            path=job.path,
            guard=Guard(self._guards[folder], tuple(sorted(own))),
            state=one.read.state,
            about=about,
            chunks=_new_chunks(one, made.vectors, about.language),
            note_id=None if job.note is None else job.note.note_id,
        )

    def store(self, note: NewNote, made: Made) -> None:
        """Store a note. Raises DatabaseFault; whatever it raises, what was learnt of ids is forgotten."""
        try:
            with self._maker.storing():
                note_id = self._stores.notes.save(self._run.generation_id, note)
                self._maker.store(note_id, made, [chunk.embed_key for chunk in note.chunks])
        except Exception:  # a word whose id went with the transaction would be found in no later note
            self._stores.notes.forget()
            raise

    def refused(self, one: Prepared, error: DatabaseFault) -> None:
        """Record that the database refused a note."""
        for_good = not isinstance(error, TryAgain)
        self._trouble(one.job, "pending", str(error), read=one.read, permanent=for_good)

    def count(self, one: Prepared) -> None:
        """Count a stored note in the report."""
        self._saved += 1
        job, read = one.job, one.read
        if job.note is None:
            self._report.added += 1
        elif not job.as_move and read.state.content_hash != job.note.content_hash:
            self._report.changed += 1

    @property
    def share(self) -> ShareReport:
        """The report of the share it works on."""
        return self._report

    def wait(self, paths: Sequence[bytes], reason: str) -> None:
        """Record notes that wait although nothing is wrong with them."""
        ledger.wait(self._run.conn, self._stores.share_id, paths, reason)

    def recount(self) -> None:
        """Let the report say what stands in the ledger now."""
        found = ledger.of_share(self._run.conn, self._stores.share_id).values()
        self._report.pending = sum(one.state == "pending" for one in found)
        self._report.parked = sum(one.state == "parked" for one in found)

    def tidy(self) -> None:
        """Forget audiences that the last notes left."""
        self._stores.notes.forget()
        self._stores.audiences.drop_empty()

    def _skip(self, job: Job, error: NoteSkipped) -> None:
        hint = getattr(error, "hint", None)
        ledger.record(self._run.conn, self._stores.share_id, job.path, ("skipped", error.reason), hint)
        if job.note is not None:  # never half of it: what was indexed is no longer what stands there
            self._stores.notes.delete([job.note.note_id])

    def _trouble(
        self,
        job: Job,
        state: ledger.State,
        reason: str,
        *,
        read: ReadNote | None = None,
        permanent: bool = False,
    ) -> None:
        hint = read.state.hint if read is not None and read.state.hint_trusted else None
        share_id = self._stores.share_id
        times = ledger.record(self._run.conn, share_id, job.path, (state, reason), hint, permanent=permanent)
        if permanent and times >= PARK_AFTER:
            ledger.park(self._run.conn, share_id, job.path)

    def _tell(self, notes: int, total: int) -> None:
        self._done += notes
        embedded = self._run.report.chunks_embedded
        self._run.progress(Progress(self._settings.name, self._done, total, embedded))


def _about(cut: ChunkedNote) -> About:
    language = cut.language or detect_language("\n".join(one.text for one in cut.chunks[:20]))
    return About(cut.title, cut.encoding, language, _day(cut.date), cut.status or "", cut.tags)


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text[:10]) if text else None
    except ValueError:
        return None


def _new_chunks(one: Prepared, vectors: dict[bytes, Vector], language: str) -> tuple[NewChunk, ...]:
    return tuple(
        NewChunk(
            seq=piece.seq,
            heading=piece.heading,
            lines=(piece.first_line, piece.last_line),
            span=(piece.start, piece.end),
            content=piece.text,
            embed_key=key,
            terms=_terms(piece, language),
            vector=vectors[key],
        )
        for key, piece in zip(one.keys, one.cut.chunks, strict=True)
    )


def _terms(piece: Chunk, language: str) -> Counter[str]:
    return count_terms("\n".join((piece.embedded, *piece.headings_inside)), language)
