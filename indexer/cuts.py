"""`notewarden chunks`: how one file is cut, without an index."""

from __future__ import annotations

import os
from pathlib import Path

from indexer.chunking import ChunkedNote, chunk
from indexer.output import say
from notewarden import patient
from notewarden.display import printable
from notewarden.errors import ConfigError, NoteError, NotInNotes, UsageError
from notewarden.settings import Settings, find_config, load_settings
from notewarden.wordpiece import count_tokens

DEFAULT_TOKENS = Settings.model_fields["chunking"].default.max_tokens


def cut_file(file: str, config: Path | None) -> ChunkedNote:
    """Cut `file` as the index would; its path counts as given.

    Raises UsageError for what is no readable file, NotInNotes for what the index would skip, ConfigError for
    a bad configuration that was named.
    """
    raw = _bytes_of(file)
    try:
        return chunk(raw, os.fsencode(file), max_tokens=_budget(config))
    except NoteError as error:
        raise NotInNotes(f"{file} would not be indexed: {error.reason}.") from error


def as_text(note: ChunkedNote) -> str:
    """Return one paragraph a chunk: number, heading, lines and tokens, then its text."""
    blocks = []
    for one in note.chunks:
        heading = " > ".join(map(printable, one.heading)) or "(no heading)"
        where = f"lines {one.first_line}-{one.last_line}, {count_tokens(one.embedded)} tokens"
        blocks.append(f"[{one.seq}] {heading} ({where})\n{printable(one.text, keep_newlines=True).rstrip()}")
    return "\n\n".join(blocks) if blocks else "No chunk: the file is empty."


def _bytes_of(file: str) -> bytes:
    path = Path(file)
    try:
        if not patient.answers(path, patient.FIRST_S):
            raise UsageError(f"{file} cannot be read: its file system does not answer; check its server.")
        if not path.is_file():
            raise UsageError(f"{file} is not a file; give the note whose chunks are wanted.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is no path'}."
        ) from error


def _budget(config: Path | None) -> int:
    """Return the configured budget; one that was not asked for and cannot be used is said, not obeyed."""
    if config is not None:
        return load_settings(find_config(config)).chunking.max_tokens
    try:
        file = find_config(None)
    except ConfigError:
        return int(DEFAULT_TOKENS)
    try:
        return load_settings(file).chunking.max_tokens
    except ConfigError as error:
        say(f"the configuration is not used: {error}")
        return int(DEFAULT_TOKENS)
