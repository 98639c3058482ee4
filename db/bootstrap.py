"""What the embedded server holds before any migration: two roles, one database, the extension vector."""

from typing import Any

import psycopg

from db.errors import our_errors
from db.queries import load

ADMIN = "notewarden_admin"  # the bootstrap superuser; nothing but this module connects as it
_MARK = "notewarden bootstrap 1"

Connection = psycopg.Connection[Any]


def is_bootstrapped(conn: Connection) -> bool:
    """Whether a bootstrap of this edition ran to its end. `conn` is the admin's, in database postgres."""
    with our_errors():
        row = conn.execute(load("bootstrap").is_done, {"mark": _MARK}).fetchone()
    return bool(row and row[0])


def bootstrap(conn: Connection, inside: str) -> None:
    """Make whatever is missing; harmless to repeat.

    `conn` is the admin's in database postgres, in autocommit; `inside` connects it to database notewarden.
    """
    queries = load("bootstrap")
    with our_errors():
        conn.execute(queries.create_roles)
        row = conn.execute(queries.has_database).fetchone()
        if not (row and row[0]):
            conn.execute(queries.create_database)
        furnish(inside)
        conn.execute(queries.leave_mark)


def furnish(inside: str) -> None:
    """Extension and privileges of the database that the connection string `inside` leads the admin to."""
    with our_errors(), psycopg.connect(inside, autocommit=True) as conn:
        conn.execute(load("bootstrap").furnish_database)
