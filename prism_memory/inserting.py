"""Inserting many rows without making a model instance of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from django.db import connections

if TYPE_CHECKING:
    from django.db.models import Model

__all__ = ["insert"]


def insert(
    using: str, model: type[Model], names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Insert rows, given as the values of the named fields, by one ``executemany``.

    What ``bulk_create`` does besides (instances, a long statement a batch, signals' absence) takes
    several times as long as the insert itself.
    """
    connection = connections[using]
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    places = ", ".join(["%s"] * len(fields))
    parameters = [
        [
            field.get_db_prep_save(value, connection)
            for field, value in zip(fields, row, strict=True)
        ]
        for row in rows
    ]
    if parameters:
        with connection.cursor() as cursor:
            table = quote(model._meta.db_table)
            sql = f"INSERT INTO {table} ({columns}) VALUES ({places})"  # noqa: S608 - names
            cursor.executemany(sql, parameters)
