"""Whole columns from Postgres: an integer array in binary form becomes a numpy array without a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection, Cursor
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

_HEADER = 20  # dimensions, flags, element type, length and lower bound (PostgreSQL's array_send)


class _IntegerArrays(Loader):
    """Loads one-dimensional arrays without nulls, as `array_agg` over a NOT NULL column makes them."""

    format = Format.BINARY
    width: int

    def load(self, data: Buffer) -> NDArray[np.int64]:
        raw = bytes(data)
        if len(raw) < _HEADER:
            return np.zeros(0, dtype=np.int64)
        form = np.dtype([("length", ">i4"), ("value", f">i{self.width}")])
        return np.frombuffer(raw, dtype=form, offset=_HEADER)["value"].astype(np.int64)


class _Int4Arrays(_IntegerArrays):
    width = 4


class _Int8Arrays(_IntegerArrays):
    width = 8


def array_cursor(conn: Connection[Any]) -> Cursor[Any]:
    """Return a binary cursor that gives int4[] and int8[] as int64 numpy arrays."""
    cursor = conn.cursor(binary=True)
    types = cursor.adapters.types
    cursor.adapters.register_loader(types["int4"].array_oid, _Int4Arrays)
    cursor.adapters.register_loader(types["int8"].array_oid, _Int8Arrays)
    return cursor
