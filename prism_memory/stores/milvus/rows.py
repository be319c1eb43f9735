"""How entries and filters look to Milvus: columns, rows and expressions. Knows no server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..entries import Entry
    from ..searches import Search

__all__ = ["MOST_TOKENS", "batches", "dimensions", "expression", "row", "within"]

#: The largest array that Milvus takes.
MOST_TOKENS = 4_096
#: Bytes of vectors and tokens that are sent at a time; a server takes messages of 64 MiB.
BATCH_BYTES = 4 * 2**20
#: In the place of more tokens than an array takes: this entry may match any filter.
ANY = 0
#: Expressions hold whole numbers without a sign: of a token, 63 bits are kept.
MASK = 2**63 - 1


def dimensions(width: int) -> int:
    """Return how many numbers a vector has in Milvus, which takes no vector of one."""
    return max(width, 2)


def unit(vector: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return a direction in single precision, shape (dimensions(width),).

    Doubles may be too large or too small for single precision; their direction is not.
    """
    scaled = vector / np.abs(vector).max()
    short = np.zeros(dimensions(len(vector)), np.float32)
    short[: len(vector)] = scaled / np.linalg.norm(scaled)
    return short


def row(entry: Entry) -> dict[str, Any]:
    """Return an entry as a row of its Milvus collection."""
    tokens = sorted({token & MASK for token in entry.tokens})
    return {
        "id": entry.id,
        "memory": entry.memory_id,
        "collection_key": entry.collection_key,
        "tokens": [ANY] if len(tokens) > MOST_TOKENS else tokens,
        "vector": unit(entry.vector),
    }


def batches(entries: Sequence[Entry]) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of entries in messages that a server takes."""
    batch: list[dict[str, Any]] = []
    size = 0
    for entry in entries:
        made = row(entry)
        weight = made["vector"].nbytes + 8 * len(made["tokens"]) + 256
        if batch and size + weight > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(made)
        size += weight
    if batch:
        yield batch


def expression(search: Search) -> str:
    """Return the condition on the entries of a search: its collections and, roughly, its filter.

    A token is of one collection, so those of several may stand in one list.
    """
    keys = ", ".join(f'"{key}"' for key in sorted(search.collections))
    parts = [f"collection_key in [{keys}]"]
    by_collection = [search.filter.tokens(name) for name in search.collections.values()]
    for sets in zip(*by_collection, strict=True):
        wanted = sorted({ANY, *(token & MASK for tokens in sets for token in tokens)})
        parts.append(f"array_contains_any(tokens, {wanted})")
    return " and ".join(parts)


def within(low: int, high: int | None) -> str:
    """Return the condition ``low <= id < high`` on ids."""
    return f"id >= {low}" if high is None else f"id >= {low} and id < {high}"
