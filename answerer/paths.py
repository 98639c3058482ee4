"""From an argument to a note or a folder, among what the asker may read and nothing else."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from db.search import Reading, Scope
from notewarden.display import path_candidates
from notewarden.errors import NotInNotes, UsageError
from notewarden.patient import real_path
from notewarden.settings import ShareSettings

NOT_THERE = "There is no such note among those you may read."


@dataclass(frozen=True)
class _Meaning:
    """One way to understand an argument; share None is any share."""

    share: str | None
    path: bytes


def find_note(reading: Reading, argument: str, shares: Sequence[ShareSettings]) -> int:
    """Return the id of the one readable note that `argument` names: exactly, else as the only NFC-equal one.

    Raises NotInNotes, with one sentence for all reasons, or UsageError if two shares have it.
    """
    meanings = list(_meanings(argument, _visible(reading, shares)))
    at = reading.notes_at([meaning.path for meaning in meanings])
    for meaning in meanings:
        exact = [note for note in at if note[2] == meaning.path and meaning.share in (None, note[1])]
        if exact:
            return _only(exact)
    every = reading.notes()
    for meaning in meanings:
        form = _nfc(meaning.path)
        equal = [note for note in every if _nfc(note[2]) == form and meaning.share in (None, note[1])]
        if equal and len({share for _, share, _ in equal}) == len(equal):
            return _only(equal)
    raise NotInNotes(NOT_THERE)


def find_scope(
    reading: Reading, share: str | None, folders: Sequence[str], known: Sequence[ShareSettings]
) -> Scope:
    """Return the scope that --share and --folder name. What is unknown or hidden gives an empty one.

    Raises UsageError when the folders name different shares, which one scope cannot hold.
    """
    if share is not None and share not in reading.shares():
        return Scope((), ())
    if not folders:
        return Scope(None if share is None else (share,), None)
    readable, visible = _with_parents(reading.folders()), _visible(reading, known)
    chosen = [_folder(argument, visible, readable) for argument in folders]
    named = {meaning.share for meaning in chosen}
    if len(named) > 1:
        raise UsageError("The folders belong to different shares; ask about one share at a time.")
    within = named.pop()
    if share is not None and within not in (None, share):
        return Scope((), ())
    only = share if share is not None else within
    return Scope(None if only is None else (only,), tuple(meaning.path for meaning in chosen))


def _visible(reading: Reading, shares: Sequence[ShareSettings]) -> list[ShareSettings]:
    """A share without a readable note is no share: its name means as much as any other text."""
    names = set(reading.shares())
    return [share for share in shares if share.name in names]


def _only(notes: Sequence[tuple[int, str, bytes]]) -> int:
    if len(notes) > 1:
        names = ", ".join(sorted(share for _, share, _ in notes))
        raise UsageError(f"Several shares have this note ({names}); name one with --share or SHARE:PATH.")
    return notes[0][0]


def _folder(argument: str, shares: Sequence[ShareSettings], readable: set[bytes]) -> _Meaning:
    meanings = [
        _Meaning(meaning.share, b"" if meaning.path == b"." else meaning.path.strip(b"/"))
        for meaning in _meanings(argument, shares)
    ]
    for meaning in meanings:
        if meaning.path in readable:
            return meaning
    for meaning in meanings:
        equal = [folder for folder in readable if _nfc(folder) == _nfc(meaning.path)]
        if len(equal) == 1:
            return _Meaning(meaning.share, equal[0])
    return meanings[0]


def _meanings(argument: str, shares: Sequence[ShareSettings]) -> Iterator[_Meaning]:
    """Yield what an argument can mean, the literal form first. Only its text decides, nothing on the disk."""
    for path in path_candidates(argument):
        yield _Meaning(None, path[2:] if path.startswith(b"./") else path)
    for share in shares:
        prefix = share.name + ":"
        if argument.startswith(prefix):
            for path in path_candidates(argument.removeprefix(prefix)):
                yield _Meaning(share.name, path)
        for path in path_candidates(argument):
            yield from _below_root(share, path)


def _below_root(share: ShareSettings, path: bytes) -> Iterator[_Meaning]:
    if not path.startswith(b"/"):
        return
    flat = os.path.normpath(path)
    for root in {os.fsencode(share.path), os.fsencode(real_path(share.path))}:
        if flat == root:
            yield _Meaning(share.name, b"")
        elif flat.startswith(root.rstrip(b"/") + b"/"):
            yield _Meaning(share.name, flat[len(root.rstrip(b"/")) + 1 :])


def _with_parents(folders: Sequence[bytes]) -> set[bytes]:
    found = {b""}
    for folder in folders:
        parts = folder.split(b"/")
        found.update(b"/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    return found


def _nfc(path: bytes) -> bytes:
    try:
        return unicodedata.normalize("NFC", path.decode("utf-8")).encode("utf-8")
    except UnicodeDecodeError:
        return path
