"""Query vectors, and the cache that keeps them."""

from __future__ import annotations

import hashlib
import logging

from django.core.cache import cache

from . import backends
from .answers import embed_question
from .conf import settings
from .digests import digest
from .vectors import Vector

__all__ = ["query_vector"]

logger = logging.getLogger("prism_memory.recall")


def query_vector(text: str) -> Vector:
    """Return the vector of a query, from the cache or the embedder.

    The cache's key is a digest, so that the query's text is not in it. A failing cache is logged
    and otherwise ignored. Raises EmbeddingUnavailable when the embedder fails.
    """
    embedder = backends.embedder()
    seconds = settings().recall["query_cache"]
    if not seconds:
        return embed_question(embedder, text)
    key = "prism_memory:" + digest("query", embedder.space, _hash(text))
    try:
        if (packed := cache.get(key)) is not None:
            return Vector.unpack(packed)
    except Exception as error:  # noqa: BLE001 - a cache may raise anything
        logger.warning("The query cache can't be read: %s.", type(error).__name__)
    vector = embed_question(embedder, text)
    try:
        cache.set(key, vector.pack(), seconds)
    except Exception as error:  # noqa: BLE001
        logger.warning("The query cache can't be written: %s.", type(error).__name__)
    return vector


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
