"""A store filled with given vectors, and queries with given vectors: no embedder at work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from prism_memory.embedders import Embedder

__all__ = ["QUERIES", "GivenEmbedder", "fill", "handle", "random_vectors"]

EMBEDDER = "benchmarks.filling.GivenEmbedder"
SPACE = "given"
#: Records of one call of the store.
STEP = 5_000

#: The vectors of queries, by text.
QUERIES: dict[str, Any] = {}


class GivenEmbedder(Embedder):
    """Knows the vectors of QUERIES and can't embed anything else."""

    space = SPACE
    batch_size = STEP

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [QUERIES[text] for text in texts]


def handle(owner: str = "benchmark") -> Any:
    from prism_memory.models import Memory

    return Memory.objects.for_owner(owner)


def fill(texts: Sequence[str], vectors: Any, *, owner: str = "benchmark", first: int = 0) -> None:
    """Store one memory a text, with its vector, in the way of the app: rows, vectors, pages."""
    from prism_memory.models import MemoryKind
    from prism_memory.stores import VectorRecord, stores

    memory = handle(owner)
    store = stores["default"]
    for start in range(0, len(texts), STEP):
        part = range(start, min(start + STEP, len(texts)))
        store.upsert(
            VectorRecord(
                collection=memory.collection,
                id=f"{first + row}",
                content=texts[row],
                role="user",
                kind=MemoryKind.OBSERVATION.value,
                owner=memory._address,
                metadata={},
                vector=np.asarray(vectors[row], np.float64),
                space=SPACE,
            )
            for row in part
        )


def random_vectors(count: int, width: int, seed: int = 0) -> Any:
    """Unit vectors around some hundred centres: for speed, where the model does not matter."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((128, width), np.float32)
    rows = centres[random.integers(0, len(centres), count)]
    rows += random.standard_normal((count, width), np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
