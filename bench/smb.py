"""Descriptors over loopback SMB through both clients, in one run. Needs root and the package samba."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from acl.sources.smb.client import Login, SmbClient
from acl.sources.smb.pysmb_client import PysmbClient
from acl.sources.smb.smbprotocol_client import SmbprotocolClient

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

NOTES = 5_000
PER_FOLDER = 250


def tree(root: Path, notes: int) -> list[str]:
    """Write the notes, a folder for each few hundred, under four different lists; return their paths."""
    from support.samba import ace_bytes, descriptor_bytes, store_descriptor

    found = []
    for number in range(notes):
        folder = root / f"d{number // PER_FOLDER}"
        folder.mkdir(exist_ok=True)
        note = folder / f"n{number}.md"
        note.write_text(f"# Note {number}\n\nText of the note {number}.\n")
        aces = [ace_bytes(0, f"S-1-22-2-{72001 + number % 4}", 0x120089), ace_bytes(0, "S-1-5-18", 0x1F01FF)]
        store_descriptor(note, descriptor_bytes("S-1-22-1-0", aces))
        found.append(f"{folder.name}\\{note.name}")
    return found


def measured(ask: Callable[[], list[object]]) -> tuple[float, int]:
    """Seconds and number of answers of one run; the best of three."""
    best, count = float("inf"), 0
    for _ in range(3):
        started = time.perf_counter()
        count = len(ask())
        best = min(best, time.perf_counter() - started)
    return best, count


def main(arguments: list[str]) -> None:
    """Print seconds and descriptors per second of each client."""
    parser = argparse.ArgumentParser(prog="python -m bench smb")
    parser.add_argument("--notes", type=int, default=NOTES)
    options = parser.parse_args(arguments)
    if os.geteuid() or shutil.which("smbd") is None:
        print("skipped: needs root and the package samba")
        return
    from support.samba import KINDS, Samba, people

    server = Samba(people("svc"), {"everyday": 72000}, {"admin users": "svc"})
    server.start()
    root = Path(tempfile.mkdtemp(prefix="nwbench-", dir="/var/tmp"))
    try:
        paths = tree(root, options.notes)
        server.share("notes", root, KINDS["acl_xattr"])
        where = Login("127.0.0.1", server.port, "notes", "svc", "pw-svc")
        for kind in (PysmbClient, SmbprotocolClient):
            _report(kind(where), paths)
    finally:
        server.stop()
        shutil.rmtree(root)


def _report(client: SmbClient, paths: list[str]) -> None:
    seconds, count = measured(lambda: list(client.answers(paths)))
    rate = f"{count:,} descriptors in {seconds:.2f} s, {count / seconds:,.0f}/s"
    print(f"{client.name} (SMB {client.dialect}): {rate}")
    client.close()
