"""The graph of a space: a partial index on an expression, so that every space has its own width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...exceptions import ConfigurationError, IndexNotReady

if TYPE_CHECKING:
    from ...models import Space

__all__ = ["TABLE", "Column", "Graph", "build", "column", "drop", "few", "found", "name_of"]

#: That of IndexedVector, whose module can be imported only where the app is installed.
TABLE = "prism_memory_pgvector_entry"
#: The greatest widths that pgvector indexes in single and in half precision, and that it stores.
SINGLE, HALF, STORED = 2_000, 4_000, 16_000
#: Up to so many entries, and numbers in them, all are compared. That takes 10 ms and misses none;
#: a graph in which they are few is left only after 20,000 others, in 50 ms, and misses some.
FEW, FEW_NUMBERS = 10_000, 4_000_000


@dataclass(frozen=True, slots=True)
class Column:
    """How the vectors of a space are compared: the SQL expression, its type, its operator class.

    Without an operator class there can be no index.
    """

    name: str
    type: str
    operators: str | None


@dataclass(frozen=True, slots=True)
class Graph:
    """What the catalogue says of the index of a space."""

    valid: bool
    building: bool


def column(space: Space) -> Column:
    """Raises ConfigurationError for a space that is too wide to be stored."""
    width = space.width
    if width <= SINGLE:
        return Column(f"(vector::vector({width:d}))", f"vector({width:d})", "vector_cosine_ops")
    if width <= HALF:
        return Column(f"(vector::halfvec({width:d}))", f"halfvec({width:d})", "halfvec_cosine_ops")
    if width <= STORED:
        return Column("vector", "vector", None)
    raise ConfigurationError(
        f"Vectors of the space {space.name!r} have {width} numbers; pgvector stores at most "
        f"{STORED}.",
        hint="Take PgVectorStore out of STORES, or use an embedder with fewer dimensions.",
        id="prism_memory_pgvector.E004",
    )


def few(space: Space) -> int:
    """How many entries of a space are compared one by one, graph or not."""
    return min(FEW, FEW_NUMBERS // space.width)


def name_of(space_id: int) -> str:
    return f"prism_memory_pgv_hnsw_{space_id:d}"


def found(cursor: Any, space: Space) -> Graph | None:
    """Return the index of a space, if there is one."""
    cursor.execute(
        """
        SELECT held.indisvalid, EXISTS (
            SELECT FROM pg_stat_progress_create_index AS work
            WHERE work.index_relid = held.indexrelid
        )
        FROM pg_index AS held JOIN pg_class AS named ON named.oid = held.indexrelid
        WHERE held.indrelid = to_regclass(%s) AND named.relname = %s
        """,
        [TABLE, name_of(space.pk)],
    )
    row = cursor.fetchone()
    return Graph(*row) if row else None


def build(cursor: Any, space: Space, *, m: int, ef_construction: int) -> None:
    """Build the index of a space, unless it is there. Raises IndexNotReady while others do."""
    compared = column(space)
    graph = found(cursor, space)
    if compared.operators is None or (graph and graph.valid):
        return
    if graph and graph.building:
        raise IndexNotReady(
            f"Another process builds the index {name_of(space.pk)} just now. Run this again when "
            "it has ended."
        )
    if graph:  # what a build leaves that was stopped
        drop(cursor, space)
    cursor.execute(
        f"CREATE INDEX {_concurrently(cursor)} {name_of(space.pk)} ON {TABLE} "
        f"USING hnsw ({compared.name} {compared.operators}) "
        f"WITH (m = {m:d}, ef_construction = {ef_construction:d}) WHERE space_id = {space.pk:d}"
    )


def drop(cursor: Any, space: Space) -> None:
    cursor.execute(f"DROP INDEX {_concurrently(cursor)} IF EXISTS {name_of(space.pk)}")


def _concurrently(cursor: Any) -> str:
    """The word that a statement must not have in a transaction."""
    connection = cursor.db
    return "" if connection.in_atomic_block or not connection.get_autocommit() else "CONCURRENTLY"
