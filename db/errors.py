"""The one place where the driver's errors become ours.

A driver's message may quote values, hence note text. Only the SQLSTATE and the constraint's name are taken
from it; the driver's error stays reachable as ``__context__`` but is kept out of tracebacks and logs.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors as pg

from notewarden.errors import DatabaseUnavailable, LimitReached, NotewardenError


class DatabaseFault(NotewardenError):
    """The database refused a statement."""

    def __init__(
        self, message: str = "", *, sqlstate: str | None = None, constraint: str | None = None
    ) -> None:
        super().__init__(message or str(type(self).__doc__).splitlines()[0])
        self.sqlstate = sqlstate
        self.constraint = constraint


class Conflict(DatabaseFault):
    """A row with this key stands already, or one it refers to does not."""


class TryAgain(DatabaseFault):
    """Another transaction was in the way; the same one may succeed when it is tried again."""


class NotPermitted(DatabaseFault):
    """The database role may not do this."""


# psycopg raises these for a server that is gone, is stopping, is full, or that nobody can reach.
_UNAVAILABLE = ("08", "53", "57P", "58", "28", "3D")
_CANCELLED = "57014"  # by the limit that statements of a question have, or by an admin
_TRY_AGAIN = ("40001", "40P01", "55P03")


def translate(error: psycopg.Error) -> NotewardenError:
    """Our error for a driver's error, made of SQLSTATE and constraint name alone."""
    state = error.sqlstate
    constraint = error.diag.constraint_name if state else None
    if state is None or state.startswith(_UNAVAILABLE):
        return _unavailable(error, state)
    if state == _CANCELLED:
        return LimitReached(
            "The database worked on this for too long and was stopped; ask within a --folder or with fewer "
            "words, or try again later."
        )
    words = f"SQLSTATE {state}" + (f", constraint {constraint}" if constraint else "")
    if state in _TRY_AGAIN:
        return TryAgain(f"Another transaction was in the way ({words}); try again.", sqlstate=state)
    kind: type[DatabaseFault] = DatabaseFault
    if state.startswith("23"):
        kind = Conflict
    elif state == "42501":
        kind = NotPermitted
    return kind(f"The database refused a statement ({words}).", sqlstate=state, constraint=constraint)


def _unavailable(error: psycopg.Error, state: str | None) -> NotewardenError:
    if state is None and not isinstance(error, psycopg.OperationalError):
        return DatabaseFault(f"The database driver reported {type(error).__name__}.")
    if isinstance(error, pg.DiskFull):
        return DatabaseUnavailable("The database's disk is full; make room on it and try again.")
    if isinstance(error, pg.TooManyConnections):
        return DatabaseUnavailable("The database has no connection left; end other programs that use it.")
    if state is not None and state.startswith(("28", "3D")):
        return DatabaseUnavailable(
            f"The database let us in neither by account nor by name (SQLSTATE {state}); check [database] url."
        )
    code = f" (SQLSTATE {state})" if state else ""
    return DatabaseUnavailable(
        f"The database cannot be reached{code}; check that it runs and [database] url."
    )


@contextmanager
def our_errors() -> Iterator[None]:
    """Raise ours in place of any psycopg error of the block."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from None
