"""Short ways to fill a store and to search it, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from prism_memory.models import Embedding
from prism_memory.stores import DatabaseStore, VectorRecord
from prism_memory.stores.reading import candidates, live_rows
from prism_memory.testing import records
from prism_memory.testing.records import SPACE, WIDTH, at, ids, query, random_vectors

__all__ = [
    "EXACT",
    "SPACE",
    "WIDTH",
    "at",
    "ids",
    "query",
    "random_vectors",
    "record",
    "vectors_read",
]

EXACT = DatabaseStore(strategy="exact")


def record(id: str, vector: Any = None, collection: str = "c", **fields: Any) -> VectorRecord:
    """A record that happens when it is stored, unless said otherwise."""
    return records.record(id, vector, collection, **{"occurred_at": None, **fields})


@contextmanager
def vectors_read() -> Iterator[list[int]]:
    """Note the size of every vector that comes out of the database, whatever the store reports."""
    read: list[int] = []

    def note(value: Any, *rest: Any) -> Any:
        read.append(len(value))
        return value

    def note_candidates(*given: Any, **named: Any) -> Any:
        found = candidates(*given, **named)
        read.extend(len(vector) for _, vector in found)
        return found

    def note_rows(*given: Any) -> Any:
        found = live_rows(*given)
        read.extend(len(row[-1]) for row in found)
        return found

    field = Embedding._meta.get_field("vector")
    with (
        mock.patch.object(field, "from_db_value", note, create=True),
        mock.patch("prism_memory.stores.table.candidates", note_candidates),
        mock.patch("prism_memory.stores.table.live_rows", note_rows),
    ):
        yield read
