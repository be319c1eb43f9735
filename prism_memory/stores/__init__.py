"""Stores: where records and their vectors live, and how the nearest are found."""

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
    from .table import TableStore

__all__ = [
    "DatabaseStore",
    "Durability",
    "Matches",
    "Neighbours",
    "TableStore",
    "VectorMatch",
    "VectorQuery",
    "VectorRecord",
    "VectorStore",
    "default_store",
    "stores",
]


def __getattr__(name: str) -> Any:
    # These import numpy, which start-up should not pay for.
    if name == "DatabaseStore":
        from .database import DatabaseStore

        return DatabaseStore
    if name == "TableStore":
        from .table import TableStore

        return TableStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
