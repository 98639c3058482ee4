"""Embedding models behind one interface."""

from notewarden.embedding.base import Embedder
from notewarden.embedding.factory import make_embedder

__all__ = ["Embedder", "make_embedder"]
