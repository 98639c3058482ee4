"""A machine of its own: a real systemd as pid 1, in private namespaces over an overlay of this one's files.

Nothing it does reaches the outside: it writes into a tmpfs above the real root, has its own /tmp, /run and
/dev/shm, its own processes, network and cgroups. It must never boot without the overlay: systemd empties
/tmp.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = ("unshare", "nsenter", "systemctl", "chroot", "mount")
SYSTEMD = Path("/lib/systemd/systemd")

# Inside the new namespaces, before the new root is entered: $1 is an empty folder of this machine alone.
_BOOT = r"""
set -eu
base=$1; python=$2; packages=$3; code=$4
mount --make-rprivate /
mount -t tmpfs -o size=2g,mode=755 machine "$base"
mkdir "$base/upper" "$base/work" "$base/root"
mount -t overlay overlay -o lowerdir=/,upperdir="$base/upper",workdir="$base/work" "$base/root"
root=$base/root
[ "$(stat -f -c %T "$root")" = overlayfs ] || { echo "no overlay" >&2; exit 97; }
mkdir -p "$root/opt/python" "$root/opt/packages" "$root/opt/code"
mount --bind "$python" "$root/opt/python"
mount --bind "$packages" "$root/opt/packages"
cp -r "$code/." "$root/opt/code/"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for node in null zero full random urandom tty; do
  touch "$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
mkdir "$root/sys/fs/cgroup/unified" "$root/sys/fs/cgroup/systemd"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
mount -t cgroup -o none,name=systemd,xattr systemd "$root/sys/fs/cgroup/systemd"
# Credentials are mounted by a helper of systemd's in a namespace of its own; shared, they reach the others.
mount --make-rshared "$root"
hostname machine
rm -rf "$root/etc/systemd/system" "$root/etc/notewarden" "$root/opt/notewarden" "$root/var/lib/notewarden" \
       "$root/etc/fstab" "$root/etc/machine-id"
mkdir -p "$root/etc/systemd/system"
printf '11111111111111111111111111111111\n' >"$root/etc/machine-id"
cp "$base.conf/"* "$root/etc/systemd/system/"
for unit in systemd-udevd.service systemd-udev-trigger.service systemd-networkd.service \
    systemd-resolved.service systemd-timesyncd.service systemd-logind.service getty.target \
    systemd-firstboot.service systemd-udevd-kernel.socket systemd-udevd-control.socket \
    dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
    sys-fs-fuse-connections.mount systemd-sysctl.service systemd-modules-load.service \
    systemd-remount-fs.service systemd-binfmt.service systemd-journal-flush.service \
    systemd-update-utmp.service systemd-random-seed.service; do
  ln -s /dev/null "$root/etc/systemd/system/$unit"
done
exec chroot "$root" /usr/bin/env -i container=lxc PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin \
  LANG=C.UTF-8 /lib/systemd/systemd --system --unit=machine.target --log-level=warning --show-status=no
"""

_TARGET = "[Unit]\nDescription=The machine under test\nRequires=basic.target\nAfter=basic.target\n"
_NAMESPACES = ("--fork", "--kill-child", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup")


class Machine:
    """A booted machine; `run` runs a command in it as root."""

    def __init__(self, pid: int) -> None:
        """`pid`: its pid 1, as this machine numbers it."""
        self.pid = pid

    def run(self, *command: str, check: bool = True, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command inside."""
        done = subprocess.run(
            [*self._enter(), *command], capture_output=True, text=True, check=False, timeout=timeout, env=_ENV
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def out(self, *command: str, **options: float) -> str:
        """Run a command inside and return what it printed."""
        return self.run(*command, **options).stdout.strip()  # type: ignore[arg-type]

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file inside."""
        script = 'mkdir -p "$(dirname "$1")" && cat >"$1" && chmod "$2" "$1"'
        subprocess.run(
            [*self._enter(), "/bin/sh", "-c", script, "sh", path, f"{mode:o}"],
            input=text, text=True, check=True, env=_ENV,
        )  # fmt: skip

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.out("systemctl", "show", "-P", name, unit)

    def wait(self, what: str, holds: object, seconds: float = 60) -> None:
        """Wait until the function `holds` returns something true."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if holds():  # type: ignore[operator]
                return
            time.sleep(0.2)
        raise AssertionError(f"{what}: not within {seconds} s\n{self.log()}")

    def log(self) -> str:
        """Return the newest lines of the journal."""
        return self.run("journalctl", "--no-pager", "-n", "80", "-o", "short-monotonic", check=False).stdout

    def _enter(self) -> list[str]:
        return ["nsenter", f"--target={self.pid}", "--all", "--root", "--wd", "--"]


_ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "SYSTEMD_PAGER": "",
}


def why_not() -> str | None:
    """Return why no machine can be booted here, None if one can."""
    if os.geteuid() != 0:
        return "needs root, to boot a systemd in namespaces of its own"
    missing = [name for name in TOOLS if shutil.which(name) is None] + (
        [] if SYSTEMD.exists() else ["systemd"]
    )
    if missing:
        return f"needs {', '.join(missing)}"
    trial = subprocess.run(["unshare", *_NAMESPACES, "true"], capture_output=True, text=True, check=False)
    return None if trial.returncode == 0 else f"namespaces are refused here: {trial.stderr.strip()}"


@contextmanager
def booted(code: Path) -> Iterator[Machine]:
    """Boot a machine and shut it down afterwards.

    Inside: /opt/python is this interpreter's, /opt/packages its packages, /opt/code a copy of `code`.
    """
    base = Path(tempfile.mkdtemp(prefix="nw-machine-", dir="/tmp"))
    conf = base.with_name(base.name + ".conf")
    conf.mkdir()
    (conf / "machine.target").write_text(_TARGET)
    python = Path(sys.base_prefix).resolve()
    packages = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    groups = _own_cgroups(base.name)
    log = open(base.with_name(base.name + ".log"), "w+")  # noqa: SIM115
    process = subprocess.Popen(
        ["unshare", *_NAMESPACES,
         "/bin/sh", "-c", _BOOT, "sh", str(base), str(python), str(packages), str(code)],
        stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        preexec_fn=lambda: _join(groups), start_new_session=True,
    )  # fmt: skip
    try:
        machine = Machine(_pid_one(process, log))
        machine.wait("boot", lambda: _is_up(machine), 60)
        yield machine
    finally:
        process.kill()  # its child, the machine's pid 1, goes with it, and all of its processes with that
        process.wait()
        log.close()
        _remove(base, conf, groups)


def _is_up(machine: Machine) -> bool:
    return machine.run("systemctl", "is-active", "machine.target", check=False).stdout.strip() == "active"


def _pid_one(process: subprocess.Popen[bytes], log: object) -> int:
    for _ in range(200):
        if process.poll() is not None:
            log.seek(0)  # type: ignore[attr-defined]
            raise AssertionError(f"the machine did not boot: {log.read()}")  # type: ignore[attr-defined]
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children and "systemd" in Path(f"/proc/{children[0]}/comm").read_text():
            return int(children[0])
        time.sleep(0.1)
    raise AssertionError("the machine did not get as far as systemd")


def _own_cgroups(name: str) -> list[Path]:
    """Cgroups of its own, so that the machine's systemd sees nothing of this one's."""
    top = Path("/sys/fs/cgroup")
    hierarchies = [top] if (top / "cgroup.controllers").exists() else [top / "unified", top / "systemd"]
    groups = [place / name for place in hierarchies if place.is_dir()]
    for group in groups:
        group.mkdir()
    return groups


def _join(groups: list[Path]) -> None:
    for group in groups:
        (group / "cgroup.procs").write_text(str(os.getpid()))


def _remove(base: Path, conf: Path, groups: list[Path]) -> None:
    for group in groups:
        for _ in range(50):
            try:
                for inner in sorted((p for p in group.rglob("*") if p.is_dir()), key=lambda p: -len(p.parts)):
                    inner.rmdir()
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)
    base.rmdir()
    shutil.rmtree(conf)
    base.with_name(base.name + ".log").unlink()
