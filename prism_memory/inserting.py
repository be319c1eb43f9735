"""Inserting many rows without making a model instance of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
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
    given: Mapping[str, Sequence[Any]],
    same: Mapping[str, Any] | None = None,
    *,
    suffix: str = "",
) -> None:
    """Insert rows by one ``executemany``: of each field the values, and those that all rows share.

    What ``bulk_create`` does besides (instances, a long statement a batch, signals' absence) takes
    several times as long as the insert itself. ``suffix`` ends the statement.
    """
    count = len(next(iter(given.values())))
    if not count:
        return
    connection = connections[using]
    names = [*given, *(same or ())]
    values = [*given.values(), *([value] for value in (same or {}).values())]
    prepared = [
        _prepared(connection, field, column)
        for field, column in zip(fields(model, names), values, strict=True)
    ]
    rows = zip(
        *prepared[: len(given)],
        *(repeat(value, count) for [value] in prepared[len(given) :]),
        strict=True,
    )
    into = f"{table(using, model)} ({columns(using, model, names)})"
    sql = f"INSERT INTO {into} VALUES ({places(names)}) {suffix}"  # noqa: S608 - names
    with connection.cursor() as cursor:
        cursor.executemany(sql, list(rows))


def _prepared(connection: Any, field: Field[Any, Any], values: Sequence[Any]) -> Sequence[Any]:
    """The values of one column, as the driver takes them."""
    if set(map(type, values)) <= PLAIN:
        return values
    return [field.get_db_prep_save(value, connection) for value in values]
