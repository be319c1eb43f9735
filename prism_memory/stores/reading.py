"""Reading the vectors of nominated rows, and nothing else of them, by one plain statement.

Of some hundred candidates most lose, so their texts, times and metadata are not read: decoding
those takes several times as long as reading and comparing the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connections

from ..models import Embedding, Memory
from ..timestamps import to_database

if TYPE_CHECKING:
    from .table import Search

__all__ = ["Candidate", "candidates"]

# CROSS JOIN is SQLite's way to be told which table to start with; keys are whole numbers.
SELECT = """
SELECT e.{id}, m.{pk}, m.{key}, m.{record_id}, e.{vector}
FROM {embeddings} e {join} {memories} m ON m.{pk} = e.{memory}
WHERE e.{space} = %s AND e.{memory} IN ({rows})
AND (m.{expires_at} IS NULL OR m.{expires_at} > %s)
"""


class Candidate(NamedTuple):
    """A live row that was nominated: its vector, and what decides between equally near ones."""

    embedding_id: int
    memory_id: int
    collection_key: str
    record_id: str
    vector: bytes


def candidates(search: Search, rows: Sequence[int]) -> list[Candidate]:
    """Return the rows that are live and have a vector in the space of the search."""
    connection = connections[search.using]
    quote, moment = connection.ops.quote_name, connection.ops.adapt_datetimefield_value
    memory: Any = Memory._meta
    embedding: Any = Embedding._meta
    of, at = memory.get_field, embedding.get_field
    sql = SELECT.format(
        embeddings=quote(embedding.db_table),
        memories=quote(memory.db_table),
        join="CROSS JOIN" if connection.vendor == "sqlite" else "JOIN",
        id=quote(at("id").column),
        memory=quote(at("memory").column),
        space=quote(at("space").column),
        vector=quote(at("vector").column),
        pk=quote(of("id").column),
        key=quote(of("collection_key").column),
        record_id=quote(of("record_id").column),
        expires_at=quote(of("expires_at").column),
        rows=", ".join(map(str, map(int, rows))),
    )
    parameters = [search.space.pk, moment(to_database(search.now))]
    if search.occurred_since is not None:
        sql += f" AND m.{quote(of('occurred_at').column)} > %s"
        parameters.append(moment(to_database(search.occurred_since)))
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows_read = cursor.fetchall()
    # Looked at here, for the reason that Search.takes() gives.
    return [Candidate(*row) for row in rows_read if row[2] in search.collections]
