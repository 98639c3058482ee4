"""Keeps the graph index over the vectors: made when comparing every one would be slow, sampled for recall."""

from __future__ import annotations

from db import vectorindex
from db.errors import DatabaseFault
from db.pool import Connection
from notewarden.errors import DatabaseUnavailable
from notewarden.log import get_logger
from notewarden.settings_sections import SearchSettings

_log = get_logger(__name__)

ENOUGH = 0.97
"""The recall of the exact top ten below which `status` advises to compare more exactly."""

_CHANGED = 0.1  # part of the chunks by which their number must differ before recall is sampled again
_SLACK = 0.8  # of exact_limit: an index is not dropped and made again at each note that comes and goes


def tend(conn: Connection, options: SearchSettings) -> None:
    """Make, keep or drop the index of the serving generation as its size and the configuration ask for."""
    serving = vectorindex.serving(conn)
    if serving is None:
        return
    generation_id, dimension = serving
    chunks = vectorindex.chunks(conn, generation_id)
    stands = vectorindex.exists(conn, generation_id)
    if options.exact_only or chunks <= options.exact_limit * (_SLACK if stands else 1.0):
        if stands:
            vectorindex.drop(conn, generation_id)
        return
    if not stands or not vectorindex.is_current(conn, generation_id):
        _log.info("making the index of vectors", chunks=chunks)
        if not _built(conn, generation_id, dimension):
            return
    recall = _sampled(conn, generation_id, chunks)
    if recall is not None and recall < ENOUGH:
        _log.warning(
            "the index of vectors misses passages; raise [search] exact_limit", recall=round(recall, 3)
        )


def _built(conn: Connection, generation_id: int, dimension: int) -> bool:
    """Make the index; where that fails the next run tries again, and the polls of this one still count."""
    for alone in (False, True):
        try:
            vectorindex.build(conn, generation_id, dimension, alone=alone)
            return True
        except (DatabaseFault, DatabaseUnavailable) as error:
            if conn.closed:
                raise
            _log.error("the index of vectors could not be made", alone=alone, reason=str(error))
    return False


def _sampled(conn: Connection, generation_id: int, chunks: int) -> float | None:
    """Return the recall if it had to be sampled again."""
    last = vectorindex.last_check(conn, generation_id)
    if last is not None and abs(chunks - last.chunks) <= _CHANGED * last.chunks:
        return None
    return vectorindex.check(conn, generation_id)
