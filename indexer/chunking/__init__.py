"""Chunks: the passages of a note that are searched, shown and cited."""

from indexer.chunking.build import CHUNKER_VERSION, as_json, chunk
from indexer.chunking.model import Chunk, ChunkedNote
from indexer.chunking.template import TEMPLATE_VERSION

__all__ = ["CHUNKER_VERSION", "TEMPLATE_VERSION", "Chunk", "ChunkedNote", "as_json", "chunk"]
