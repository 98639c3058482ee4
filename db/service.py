"""`notewarden-database`: the packaged PostgreSQL as the team's server, run by an account of its own.

The embedded server belongs to one account; here the indexer and the answerer are two. So the server runs as
a third, on a Unix socket that its group may open, and an identity map says which account may be which role.
There is no TCP and no password.
"""

from __future__ import annotations

import argparse
import os
import pwd
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from db.binaries import program
from db.bootstrap import ADMIN, bootstrap
from db.cluster import Cluster, make_data
from db.errors import our_errors
from db.isolation import Isolation, Runner
from db.serverconf import host_rules, server_settings
from notewarden.display import printable
from notewarden.errors import ConfigError, DatabaseUnavailable, NotewardenError

_PATIENCE_S = 300.0
_PAUSE_S = 0.2
_INDEXERS = ("root", "notewarden")
_ANSWERER = "notewarden-answerer"


@dataclass(frozen=True)
class Place:
    """Where the server lives: `state` its files, `socket` the folder of its socket."""

    state: Path
    socket: Path

    def dsn(self, database: str) -> str:
        """The connection string of the server's own account."""
        return make_conninfo(host=str(self.socket), port=5432, user=ADMIN, dbname=database)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server in place of this process, or wait for it and furnish it; returns the exit code."""
    parser = argparse.ArgumentParser("notewarden-database", description=__doc__)
    parser.add_argument("action", choices=["run", "wait"], help="be the server; wait until it can be used")
    parser.add_argument("--state", type=Path, default=Path("/var/lib/notewarden-database"))
    parser.add_argument("--socket", type=Path, default=Path("/run/notewarden-database"))
    options = parser.parse_args(arguments)
    place = Place(options.state, options.socket)
    try:
        run(place) if options.action == "run" else wait(place)
    except NotewardenError as error:
        print(f"notewarden-database: {printable(str(error))}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


def run(place: Place) -> None:
    """Make the data at first use, write the settings, become the server. Raises ConfigError as root."""
    account = pwd.getpwuid(os.geteuid())
    if account.pw_uid == 0:
        raise ConfigError("PostgreSQL does not run as root; run it as the account notewarden-database.")
    runner = Runner(Isolation.SELF, account.pw_uid, account.pw_gid, account.pw_name, account.pw_name)
    cluster = Cluster(place.state, runner, place.socket)
    cluster.log.mkdir(mode=0o700, exist_ok=True)
    make_data(cluster)
    (cluster.data / "postgresql.conf").write_text(settings(place))
    (cluster.data / "pg_hba.conf").write_text(host_rules())
    (cluster.data / "pg_ident.conf").write_text(accounts(account.pw_name))
    server = os.fspath(program("postgres"))
    os.chdir(cluster.data)
    os.execv(server, [server, "-D", os.fspath(cluster.data)])  # noqa: S606 - it takes our place on purpose


def wait(place: Place) -> None:
    """Wait until the server answers, then see to it that roles, database and extension stand."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with our_errors(), psycopg.connect(place.dsn("postgres"), autocommit=True) as conn:
                bootstrap(conn, place.dsn("notewarden"))
        except DatabaseUnavailable:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def settings(place: Place) -> str:
    """postgresql.conf: that of the embedded server, its socket open to the account's own group."""
    return server_settings(str(place.socket)) + "unix_socket_permissions = 0770\n"


def accounts(own: str) -> str:
    """pg_ident.conf: which account of the machine may be which role."""
    lines = [f'ours "{own}" {ADMIN}']
    for name in _INDEXERS:
        lines += [f'ours "{name}" notewarden', f'ours "{name}" notewarden_reader']
    lines.append(f'ours "{_ANSWERER}" notewarden_reader')
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
