"""Writing what a sweep found: permissions first, then moves, deletes and the ledger."""

from __future__ import annotations

from db import ledger, runs
from db.notes import Known
from indexer.deletes import judge
from indexer.policies import Policies
from indexer.report import ShareReport
from indexer.sweep import Stores, Verdicts
from notewarden.settings_sections import DeletesSettings


class Applier:
    """Writes a sweep's verdicts. Must run inside one transaction."""

    def __init__(self, stores: Stores, rules: DeletesSettings, report: ShareReport) -> None:
        self._stores = stores
        self._rules = rules
        self._report = report

    def apply(self, found: Verdicts, in_share: int) -> None:
        """Apply permissions first, then what follows from them."""
        notes = self._stores.notes
        for note, path in found.renamed:
            notes.rename(note.note_id, path)
        changed = Policies(self._stores.audiences).apply(found.wanted)
        if changed:
            runs.commit_now(self._stores.conn)
        elsewhere = {note.note_id for note, _ in found.renamed} | {note.note_id for note in found.gone}
        self._report.acl_changed += len(changed - elsewhere)
        self._report.moved += len(found.renamed)
        for note, state, own in found.verified:
            notes.verified(note.note_id, state, own)
        for own, note_ids in found.relisted.items():
            notes.relist(note_ids, own)
        for note, kept in found.narrowed:
            notes.keep_narrow(note.note_id, kept)
        notes.found(found.back)
        if found.narrowed or found.released:
            notes.release_narrow(found.released)
            self._stores.narrow = notes.narrowed()
        self._forget_text(found.emptied)
        self._delete(found.gone, in_share)
        self._note_trouble(found)
        self._stores.audiences.drop_empty()

    def _forget_text(self, emptied: list[Known]) -> None:
        if emptied:
            self._stores.notes.delete([note.note_id for note in emptied])

    def _delete(self, gone: list[Known], in_share: int) -> None:
        before = {note_id: missing for note_id, _, missing in self._stores.notes.held()}
        verdict = judge({note.note_id: before.get(note.note_id, 0) for note in gone}, in_share, self._rules)
        if verdict.hold:
            self._stores.notes.hide(verdict.hold)
        if verdict.delete:
            self._stores.notes.delete(verdict.delete)
        self._report.deleted += len(verdict.delete)

    def _note_trouble(self, found: Verdicts) -> None:
        conn, share_id = self._stores.conn, self._stores.share_id
        waiting = {job.path for job in found.jobs} | found.settled  # their attempts go on being counted
        quiet = [note.path for note, _, _ in found.verified if note.path not in waiting]
        quiet += [note.path for note in found.gone]
        ledger.clear(conn, share_id, quiet)
        for path, state, reason, hint in found.trouble:
            ledger.record(conn, share_id, path, (state, reason), hint)
