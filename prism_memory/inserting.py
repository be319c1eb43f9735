"""Inserting many rows without making a model instance of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

from django.db import connections

from .selecting import columns, fields, places, table

if TYPE_CHECKING:
    from django.db.models import Field, Model

__all__ = ["insert"]

#: What every driver takes as it is, for whatever field it is meant.
PLAIN = {int, str, bytes, NoneType}


def insert(
    using: str,
    model: type[Model],
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    suffix: str = "",
) -> None:
    """Insert rows, given as the values of the named fields, by one ``executemany``.

    What ``bulk_create`` does besides (instances, a long statement a batch, signals' absence) takes
    several times as long as the insert itself. ``suffix`` ends the statement.
    """
    values = list(zip(*rows, strict=True))
    if not values:
        return
    connection = connections[using]
    prepared = [
        _prepared(connection, field, column)
        for field, column in zip(fields(model, names), values, strict=True)
    ]
    into = f"{table(using, model)} ({columns(using, model, names)})"
    sql = f"INSERT INTO {into} VALUES ({places(names)}) {suffix}"  # noqa: S608 - names
    with connection.cursor() as cursor:
        cursor.executemany(sql, list(zip(*prepared, strict=True)))


def _prepared(connection: Any, field: Field[Any, Any], values: Sequence[Any]) -> Sequence[Any]:
    """The values of one column, as the driver takes them."""
    if set(map(type, values)) <= PLAIN:
        return values
    return [field.get_db_prep_save(value, connection) for value in values]
