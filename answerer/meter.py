"""Measuring a question, and booking what the embedding provider bills for it."""

from __future__ import annotations

from copy import copy
from decimal import Decimal

from answerer.identity import Asker
from db import usage
from db.pool import Database
from notewarden.embedding.base import Embedder, Metered, Vectors
from notewarden.settings_sections import EmbeddingSettings


class Meter:
    """The embedding model as questions use it. Threads may share it."""

    def __init__(self, embedder: Embedder, settings: EmbeddingSettings, database: Database) -> None:
        self._embedder, self._settings, self._database = embedder, settings, database

    def embed_query(self, text: str, asker: Asker) -> Vectors:
        """Return the unit vector of a question, shape (dimension,), its tokens booked on who really asks.

        They are booked also where the provider billed for what cannot be used. Raises EmbeddingFailed.
        """
        if not isinstance(self._embedder, Metered):
            return self._embedder.embed_query(text)
        mine = copy(self._embedder)  # questions run beside each other: each counts its own tokens
        mine.take_tokens()
        try:
            return mine.embed_query(text)
        finally:
            self._book(mine.take_tokens(), asker)

    def _book(self, tokens: int, asker: Asker) -> None:
        if not tokens:
            return
        model = self._settings.query_model or self._settings.model
        cost = Decimal(tokens) * Decimal(str(self._settings.price)) / 1_000_000
        with self._database.reader() as conn:
            usage.add(conn, usage.Used(asker.actor, model, tokens, 0, cost))
