"""Reading nominated rows by plain statements: all vectors, and then the texts of the best.

Of some hundred candidates most lose, so their texts, times and metadata are not read: decoding
those takes several times as long as reading and comparing the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connections

from ..models import Embedding, Memory
from ..selecting import blob_cursor, columns, fetch, places
from ..timestamps import to_database

if TYPE_CHECKING:
    from .table import Search

__all__ = ["MATCHED", "Candidate", "candidates", "winners"]

#: The columns of a match; the first three are what Search.takes() looks at.
MATCHED = (
    *("collection_key", "occurred_at", "expires_at"),
    *("record_id", "content", "metadata", "role", "kind", "name"),
)
# CROSS JOIN is SQLite's way to be told which table to start with; keys are whole numbers. The keys
# stand there twice, and no index helps with the expiry: before its first ANALYZE, PostgreSQL would
# read all of that index, or the whole table, to find 256 rows.
VECTORS = """
SELECT e.{id}, m.{key}, m.{record_id}, e.{vector}
FROM {embeddings} e {join} {memories} m ON m.{pk} = e.{memory}
WHERE e.{space} = %s AND e.{memory} IN ({rows}) AND m.{pk} IN ({rows})
AND (m.{expires_at} <= %s) IS NOT TRUE
"""
TEXTS = """
SELECT {matched}, e.{id}
FROM {embeddings} e {join} {memories} m ON m.{pk} = e.{memory}
WHERE e.{id} IN ({rows})
"""


class Candidate(NamedTuple):
    """A live row that was nominated: its vector, and what decides between equally near ones."""

    embedding_id: int
    collection_key: str
    record_id: str
    vector: bytes


def candidates(search: Search, rows: Sequence[int]) -> list[Candidate]:
    """Return the rows that are live and have a vector in the space of the search."""
    connection = connections[search.using]
    moment = connection.ops.adapt_datetimefield_value
    sql = _worded(search.using, VECTORS, rows=", ".join(map(str, map(int, rows))))
    parameters = [search.space.pk, moment(to_database(search.now))]
    if search.occurred_since is not None:
        sql += f" AND m.{columns(search.using, Memory, ['occurred_at'])} > %s"
        parameters.append(moment(to_database(search.occurred_since)))
    with blob_cursor(search.using) as cursor:
        cursor.execute(sql, parameters)
        rows_read = cursor.fetchall()
    # Looked at here, for the reason that Search.takes() gives.
    return [Candidate(*row) for row in rows_read if row[1] in search.collections]


def winners(search: Search, embeddings: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return what a match has of the memories of these vectors, and the vector's key."""
    matched = ", ".join(f"m.{columns(search.using, Memory, [name])}" for name in MATCHED)
    sql = _worded(search.using, TEXTS, matched=matched, rows=places(embeddings))
    return fetch(search.using, Memory, [*MATCHED, "pk"], sql, embeddings)


def _worded(using: str, sql: str, **parts: str) -> str:
    """Fill in the names of tables and columns."""
    connection = connections[using]
    quote = connection.ops.quote_name
    return sql.format(
        embeddings=quote(Embedding._meta.db_table),
        memories=quote(Memory._meta.db_table),
        join="CROSS JOIN" if connection.vendor == "sqlite" else "JOIN",
        **{name: columns(using, Embedding, [name]) for name in ("id", "memory", "space", "vector")},
        pk=columns(using, Memory, ["pk"]),
        key=columns(using, Memory, ["collection_key"]),
        record_id=columns(using, Memory, ["record_id"]),
        expires_at=columns(using, Memory, ["expires_at"]),
        **parts,
    )
