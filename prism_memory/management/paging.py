"""Walks over collections, of which there may be as many as a project has users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..managers import MemoryQuerySet

__all__ = ["collection_pages"]

#: Collections that are held in memory at a time.
PAGE = 500


def collection_pages(memories: MemoryQuerySet, column: str) -> Iterator[list[tuple[str, str]]]:
    """Yield (collection's key, its ``column``) pairs of the collections that hold these rows.

    In the order of the keys, so that the rows may change or go meanwhile.
    """
    pairs = memories.order_by("collection_key").values_list("collection_key", column).distinct()
    after = ""
    while page := list(pairs.filter(collection_key__gt=after)[:PAGE]):
        yield page
        after = page[-1][0]
