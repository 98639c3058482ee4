"""From the configuration to the embedding model it names."""

from __future__ import annotations

from notewarden.embedding.base import Embedder
from notewarden.embedding.hashed import HashEmbedder
from notewarden.embedding.local import MODEL_NAME, LocalEmbedder
from notewarden.embedding.voyage import VoyageAccess, VoyageEmbedder
from notewarden.embedding.voyage_context import MODELS, VoyageContextEmbedder
from notewarden.errors import ConfigError
from notewarden.secret_files import read_secret
from notewarden.settings_sections import EmbeddingSettings


def make_embedder(settings: EmbeddingSettings) -> Embedder:
    """Return the model of `[embedding]`; nothing heavy is loaded before its first text.

    Raises ConfigError where the model is not there or its key is missing.
    """
    if settings.provider == "hash":
        return HashEmbedder(settings.dimension)
    if settings.provider == "voyage":
        return _voyage(settings)
    return _local(settings)


def _local(settings: EmbeddingSettings) -> Embedder:
    if settings.model_path is None and settings.model != MODEL_NAME:
        raise ConfigError(
            f'[embedding] model "{settings.model}" needs model_path and model_sha256; '
            f'without them the local model is "{MODEL_NAME}".'
        )
    return LocalEmbedder(settings.model, settings.dimension, settings.model_path, settings.model_sha256)


def _voyage(settings: EmbeddingSettings) -> Embedder:
    key = read_secret(settings.api_key_file, "VOYAGE_API_KEY")
    if key is None:
        raise ConfigError("[embedding] provider voyage needs api_key_file or the variable VOYAGE_API_KEY.")
    made = VoyageContextEmbedder if settings.model.startswith(MODELS) else VoyageEmbedder
    return made(
        settings.model, settings.dimension, VoyageAccess(key, settings.base_url, settings.query_model)
    )
