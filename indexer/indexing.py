"""The text half of a poll: cut, embed and store, one note at a time.

Embedding happens before the transaction. A note that fails is recorded and costs no other note anything.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from db import ledger, shares
from db.errors import DatabaseFault
from db.notes import About, Guard, NewChunk, NewNote, Vector
from indexer.chunking import Chunk, ChunkedNote, chunk
from indexer.context import Progress, Run
from indexer.reading import NoteGone, ReadNote
from indexer.report import ShareReport
from indexer.sweep import Job, OpenShare, Stores
from notewarden.errors import EmbeddingFailed, NoteError, NoteSkipped, NoteUnreadable
from notewarden.log import get_logger
from notewarden.settings_sections import ShareSettings
from notewarden.terms import count_terms, detect_language

_log = get_logger(__name__)

BATCH_TEXTS = 64
BATCH_NOTES = 32
PARK_AFTER = 3


@dataclass(frozen=True)
class Prepared:
    """A note that was read and cut, waiting for its vectors; `keys` are those of its chunks, in order."""

    job: Job
    read: ReadNote
    cut: ChunkedNote
    keys: tuple[bytes, ...]


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
        self._guards: dict[bytes, tuple[int, ...]] = {}
        self._refused: str | None = None
        self._done = 0
        self.hashed: set[bytes] = set()

    def work(self, jobs: Sequence[Job], guards: dict[bytes, tuple[int, ...]]) -> None:
        """Make the rows of each job's note. `guards` are the parents' list ids by folder."""
        self._guards = guards
        batch: list[Prepared] = []
        for job in jobs:
            if self._run.stopped():
                break
            prepared = self._prepare(job)
            if prepared is not None:
                batch.append(prepared)
            if len(batch) >= BATCH_NOTES or sum(len(one.keys) for one in batch) >= BATCH_TEXTS:
                self._finish(batch, len(jobs))
                batch = []
        self._finish(batch, len(jobs))
        if jobs:
            shares.embedded(self._run.conn, self._stores.share_id)

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
            cut = chunk(read.raw, job.path, max_tokens=budget, max_chunks=settings.max_chunks)
        except NoteSkipped as error:
            error.hint = read.state.hint if read.state.hint_trusted else None  # type: ignore[attr-defined]
            raise
        except NoteError:
            raise
        except Exception as error:  # one poison note never costs another
            _log.warning(
                "cutting failed", path=job.path.decode("utf-8", "backslashreplace"), kind=type(error).__name__
            )
            self._trouble(
                job,
                "pending",
                f"cutting it into chunks failed ({type(error).__name__})",
                read=read,
                permanent=True,
            )
            return None
        return Prepared(job, read, cut, tuple(_key(one) for one in cut.chunks))

    def _finish(self, batch: list[Prepared], total: int) -> None:
        if not batch:
            return
        try:
            vectors = self._vectors(batch)
        except EmbeddingFailed as error:
            self._after_failure(batch, total, error)
            return
        for one in batch:
            self._save(one, vectors)
        self._tell(len(batch), total)

    def _after_failure(self, batch: list[Prepared], total: int, error: EmbeddingFailed) -> None:
        """Try a failed batch note by note: one poison note costs no other. A refusal ends the run's tries."""
        if len(batch) > 1:
            for one in batch:
                self._finish([one], total)
            return
        if not error.permanent:
            self._refused = str(error)
        self._trouble(batch[0].job, "pending", str(error), read=batch[0].read, permanent=error.permanent)
        self._tell(1, total)

    def _vectors(self, batch: Iterable[Prepared]) -> dict[bytes, Vector]:
        texts = {
            key: one.embedded for note in batch for key, one in zip(note.keys, note.cut.chunks, strict=True)
        }
        known = self._stores.notes.vectors(self._run.generation_id, texts)
        missing = [key for key in texts if key not in known]
        if missing:
            if self._refused is not None:
                raise EmbeddingFailed(self._refused)
            made = self._run.embedder.embed_documents([texts[key] for key in missing])
            known.update(zip(missing, np.asarray(made, dtype=np.float32), strict=True))
            self._run.report.chunks_embedded += len(missing)
        self._run.report.chunks_reused += sum(len(note.keys) for note in batch) - len(missing)
        return known

    def _save(self, one: Prepared, vectors: dict[bytes, Vector]) -> None:
        job, folder = one.job, one.job.path.rpartition(b"/")[0]
        own = set(self._stores.lists.ids(one.read.lists))
        if job.note is not None:
            own |= set(self._stores.kept_narrow(job.note.note_id))
        about = _about(one.cut)
        note = NewNote(
            path=job.path,
            guard=Guard(self._guards[folder], tuple(sorted(own))),
            state=one.read.state,
            about=about,
            chunks=_new_chunks(one, vectors, about.language),
            note_id=None if job.note is None else job.note.note_id,
        )
        try:
            self._stores.notes.save(self._run.generation_id, note)
        except DatabaseFault as error:
            self._stores.notes.forget()
            self._trouble(job, "pending", str(error), read=one.read, permanent=True)
        else:
            self._count(job, one.read)

    def _count(self, job: Job, read: ReadNote) -> None:
        if job.note is None:
            self._report.added += 1
        elif not job.as_move and read.state.content_hash != job.note.content_hash:
            self._report.changed += 1

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
        attempts = ledger.record(self._run.conn, share_id, job.path, (state, reason), hint)
        if permanent and attempts >= PARK_AFTER:
            ledger.park(self._run.conn, share_id, job.path)

    def _tell(self, notes: int, total: int) -> None:
        self._done += notes
        embedded = self._run.report.chunks_embedded
        self._run.progress(Progress(self._settings.name, self._done, total, embedded))


def _key(one: Chunk) -> bytes:
    return hashlib.sha256(one.embedded.encode("utf-8", "surrogatepass")).digest()


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
