"""Short ways to fill a store and to search it, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from prism_memory.models import Embedding
from prism_memory.stores import DatabaseStore, VectorQuery, VectorRecord
from prism_memory.stores.reading import candidates

SPACE = "test@8"
WIDTH = 8
EXACT = DatabaseStore(strategy="exact")


def at(cosine: float, width: int = WIDTH) -> list[float]:
    """A vector with this cosine to ``at(1)``, the query of most tests."""
    return [cosine, (1 - cosine * cosine) ** 0.5, *([0.0] * (width - 2))]


def record(id: str, vector: Any = None, collection: str = "c", **fields: Any) -> VectorRecord:
    space = fields.pop("space", None if vector is None else SPACE)
    fields.setdefault("content", f"content of {id}")
    return VectorRecord(collection=collection, id=id, vector=vector, space=space, **fields)


def query(vector: Any = None, collections: Sequence[str] = ("c",), **fields: Any) -> VectorQuery:
    space = fields.pop("space", SPACE)
    return VectorQuery(list(collections), at(1) if vector is None else vector, space, **fields)


def ids(matches: Iterable[Any]) -> list[str]:
    return [match.id for match in matches]


def random_vectors(count: int, width: int = WIDTH, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((count, width))


@contextmanager
def vectors_read() -> Iterator[list[int]]:
    """Note the size of every vector that comes out of the database, whatever the store reports."""
    read: list[int] = []

    def note(value: Any, *rest: Any) -> Any:
        read.append(len(value))
        return value

    def note_candidates(*given: Any) -> Any:
        found = candidates(*given)
        read.extend(len(row.vector) for row in found)
        return found

    field = Embedding._meta.get_field("vector")
    with (
        mock.patch.object(field, "from_db_value", note, create=True),
        mock.patch("prism_memory.stores.table.candidates", note_candidates),
    ):
        yield read
