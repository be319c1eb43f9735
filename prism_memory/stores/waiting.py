"""Which records of a collection lack a vector: one statement, however it is asked."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connections
from django.utils import timezone

from ..digests import digest
from ..models import Embedding, Memory, Space
from ..selecting import columns, fetch, parameter, places, table
from ..texts import embedded_text

__all__ = ["COLUMNS", "RAW", "Place", "WaitingRow", "select_waiting"]

#: A time, as the database's driver takes it, and the primary key of a row. The index of collections
#: has this order, so that the oldest are found without a look at the others.
Place = tuple[Any, int]
#: A part of a WHERE, and its parameters.
Clause = tuple[str, Sequence[Any]]


#: The columns of which WaitingRow.of() makes one, and those of them that are left as the driver
#: gives them.
COLUMNS = ("pk", "key", "record_id", "name", "content", "occurred_at")
RAW = ("occurred_at",)


class WaitingRow(NamedTuple):
    """What embedding needs of a memory: a tenth of the cost of a record."""

    pk: int
    key: str
    id: str
    embedded_text: str
    #: Where it stands in the order in which records wait.
    place: Place

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, ...]]) -> list[WaitingRow]:
        return [
            cls(pk, key, record_id, embedded_text(name, content), (occurred_at, pk))
            for pk, key, record_id, name, content, occurred_at in rows
        ]


def select_waiting(
    using: str,
    names: Sequence[str],
    collection_key: str,
    limit: int | None,
    *,
    space: str | None,
    after: Place | None = None,
    keys: Sequence[str] | None = None,
    due: datetime | None = None,
    raw: Container[str] = (),
) -> list[tuple[Any, ...]]:
    """Select live memories that lack a vector in a space, or in every one: oldest first.

    ``after``: those behind this place, so that a long backlog is walked through once. ``keys``:
    those among these. ``due``: those that are due at this moment and that nobody else holds, locked
    until the transaction ends. ``raw``: see ``selecting.fetch()``.
    """
    connection = connections[using]
    clauses = [
        *_among(using, collection_key, keys),
        *_behind(using, after),
        *_in_time(using, due),
        _without_a_vector(using, space),
    ]
    sql = (
        f"SELECT {columns(using, Memory, names)} FROM {table(using, Memory)} "  # noqa: S608 - names
        f"WHERE {' AND '.join(clause for clause, _ in clauses)} "
        f"ORDER BY {columns(using, Memory, ['occurred_at', 'pk'])}"
    )
    if limit is not None:
        sql += f" LIMIT {int(limit)}"
    if due is not None and connection.features.has_select_for_update:
        skip = connection.features.has_select_for_update_skip_locked
        sql += f" {connection.ops.for_update_sql(skip_locked=skip)}"
    parameters = [value for _, values in clauses for value in values]
    return fetch(using, Memory, names, sql, parameters, raw=raw)


def _among(using: str, collection_key: str, keys: Sequence[str] | None) -> Iterator[Clause]:
    if keys is None:
        yield f"{columns(using, Memory, ['collection_key'])} = %s", [collection_key]
    else:  # of the collection anyway: asked for both, a database may take the wrong index
        yield f"{columns(using, Memory, ['key'])} IN ({places(keys)})", keys


def _behind(using: str, after: Place | None) -> Iterator[Clause]:
    if after is not None:
        then, pk = (columns(using, Memory, [name]) for name in ("occurred_at", "pk"))
        # Said twice, because no database walks an index along an OR.
        yield f"{then} >= %s AND ({then} > %s OR {pk} > %s)", [after[0], *after]


def _in_time(using: str, due: datetime | None) -> Iterator[Clause]:
    for name, sign, moment in (("expires_at", ">", timezone.now()), ("not_before", "<=", due)):
        if moment is not None:
            column = columns(using, Memory, [name])
            limit = parameter(using, Memory, name, moment)
            yield f"({column} IS NULL OR {column} {sign} %s)", [limit]


def _without_a_vector(using: str, space: str | None) -> Clause:
    """As ``MemoryQuerySet.unembedded()`` says it."""
    vectors, memory = table(using, Embedding), columns(using, Embedding, ["memory"])
    mine = f"{table(using, Memory)}.{columns(using, Memory, ['pk'])}"
    having = f"SELECT 1 FROM {vectors} WHERE {vectors}.{memory} = {mine}"  # noqa: S608 - names
    parameters = []
    if space is not None:
        pk, key, of = (
            *(columns(using, Space, [name]) for name in ("pk", "key")),
            columns(using, Embedding, ["space"]),
        )
        named = f"SELECT {pk} FROM {table(using, Space)} WHERE {key} = %s"  # noqa: S608 - names
        having += f" AND {vectors}.{of} + 0 = ({named})"
        parameters = [digest("space", space)]
    return f"COALESCE(({having} LIMIT 1), 0) < 1", parameters
