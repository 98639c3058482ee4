"""A new generation takes over: the notes that waited for this moment and the switch are one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from db import generations, runs
from db.errors import DatabaseFault
from indexer.context import Run, Waiting
from notewarden.errors import EmbeddingFailed


class _NotYet(Exception):
    """The database refused a waiting note; everything is rolled back."""

    def __init__(self, one: Waiting, error: DatabaseFault) -> None:
        super().__init__()
        self.one = one
        self.error = error


def take_over(run: Run, *, ready: bool) -> None:
    """Let the run's generation serve if everything else is `ready`; else let the changed notes wait on.

    Until the switch their old text serves, to those who pass the old policy and the live one.
    """
    failed = _failures(run.waiting) if ready else []
    if ready and not failed and _switched(run):
        for one in run.waiting:
            one.saved()
        return
    for one in run.waiting:
        if one not in failed:
            one.wait()
    for one in run.waiting:
        one.recount()


def _failures(waiting: Sequence[Waiting]) -> list[Waiting]:
    """Embed them all; returns those for which that failed, until the model fails altogether."""
    failed = []
    for one in waiting:
        try:
            one.embed()
        except EmbeddingFailed as error:
            failed.append(one)
            if not error.permanent:
                break
    return failed


def _switched(run: Run) -> bool:
    try:
        with run.conn.transaction():
            runs.commit_now(run.conn)
            for one in run.waiting:
                _save(one)
            generations.switch(run.conn, run.generation_id)
    except _NotYet as refused:
        refused.one.wait(refused.error)
        return False
    return True


def _save(one: Waiting) -> None:
    try:
        one.save()
    except DatabaseFault as error:
        raise _NotYet(one, error) from None
