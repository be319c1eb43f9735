"""Short ways to write records and queries whose cosines are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stores import VectorMatch, VectorQuery, VectorRecord

__all__ = ["NOON", "SPACE", "WIDTH", "at", "ids", "query", "random_vectors", "record"]

SPACE = "test@8"
WIDTH = 8
#: When a record happened that says nothing of it: two stores are told the same.
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(cosine: float, width: int = WIDTH) -> list[float]:
    """A vector with this cosine to ``at(1)``, the query of most tests."""
    return [cosine, (1 - cosine * cosine) ** 0.5, *([0.0] * (width - 2))]


def record(id: str, vector: Any = None, collection: str = "c", **fields: Any) -> VectorRecord:
    """A record of the collection "c", in the space of most tests if it has a vector."""
    space = fields.pop("space", None if vector is None else SPACE)
    fields = {"content": f"content of {id}", "occurred_at": NOON, **fields}
    return VectorRecord(collection=collection, id=id, vector=vector, space=space, **fields)


def query(vector: Any = None, collections: Sequence[str] = ("c",), **fields: Any) -> VectorQuery:
    """A query for what is near ``at(1)``, or near the vector."""
    space = fields.pop("space", SPACE)
    return VectorQuery(list(collections), at(1) if vector is None else vector, space, **fields)


def ids(found: Iterable[VectorMatch] | Iterable[VectorRecord]) -> list[str]:
    return [each.id for each in found]


def random_vectors(count: int, width: int = WIDTH, seed: int = 0) -> NDArray[np.float64]:
    """Vectors in all directions, of shape (count, width), the same for a seed."""
    return np.random.default_rng(seed).standard_normal((count, width))
