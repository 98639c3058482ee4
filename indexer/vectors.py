"""The vectors of a batch's chunks: what stands for the same string is reused, the model makes the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from db.notes import NoteStore
from db.tokenvectors import TokenStore
from indexer.chunking import Chunk
from indexer.context import Run
from notewarden.embedding.base import InContext, Vectors, WithTokens
from notewarden.embedding.tokens import FORM


class Piece(NamedTuple):
    """A string to embed under its key; its first `head` characters are not the chunk's own."""

    key: bytes
    text: str
    head: int


Group = tuple[Piece, ...]
"""Pieces that are embedded together; of a model that sees each by itself, one."""


@dataclass
class Made:
    """Vectors by key and, where they are kept, packed token vectors."""

    vectors: dict[bytes, Vectors]
    tokens: dict[bytes, bytes] = field(default_factory=dict)


class Maker:
    """Makes vectors for one run; of which model, and whether with its tokens, the run's settings say."""

    def __init__(self, run: Run, notes: NoteStore) -> None:
        self._run = run
        self._notes = notes
        self._tokens = token_store(run)

    def groups(self, chunks: Sequence[Chunk]) -> list[Group]:
        """Return what is to be embedded of a note, in order, under keys of all that a vector depends on."""
        model = self._run.embedder
        texts = [one.embedded for one in chunks]
        ranges = (
            model.groups(texts)
            if isinstance(model, InContext)
            else [(at, at + 1) for at in range(len(texts))]
        )
        key = _key_in_context if isinstance(model, InContext) else _key
        return [
            tuple(
                Piece(key(texts[first:last], at - first), texts[at], chunks[at].head)
                for at in range(first, last)
            )
            for first, last in ranges
        ]

    def known(self, keys: Sequence[bytes]) -> Made:
        """Return what already stands for these keys."""
        tokens = {} if self._tokens is None else self._tokens.known(keys)
        return Made(self._notes.vectors(self._run.generation_id, keys), tokens)

    def missing(self, groups: Iterable[Group], made: Made) -> list[Group]:
        """Return the groups, each once, that have to be embedded: those of which anything is missing."""
        wanted = {group[0].key: group for group in groups if any(self._lacks(made, one.key) for one in group)}
        return list(wanted.values())

    def fill(self, made: Made, groups: Sequence[Group]) -> None:
        """Let the model make what these groups need. Raises EmbeddingFailed."""
        model, pieces = self._run.embedder, [one for group in groups for one in group]
        texts, keys = [one.text for one in pieces], [one.key for one in pieces]
        if isinstance(model, InContext):
            rows = model.embed_groups([[one.text for one in group] for group in groups])
        elif self._tokens is not None and isinstance(model, WithTokens):
            rows, tokens = model.embed_with_tokens(texts, [one.head for one in pieces])
            made.tokens.update(zip(keys, tokens, strict=True))
        else:
            rows = model.embed_documents(texts)
        made.vectors.update(zip(keys, np.asarray(rows, dtype=np.float32), strict=True))

    def storing(self) -> AbstractContextManager[None]:
        """The one transaction of a note's rows and its token vectors; none where no such are kept."""
        return nullcontext() if self._tokens is None else self._tokens.transaction()

    def store(self, note_id: int, made: Made, keys: Iterable[bytes]) -> None:
        """Store the token vectors of a note just stored, in the same transaction. Raises DatabaseFault."""
        if self._tokens is not None:
            self._tokens.add(note_id, {key: made.tokens[key] for key in keys})

    def _lacks(self, made: Made, key: bytes) -> bool:
        return key not in made.vectors or (self._tokens is not None and key not in made.tokens)


def token_store(run: Run) -> TokenStore | None:
    """Return where token vectors are kept; None where no reranker on this machine would read them."""
    if run.settings.rerank.provider != "local" or not isinstance(run.embedder, WithTokens):
        return None
    return TokenStore(run.conn, run.generation_id, FORM)


def _key(texts: Sequence[str], at: int) -> bytes:
    return _digest(texts[at])


def _key_in_context(texts: Sequence[str], at: int) -> bytes:
    """Name the text by where it stands among those it is seen with."""
    return hashlib.sha256(b"%d " % at + b"".join(map(_digest, texts))).digest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
