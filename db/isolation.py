"""As whom the embedded server runs: PostgreSQL refuses root, and knows peers only by an account's name.

- An ordinary account runs it as itself.
- root, and an account without a name, run it in a user namespace that shows the caller as an existing
  unprivileged account. On disk all belongs to the caller. Inside, every other account of the machine, the
  borrowed one too, reads as the overflow uid, so peer authentication knows exactly one: the caller.
- Where namespaces are refused (default Docker), root runs it as that unprivileged account, which then owns
  the data and can read it.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from notewarden.errors import DatabaseUnavailable

_OVERFLOW = Path("/proc/sys/kernel/overflowuid")
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}  # no PG* variable of the caller's
_PREFERRED = ("notewarden", "daemon", "bin")


class Isolation(StrEnum):
    """How the server process is set apart."""

    SELF = "self"
    NAMESPACE = "namespace"
    ACCOUNT = "account"


@dataclass(frozen=True)
class Runner:
    """Runs programs as the server's account.

    `uid`, `gid`: who owns its files; `peer`: the name under which the server sees the caller;
    `shown`: the name of the account it runs as.
    """

    isolation: Isolation
    uid: int
    gid: int
    peer: str
    shown: str

    def run(
        self, command: Sequence[str | bytes | Path], cwd: Path, pass_fds: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `command` in folder `cwd` with a bare environment; output is captured, exit codes not checked.

        `pass_fds` are the file descriptors that it inherits beside the standard ones.

        The folder is entered before rights are dropped, so folders above it may be closed to the account.
        Raises DatabaseUnavailable when the account cannot run it.
        """
        drop = self.isolation is Isolation.ACCOUNT
        try:
            return subprocess.run(
                [*self._prefix(), *command],
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                pass_fds=pass_fds,
                capture_output=True,
                check=False,
                env=_ENVIRONMENT,
                umask=0o077,
                start_new_session=True,
                user=self.uid if drop else None,
                group=self.gid if drop else None,
                extra_groups=() if drop else None,
            )
        except OSError as error:
            raise DatabaseUnavailable(
                f"The account {self.shown} cannot run {os.fsdecode(command[0])}: {error.strerror}; install "
                "notewarden where every account may read, or set [database] url."
            ) from error

    def _prefix(self) -> tuple[str, ...]:
        if self.isolation is not Isolation.NAMESPACE:
            return ()
        account = pwd.getpwnam(self.shown)
        return (_unshare(), "-U", f"--map-user={account.pw_uid}", f"--map-group={account.pw_gid}", "--")

    def describe(self) -> str:
        """One sentence for people: who runs the server, and whom that shuts out."""
        if self.isolation is Isolation.SELF:
            return f"The embedded server runs as {self.shown}; no other account reaches it."
        if self.isolation is Isolation.NAMESPACE:
            return (
                f"The embedded server runs in a user namespace that shows uid {self.uid} as {self.shown}; "
                "no other account reaches it."
            )
        return (
            f"The embedded server runs as the account {self.shown}, since user namespaces are refused here; "
            f"no account but root and {self.shown} reaches it."
        )


def choose_runner(wanted: Isolation | None = None) -> Runner:
    """How this process runs the server; `wanted` overrides the choice, for tests of each way.

    Raises DatabaseUnavailable when root can use neither a namespace nor another account.
    """
    uid, gid, own = os.geteuid(), os.getegid(), _name(os.geteuid())
    if wanted is None:
        wanted = _best(uid, own)
    if wanted is Isolation.SELF and own:
        return Runner(Isolation.SELF, uid, gid, own, own)
    account = borrowed_account()
    if wanted is Isolation.NAMESPACE:
        return Runner(Isolation.NAMESPACE, uid, gid, account.pw_name, account.pw_name)
    if uid != 0:
        raise DatabaseUnavailable(
            f"uid {uid} has no account here and user namespaces are refused, so the embedded database cannot "
            "tell who connects; give the uid a name in /etc/passwd, or set [database] url."
        )
    return Runner(Isolation.ACCOUNT, account.pw_uid, account.pw_gid, own or "root", account.pw_name)


def runner_of(uid: int) -> Runner:
    """How a server that already runs is set apart, told by the owner `uid` of its data."""
    if uid == os.geteuid():
        own = _name(uid)
        alone = own and uid not in (0, _overflow_uid())
        return choose_runner(Isolation.SELF if alone else Isolation.NAMESPACE)
    return Runner(Isolation.ACCOUNT, uid, os.getegid(), _name(os.geteuid()), _name(uid) or f"uid {uid}")


def _best(uid: int, own: str) -> Isolation:
    # Whoever a namespace does not map reads as the overflow uid, so that one is nobody's name.
    if own and uid not in (0, _overflow_uid()):
        return Isolation.SELF
    return Isolation.NAMESPACE if namespaces_work() else Isolation.ACCOUNT


def _overflow_uid() -> int:
    try:
        return int(_OVERFLOW.read_text())
    except OSError:  # hidden from a service that may see its own processes only
        return 65534  # Linux, kernel/sys.c: DEFAULT_OVERFLOWUID


def borrowed_account() -> pwd.struct_passwd:
    """An existing account that is neither root nor the overflow uid, by which a namespace shows strangers."""
    never = (0, _overflow_uid())
    able = {a.pw_name: a for a in pwd.getpwall() if a.pw_uid not in never and a.pw_gid not in never}
    for name in _PREFERRED:
        if name in able:
            return able[name]
    if not able:
        raise DatabaseUnavailable(
            "PostgreSQL does not run as root and this machine has no other account; add one, such as "
            "`useradd --system notewarden`, or set [database] url."
        )
    return min(able.values(), key=lambda account: account.pw_uid)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


@cache
def _unshare() -> str:
    return shutil.which("unshare", path=_ENVIRONMENT["PATH"]) or ""


@cache
def namespaces_work() -> bool:
    """Whether this process may make a user namespace; containers and hardened kernels refuse."""
    if not _unshare():
        return False
    account = borrowed_account()
    options = ["-U", f"--map-user={account.pw_uid}", f"--map-group={account.pw_gid}", "--", "true"]
    trial = subprocess.run([_unshare(), *options], capture_output=True, check=False, env=_ENVIRONMENT)
    return trial.returncode == 0
