"""Stores: where records and their vectors live, and how the nearest are found."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .contract import (
    Durability,
    Matches,
    Neighbours,
    VectorMatch,
    VectorQuery,
    VectorRecord,
    VectorStore,
)
from .registry import default_store, stores

if TYPE_CHECKING:
    from .database import DatabaseStore
    from .indexed import Entry, IndexedStore
    from .milvus import MilvusStore
    from .nominating import Nominations
    from .outbox import OutboxStore
    from .searches import Search
    from .space_removal import remove_space
    from .table import TableStore

__all__ = [
    "DatabaseStore",
    "Durability",
    "Entry",
    "IndexedStore",
    "Matches",
    "MilvusStore",
    "Neighbours",
    "Nominations",
    "OutboxStore",
    "Search",
    "TableStore",
    "VectorMatch",
    "VectorQuery",
    "VectorRecord",
    "VectorStore",
    "default_store",
    "remove_space",
    "stores",
]

#: These import numpy, or models, which start-up should not pay for.
LATER = {
    "DatabaseStore": ".database",
    "Entry": ".entries",
    "IndexedStore": ".indexed",
    "MilvusStore": ".milvus",
    "Nominations": ".nominating",
    "OutboxStore": ".outbox",
    "Search": ".searches",
    "TableStore": ".table",
    "remove_space": ".space_removal",
}


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(LATER[name], __name__), name)
