"""The embedded server's files: state folder, data, socket and log folders, settings, first creation."""

import errno
import os
import pwd
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import make_conninfo

from db.binaries import SERVER_MAJOR, program
from db.bootstrap import ADMIN
from db.isolation import Isolation, Runner
from db.serverconf import host_rules, identity_map, server_settings
from notewarden.display import printable
from notewarden.errors import ConfigError, DatabaseUnavailable

# A Unix socket's path has 107 bytes and its end (man 7 unix).
_LONGEST_FOLDER = 107 - len("/.s.PGSQL.5432")
_RECORD = "socket-folder"
_MOST_LOG = 20_000  # characters
_HERE = "/proc/self/cwd"  # leads to the working folder even where those above it are closed to the account
# The server must outlive us and its number be known: a shell puts it in the background.
_LAUNCH = """printf '%s' "$1" >postgresql.conf && printf '%s' "$2" >pg_hba.conf &&
printf '%s' "$3" >pg_ident.conf || exit 1
shift 3
"$@" </dev/null >../server-log/start.log 2>&1 &
echo $!"""


@dataclass
class Cluster:
    """One server's place on disk. `socket` is the folder of its socket, `runner` who runs it."""

    state_dir: Path
    runner: Runner
    socket: Path

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.state_dir / "postgres"

    @property
    def log(self) -> Path:
        """The folder of the server's own log."""
        return self.state_dir / "server-log"

    def dsn(self, role: str, database: str) -> str:
        """The connection string; the client also checks that the server runs as the account it should."""
        account = _name_of(self.runner.uid)
        return make_conninfo(
            host=str(self.socket), port=5432, user=role, dbname=database, requirepeer=account or None
        )

    def launch(self, alive: int) -> int:
        """Start the server process in the background and return its id; it may still fail.

        `alive` is the locked file descriptor that it inherits (db.postmaster).
        """
        settings = server_settings(self.socket_setting())
        values = [settings, host_rules(), identity_map(self.runner.peer)]
        command: list[str | bytes | Path] = [program("postgres"), "-D", _HERE]
        done = self.runner.run(["/bin/sh", "-c", _LAUNCH, "sh", *values, *command], self.data, (alive,))
        if done.returncode != 0 or not done.stdout.strip().isdigit():
            raise DatabaseUnavailable(
                f"The embedded database's settings cannot be written in {self.data}; check disk and owner."
            )
        return int(done.stdout)

    def socket_setting(self) -> str:
        """The socket's folder as the server names it: relative where it can be, so no path is too long."""
        own = self.socket == self.state_dir / "socket"
        return "../socket" if own else str(self.socket)

    def why(self, what: str, output: str) -> str:
        """One sentence from what the server's programs wrote."""
        lines = [line for line in output.splitlines() if line.strip()]
        told = [line for line in lines if "FATAL" in line or "error" in line] or lines or ["nothing"]
        last = printable(told[-1].strip())
        return f"The embedded database {what} in {self.state_dir}; the server's programs said: {last}"

    def start_log(self) -> str:
        """What the server wrote before it was ready."""
        try:
            fd = os.open(self.log / "start.log", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return ""
        with open(fd, errors="replace") as file:
            return file.read(_MOST_LOG)


def open_cluster(state_dir: Path, runner: Runner) -> Cluster:
    """Create or check the state folder. Raises ConfigError when it is not ours alone, or cannot be made."""
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        state_dir = state_dir.resolve(strict=True)
    except OSError as error:
        raise ConfigError(f"The state folder {state_dir} cannot be made: {error.strerror}.") from error
    _require_ours(state_dir)
    return Cluster(state_dir, runner, state_dir / "socket")


def _require_ours(folder: Path) -> None:
    info = folder.stat()
    if info.st_uid != os.geteuid():
        owner = _name_of(info.st_uid) or f"uid {info.st_uid}"
        raise ConfigError(
            f"The state folder {folder} belongs to {owner}; run as that account, or set another state_dir."
        )
    if not stat.S_IMODE(info.st_mode) & 0o077:
        return
    known = (folder / "server.lock").exists()
    if not known and any(folder.iterdir()):
        raise ConfigError(
            f"The state folder {folder} is open to other accounts and holds files; "
            f"make it private with `chmod 700`, or set another state_dir."
        )
    if not known:
        folder.chmod(0o700)


def prepare(cluster: Cluster) -> None:
    """Before a start, under the mutex: folders with owner and mode, data at first use, the socket's place.

    Raises ConfigError for data of another PostgreSQL, DatabaseUnavailable when initdb fails.
    """
    runner, state = cluster.runner, cluster.state_dir
    if runner.isolation is Isolation.ACCOUNT:
        os.chown(state, -1, runner.gid)
        state.chmod(0o710)  # the account passes through, and reads only what is its own
    else:
        state.chmod(0o700)
    for folder in (cluster.log, state / "socket"):
        _own_folder(folder, runner)
    make_data(cluster)
    cluster.socket = _place_socket(state, runner)


def _own_folder(folder: Path, runner: Runner) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise ConfigError(f"{folder} is not a folder; remove it.")
    if info.st_uid != runner.uid:
        _adopt(folder, runner)
    folder.chmod(0o700)


def _adopt(folder: Path, runner: Runner) -> None:
    """Give a tree to the account that now runs the server, after the way it is set apart has changed."""
    for _, folders, names, fd in os.fwalk(folder, follow_symlinks=False):
        os.fchown(fd, runner.uid, runner.gid)
        for name in (*folders, *names):
            os.chown(name, runner.uid, runner.gid, dir_fd=fd, follow_symlinks=False)


def make_data(cluster: Cluster) -> None:
    """Make the data folder at first use. Raises ConfigError for data of another PostgreSQL."""
    if not cluster.data.exists():
        _initdb(cluster)
    _own_folder(cluster.data, cluster.runner)
    try:
        version = (cluster.data / "PG_VERSION").read_text().strip()
    except OSError:
        raise ConfigError(f"{cluster.data} is no database of ours; move it away.") from None
    if version != SERVER_MAJOR:
        raise ConfigError(
            f"{cluster.data} was made by PostgreSQL {version}, this is {SERVER_MAJOR}; move it away and run "
            "`notewarden sync` to index again."
        )


def _initdb(cluster: Cluster) -> None:
    """Make the data beside its place and move it there whole, so that a kill leaves nothing half."""
    new = cluster.state_dir / "postgres.new"
    _remove(new)
    new.mkdir(mode=0o700)
    if new.stat().st_uid != cluster.runner.uid:  # a service may not be allowed the call at all
        os.chown(new, cluster.runner.uid, cluster.runner.gid)
    options = ["-E", "UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    options += ["--data-checksums", "--auth=peer", "--no-instructions", "-U", ADMIN]
    done = cluster.runner.run([program("initdb"), "-D", _HERE, *options], new)
    if done.returncode != 0:
        raise DatabaseUnavailable(cluster.why("could not be made", done.stderr.decode(errors="replace")))
    new.rename(cluster.data)
    _sync_folder(cluster.state_dir)


def _remove(folder: Path) -> None:
    """Remove what a killed initdb left, which may be taking its own files away at this very moment."""
    for _ in range(100):
        try:
            if folder.exists():
                shutil.rmtree(folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise
            time.sleep(0.02)
    shutil.rmtree(folder)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _place_socket(state_dir: Path, runner: Runner) -> Path:
    """The socket's folder: in the state folder, or a short private one where its path would not fit."""
    own = state_dir / "socket"
    record = state_dir / _RECORD
    if _fits(own):
        record.unlink(missing_ok=True)
        return own
    recorded = Path(record.read_text().strip()) if record.is_file() else None
    if recorded and is_private(recorded, runner.uid):
        return recorded
    short = Path(tempfile.mkdtemp(prefix="notewarden-", dir=_short_parent(runner)))  # made 0700
    os.chown(short, runner.uid, runner.gid)
    new = record.with_suffix(".new")
    new.write_text(f"{short}\n")
    new.replace(record)
    return short


def _fits(folder: Path) -> bool:
    """Whether a socket in `folder` can be named to libpq, which splits hosts at commas and has 107 bytes."""
    raw = os.fsencode(folder)
    return (
        len(raw) <= _LONGEST_FOLDER and raw.isascii() and folder.as_posix().isprintable() and b"," not in raw
    )


def _short_parent(runner: Runner) -> str:
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if runner.isolation is Isolation.SELF and given:
        path = Path(given)
        if path.is_absolute() and _fits(path / "notewarden-12345678") and is_private(path, runner.uid):
            return given
    return "/tmp"  # noqa: S108 - mkdtemp makes a 0700 folder there, and the sticky bit keeps it ours


def is_private(folder: Path, uid: int) -> bool:
    """Whether `folder` is a real folder, not a link, of `uid` alone."""
    try:
        info = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == uid and not stat.S_IMODE(info.st_mode) & 0o077


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""
