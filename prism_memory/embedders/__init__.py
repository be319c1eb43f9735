"""Embedders: texts in, vectors out."""

from .base import TEXT_FORMAT, Embedder
from .litellm import LiteLLMEmbedder
from .local import LocalEmbedder

__all__ = ["TEXT_FORMAT", "Embedder", "LiteLLMEmbedder", "LocalEmbedder"]
