"""Entries: what an index beside the tables is told of a vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..filters import AttributeTokens, attributes
from ..models import Embedding
from ..transactions import id_batches

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from numpy.typing import NDArray

    from ..models import Space

__all__ = ["Entry", "existing", "read_entries"]

COLUMNS = (
    *("pk", "memory_id", "vector", "memory__collection_key", "memory__collection"),
    *("memory__metadata", "memory__role", "memory__kind", "memory__name"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One vector, as an index is told of it. It never changes.

    ``id`` is the primary key of the Embedding, which is never used again: another vector, or other
    attributes, are another row with another id. So it does not matter in which order an index hears
    of two changes. ``vector`` has shape (width,). ``tokens`` are those of the memory's attributes:
    it may match a filter when it has at least one of every set of ``Filter.tokens(collection)``.
    """

    id: int
    memory_id: int
    collection_key: str
    vector: NDArray[np.float64]
    tokens: Sequence[int]


def read_entries(using: str, space: Space, ids: Iterable[int]) -> list[Entry]:
    """Read the entries of those embeddings of a space that exist, in the order of their ids."""
    held = Embedding.objects.using(using).filter(space=space).order_by("pk")
    return [
        entry
        for batch in id_batches(using, sorted(set(ids)))
        for entry in _entries(held.filter(pk__in=batch))
    ]


def existing(using: str, ids: Iterable[int]) -> set[int]:
    """Return which of these embeddings exist."""
    held = Embedding.objects.using(using)
    return {
        pk
        for batch in id_batches(using, sorted(set(ids)))
        for pk in held.filter(pk__in=batch).values_list("pk", flat=True)
    }


def _entries(embeddings: QuerySet[Embedding]) -> list[Entry]:
    makers: dict[str, AttributeTokens] = {}
    entries = []
    for row in embeddings.values_list(*COLUMNS):
        pk, memory_id, vector, key, collection, *attribute_columns = row
        tokens = makers.setdefault(collection, AttributeTokens(collection))
        entries.append(
            Entry(pk, memory_id, key, _values(vector), tokens(attributes(*attribute_columns)))
        )
    return entries


def _values(vector: Any) -> NDArray[np.float64]:
    return np.frombuffer(vector, "<f8")
