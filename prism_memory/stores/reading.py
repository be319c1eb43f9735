"""Reading nominated rows by plain statements: all vectors, and then the texts of the best.

Of some hundred candidates most lose, so their texts, times and metadata are not read: decoding
those takes several times as long as reading and comparing the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from django.db import connections

from ..models import Embedding, Memory
from ..selecting import blob_cursor, columns, fetch, places, table
from ..timestamps import to_database

if TYPE_CHECKING:
    from .table import Search

__all__ = ["MATCHED", "Candidate", "candidates", "live_rows", "record_id_of", "winners"]

#: The columns of a match; the first three are what Search.takes() looks at.
MATCHED = (
    *("collection_key", "occurred_at", "expires_at"),
    *("record_id", "content", "metadata", "role", "kind", "name"),
)
VECTORS = """
SELECT e.{id}, e.{vector} FROM {embeddings} e
WHERE e.{space} = {of_space} AND e.{memory} IN ({rows})
"""
# CROSS JOIN is SQLite's way to be told which table to start with; keys are whole numbers. No index
# helps with the expiry: before its first ANALYZE, PostgreSQL would read all of that index, or the
# whole table, to find 256 rows. That is also why the keys stand there twice for it, and only for
# it: SQLite would look each row up in a list.
LIVE_VECTORS = """
SELECT e.{id}, e.{vector}, m.{key}
FROM {embeddings} e {join} {memories} m ON m.{pk} = e.{memory}
WHERE e.{space} = {of_space} AND e.{memory} IN ({rows}) AND {named_again}
(m.{expires_at} <= %s) IS NOT TRUE
"""
# The same with all that a match has.
LIVE_ROWS = """
SELECT {matched}, e.{vector}
FROM {embeddings} e {join} {memories} m ON m.{pk} = e.{memory}
WHERE e.{space} = {of_space} AND e.{memory} IN ({rows}) AND {named_again}
(m.{expires_at} <= %s) IS NOT TRUE
"""
TEXTS = """
SELECT {matched}, e.{id}
FROM {embeddings} e {join} {memories} m ON m.{pk} = e.{memory}
WHERE e.{id} IN ({rows})
"""


#: A row that was nominated: the primary key of its vector, and the vector.
Candidate: TypeAlias = tuple[int, bytes]


def candidates(search: Search, rows: Sequence[int], *, live: bool) -> list[Candidate]:
    """Return the rows that have a vector in the space of the search.

    Unless they are known to be ``live``, those that are, and in the collections.
    """
    if live:
        # Without parameters, for which Django would search a long statement.
        sql, parameters = _listing(search, VECTORS, rows), None
    else:
        sql, parameters = _only_live(search, _listing(search, LIVE_VECTORS, rows))
    with blob_cursor(search.using) as cursor:
        cursor.execute(sql, parameters)
        found = cursor.fetchall()
    if live:
        return list(found)
    # Collections are looked at here, for the reason that Search.takes() gives.
    return [(pk, vector) for pk, vector, key in found if key in search.collections]


def live_rows(search: Search, rows: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return what a match has of live rows that have a vector in the space, and the vectors."""
    sql, parameters = _only_live(search, _listing(search, LIVE_ROWS, rows))
    found = fetch(search.using, Memory, MATCHED, sql, parameters)
    return [row for row in found if search.takes(*row[:3])]


def winners(search: Search, embeddings: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return what a match has of the memories of these vectors, and the vector's key."""
    sql = _worded(search.using, TEXTS).replace("{rows}", places(embeddings))
    return fetch(search.using, Memory, [*MATCHED, "pk"], sql, embeddings)


def record_id_of(search: Search, embedding_id: int) -> str:
    """The id of the record that has this vector: for errors."""
    rows = Memory.objects.using(search.using).filter(embeddings=embedding_id)
    return str(rows.values_list("record_id", flat=True).get())


def _listing(search: Search, sql: str, rows: Sequence[int]) -> str:
    """The statement for these rows; whole numbers stand in it as they are."""
    listed = ", ".join(map(str, map(int, rows)))
    worded = _worded(search.using, sql).replace("{rows}", listed)
    return worded.replace("{of_space}", str(int(search.space.pk)))


def _only_live(search: Search, sql: str) -> tuple[str, list[Any]]:
    """The statement, which ends with the condition on the expiry, and its parameters."""
    moment = connections[search.using].ops.adapt_datetimefield_value
    parameters = [moment(to_database(search.now))]
    if search.occurred_since is not None:
        sql += f" AND m.{columns(search.using, Memory, ['occurred_at'])} > %s"
        parameters.append(moment(to_database(search.occurred_since)))
    return sql, parameters


@cache
def _worded(using: str, sql: str) -> str:
    """Fill in the names of tables and columns, which stay, and leave ``{rows}``."""
    vendor = connections[using].vendor
    named = {name: columns(using, Memory, [name]) for name in ("pk", "expires_at", "occurred_at")}
    return sql.format(
        **{name: columns(using, Embedding, [name]) for name in ("id", "memory", "space", "vector")},
        **named,
        embeddings=table(using, Embedding),
        memories=table(using, Memory),
        key=columns(using, Memory, ["collection_key"]),
        matched=", ".join(f"m.{columns(using, Memory, [name])}" for name in MATCHED),
        join="CROSS JOIN" if vendor == "sqlite" else "JOIN",
        named_again="" if vendor == "sqlite" else f"m.{named['pk']} IN ({{rows}}) AND",
        rows="{rows}",
        of_space="{of_space}",
    )
