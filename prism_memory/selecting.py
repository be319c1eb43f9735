"""Selecting without a QuerySet what is read for every message.

Django takes ten times as long to word a query as SQLite takes to run it. Here the caller words it,
of the models' names; values and rows are converted by the models' fields, as Django does. Whatever
runs rarely is left to the QuerySets.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from django.db import connections

if TYPE_CHECKING:
    from django.db.models import Field, Model

__all__ = [
    "blob_cursor",
    "columns",
    "fetch",
    "fields",
    "parameter",
    "places",
    "stream",
    "table",
]


def table(using: str, model: type[Model]) -> str:
    """The quoted name of a model's table."""
    return connections[using].ops.quote_name(model._meta.db_table)


def fields(model: type[Model], names: Iterable[str]) -> list[Field[Any, Any]]:
    found: list[Any] = [
        model._meta.pk if name == "pk" else model._meta.get_field(name) for name in names
    ]
    return found


def columns(using: str, model: type[Model], names: Iterable[str]) -> str:
    """The quoted columns of the named fields, as they stand in a SELECT or an INSERT."""
    quote = connections[using].ops.quote_name
    return ", ".join(quote(field.column) for field in fields(model, names))  # type: ignore[arg-type]


def places(values: Sequence[Any]) -> str:
    """As many placeholders as there are values, as they stand in brackets."""
    return ", ".join(["%s"] * len(values))


def parameter(using: str, model: type[Model], name: str, value: Any) -> Any:
    """A value of the named field, as the database's driver takes it."""
    [field] = fields(model, [name])
    return field.get_db_prep_value(value, connections[using])


def fetch(
    using: str,
    model: type[Model],
    names: Sequence[str],
    sql: str,
    parameters: Sequence[Any],
    *,
    raw: Container[str] = (),
) -> list[tuple[Any, ...]]:
    """Run a SELECT of the named fields, and return its rows as ``values_list()`` would.

    But the values of ``raw`` fields as the driver gives them, and as it takes them back.
    """
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = list(cursor.fetchall())
    if not rows:
        return rows
    converted: dict[int, list[Any]] = {}
    for at, field in enumerate(fields(model, names)):
        if field.name in raw:
            continue
        column: Any = field.cached_col
        for convert in (
            *connection.ops.get_db_converters(column),
            *column.get_db_converters(connection),
        ):
            values = converted.get(at) or [row[at] for row in rows]
            converted[at] = [convert(value, column, connection) for value in values]
    if not converted:
        return rows
    read = [converted.get(at) or values for at, values in enumerate(zip(*rows, strict=True))]
    return list(zip(*read, strict=True))


def stream(
    using: str, sql: str, parameters: Sequence[Any], *, size: int
) -> Iterator[list[tuple[Any, ...]]]:
    """Run a SELECT and yield its rows as the driver gives them, up to ``size`` at a time.

    SQLite reads on as rows are taken; the drivers of servers hold all of them at once.
    """
    with blob_cursor(using) as cursor:
        cursor.execute(sql, parameters)
        while rows := cursor.fetchmany(size):
            yield rows


def blob_cursor(using: str) -> Any:
    """A cursor for reading many bytes.

    PostgreSQL sends them in hexadecimal unless it is asked for the binary format: half as much, and
    nothing to decode. Django's own cursors of psycopg 3 can't ask; nor can psycopg 2.
    """
    connection: Any = connections[using]
    if connection.vendor != "postgresql":
        return connection.cursor()
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    if not is_psycopg3:
        return connection.cursor()
    from psycopg import Cursor
    from psycopg.pq import Format

    connection.ensure_connection()
    cursor = Cursor(connection.connection)
    cursor.format = Format.BINARY
    # As Django's own, it counts, logs and turns errors into Django's.
    make = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    return make(cursor)
