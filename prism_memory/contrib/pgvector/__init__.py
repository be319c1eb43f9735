"""An index in PostgreSQL itself: pgvector's HNSW, beside the tables and in their transactions."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .store import PgVectorStore

__all__ = ["PgVectorStore"]


def __getattr__(name: str) -> Any:
    # Later, because it imports models, and this package is imported to find the app.
    if name != "PgVectorStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .store import PgVectorStore

    return PgVectorStore
