"""A made-up share of many notes, the same for the same seed."""

from __future__ import annotations

import random
from pathlib import Path

_WORDS = [
    "pump",
    "valve",
    "order",
    "shift",
    "supplier",
    "invoice",
    "server",
    "backup",
    "meeting",
    "draft",
    "release",
    "customer",
    "office",
    "travel",
    "contract",
    "budget",
    "sample",
    "night",
    "weekly",
    "report",
    "number",
    "early",
    "change",
    "review",
    "team",
    "storage",
    "update",
    "plan",
]


def make_tree(root: Path, notes: int, *, per_folder: int = 100, seed: int = 1) -> None:
    """Write `notes` small Markdown notes (about 1.2 kB, three sections) below `root`."""
    chance = random.Random(seed)
    for number in range(notes):
        folder = root / f"area{number // (per_folder * 10):03d}" / f"topic{number // per_folder:04d}"
        if number % per_folder == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"note{number:06d}.md").write_text(_note(chance, number), encoding="utf-8")


def _note(chance: random.Random, number: int) -> str:
    sections = [f"# Note {number}\n"]
    for part in range(3):
        words = " ".join(chance.choices(_WORDS, k=60))
        sections.append(f"## Part {part}\n\n{words}.\n")
    return "\n".join(sections)
