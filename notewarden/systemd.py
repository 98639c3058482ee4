"""The little of systemd's protocol that a service needs: sd_notify(3), the watchdog, passed-on sockets."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

_FIRST_PASSED = 3  # SD_LISTEN_FDS_START


def notify(*lines: str) -> None:
    """Tell the service manager, such as notify("READY=1", "STATUS=polling"); nothing where none started us.

    A manager that cannot be reached is no reason to fail.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    place = "\0" + address[1:] if address.startswith("@") else address
    message = "\n".join(line.replace("\n", " ") for line in lines)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as door:
            door.connect(place)
            door.sendall(message.encode("utf-8", "replace"))
    except OSError:
        return


def reloading() -> None:
    """Tell that the configuration is being read again; `notify("READY=1")` follows in any case."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")


def watchdog_s() -> float | None:
    """Return how often, in seconds, the manager wants to hear from this process; None where it does not."""
    asked, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", str(os.getpid()))
    if not asked.isdigit() or pid != str(os.getpid()) or int(asked) == 0:
        return None
    return int(asked) / 1_000_000


def passed_sockets(environ: Mapping[str, str] = os.environ) -> dict[str, int]:
    """Return the file descriptors of the sockets that systemd passed on, by FileDescriptorName=."""
    count = environ.get("LISTEN_FDS", "")
    if environ.get("LISTEN_PID") != str(os.getpid()) or not count.isdigit():
        return {}
    numbers = range(_FIRST_PASSED, _FIRST_PASSED + int(count))
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    names += ["unknown"] * (len(numbers) - len(names))
    return dict(zip(names, numbers, strict=False))
