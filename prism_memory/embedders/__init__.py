"""Embedders: texts in, vectors out."""

from .base import TEXT_FORMAT, Embedder

__all__ = ["TEXT_FORMAT", "Embedder"]
