"""Whole columns from and to Postgres: integer arrays in binary form are numpy arrays, without a loop."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection, Cursor
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
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


class _Integers:
    """Integers to be sent as one array; those that its type cannot hold are the caller's fault."""

    def __init__(self, values: Sequence[int] | NDArray[np.int64]) -> None:
        self.values = np.asarray(values, dtype=np.int64)


class Int2s(_Integers):
    """A smallint[]."""


class Int4s(_Integers):
    """An int[]."""


class Int8s(_Integers):
    """A bigint[]."""


class _IntegersDumper(Dumper):
    format = Format.BINARY
    width: int
    element: int

    def dump(self, obj: _Integers) -> bytes:
        """Return what PostgreSQL's array_recv reads."""
        count = len(obj.values)
        if not count:
            return struct.pack(">iii", 0, 0, self.element)
        form = np.dtype([("length", ">i4"), ("value", f">i{self.width}")])
        rows = np.empty(count, dtype=form)
        rows["length"], rows["value"] = self.width, obj.values
        return struct.pack(">iiiii", 1, 0, self.element, count, 1) + rows.tobytes()


def register_integers(conn: Connection[Any]) -> None:
    """Let `conn` send Int2s, Int4s and Int8s."""
    types = conn.adapters.types
    for kind, name, width in ((Int2s, "int2", 2), (Int4s, "int4", 4), (Int8s, "int8", 8)):
        values = {"oid": types[name].array_oid, "element": types[name].oid, "width": width}
        conn.adapters.register_dumper(kind, type(kind.__name__, (_IntegersDumper,), values))
