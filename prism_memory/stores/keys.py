"""The digests by which rows are addressed, and reading rows by them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from django.db import connections

from ..digests import digest
from ..models import Memory, Space
from ..selecting import columns, fetch, places, table
from ..transactions import Key

__all__ = ["collection_key", "find_space", "in_batches", "read", "record_key", "space_key"]

#: Rows of one statement: a few times the size of a long conversation.
BATCH = 500


def collection_key(collection: str) -> str:
    """The digest by which queries address a collection."""
    return digest("collection", collection)


def record_key(collection: str, record_id: str) -> str:
    """The digest that makes a record unique: of its collection and id, to the letter."""
    return digest("record", collection, record_id)


def space_key(space: str) -> str:
    return digest("space", space)


def in_batches(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    return (keys[start : start + BATCH] for start in range(0, len(keys), BATCH))


def read(
    using: str,
    names: Sequence[str],
    keys: Sequence[str] | Sequence[int],
    *,
    by: str = "key",
    lock: bool,
    raw: Container[str] = (),
) -> list[tuple[Any, ...]]:
    """Read memories by their keys, or by another field; ``raw``: see ``selecting.fetch()``.

    Locked, if so wished, in the order in which all writers lock.
    """
    sql = (
        f"SELECT {columns(using, Memory, names)} FROM {table(using, Memory)} "  # noqa: S608 - names
        f"WHERE {columns(using, Memory, [by])} IN ({places(keys)})"
    )
    if lock and connections[using].features.has_select_for_update:
        # LOCK_ORDER, in words.
        collection, key = (columns(using, Memory, [name]) for name in ("collection_key", "key"))
        sql += f" ORDER BY CONCAT({collection}, ''), {key} "
        sql += connections[using].ops.for_update_sql()
    return fetch(using, Memory, names, sql, keys, raw=raw)


def find_space(using: str, name: str) -> Space | None:
    names = ["id", "key", "name", "width", "bits"]
    sql = (
        f"SELECT {columns(using, Space, names)} FROM {table(using, Space)} "  # noqa: S608 - names
        f"WHERE {columns(using, Space, ['key'])} = %s"
    )
    rows = fetch(using, Space, names, sql, [space_key(name)])
    return Space.from_db(using, names, rows[0]) if rows else None
