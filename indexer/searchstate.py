"""What `status` tells of the search by vectors: by index or one by one, and how much the index finds."""

from __future__ import annotations

from typing import Any

from db import vectorindex
from db.pool import Connection
from indexer.output import moment
from indexer.vectortending import ENOUGH


def read_search(conn: Connection) -> dict[str, Any]:
    """Return the leg that askers of many notes are served by, and the last check of its recall."""
    serving = vectorindex.serving(conn)
    if serving is None or not vectorindex.exists(conn, serving[0]):
        return {"leg": "exact", "recall": None, "samples": 0, "checked_at": None}
    last = vectorindex.last_check(conn, serving[0])
    if last is None:
        return {"leg": "index", "recall": None, "samples": 0, "checked_at": None}
    return {
        "leg": "index",
        "recall": round(last.recall, 4),
        "samples": last.samples,
        "checked_at": moment(last.checked_at),
    }


def as_line(search: dict[str, Any]) -> str:
    """Return the same for people."""
    if search["leg"] == "exact":
        return "every vector is compared"
    if search["recall"] is None:
        return "by index, not checked yet"
    line = (
        f"by index for who reads much; it found {search['recall']:.1%} of the true ten nearest "
        f"({search['samples']} samples, {search['checked_at']})"
    )
    advice = "; raise [search] exact_limit, or set exact_only" if search["recall"] < ENOUGH else ""
    return line + advice
