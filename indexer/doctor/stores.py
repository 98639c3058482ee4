"""What doctor looks at in the database."""

from __future__ import annotations

import time

from db import migrate, requests, shares
from db.binaries import program
from db.pool import Database
from indexer.doctor.report import Check
from notewarden.errors import ConfigError
from notewarden.settings import Settings

_MOST_APART_S = 5.0


def programs() -> Check:
    """The packaged PostgreSQL is installed."""
    return Check("embedded database's programs", True, f"{program('postgres')}")


def opened(settings: Settings) -> Database:
    """Open the database without changing it, apart from starting the embedded server."""
    return Database.open(settings, migrate=None)


def embedded_hint(settings: Settings) -> str:
    """What embedded mode does not protect from, "" for a server."""
    if settings.database.url != "embedded":
        return ""
    return "It keeps the index from other accounts, not the notes from the account that owns it."


def server(database: Database) -> Check:
    """Version, encoding and the extension vector."""
    with database.owner() as conn:
        migrate.check_server(conn)
        version, vector = migrate.server_versions(conn)
    return Check("database server", True, f"PostgreSQL {version} with pgvector {vector}.")


def schema(database: Database) -> Check:
    """The schema is the one of this version."""
    with database.owner() as conn:
        migrate.check_schema(conn)
    return Check("database schema", True, f"Version {len(migrate.migrations())}, the newest.")


def reader(database: Database) -> Check:
    """Answers are read by a role that row security binds."""
    with database.reader():
        return Check("reader role", True, "Row security binds the role that answers are read by.")


def clock(database: Database) -> Check:
    """This machine and the database agree on the time: the age of permissions goes by the database's."""
    with database.owner() as conn:
        apart = abs(shares.clock(conn).timestamp() - time.time())
    if apart > _MOST_APART_S:
        raise ConfigError(
            f"The database's clock and this machine's are {apart:.0f} s apart; run a time service on both."
        )
    return Check("database clock", True, "Agrees with this machine's.")


def daemon(database: Database, settings: Settings) -> Check:
    """Whether something polls."""
    with database.owner() as conn:
        holder = requests.daemon(conn)
    if holder is None:
        hint = "Start it: `systemctl enable --now notewarden`, or poll by a timer."
        return Check("daemon", True, "None runs; the index is as old as the last `notewarden sync`.", hint)
    return Check("daemon", True, f"{holder.name}, polls every {settings.schedule.poll}.")
