"""Who stands next to a memory in time: a few steps along an index, for a few memories at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.db import connections

from ..models import Memory
from ..timestamps import to_database
from .keys import record_key

if TYPE_CHECKING:
    from .contract import VectorMatch
    from .table import Search

__all__ = ["beside"]

# Each side of each match is a short walk along the index of collection and time. Django writes no
# slices in a UNION for SQLite, and MariaDB's dependent subqueries walk a whole collection; with
# constants every database uses the index. Keys are ASCII digests, so comparing them is safe.
SIDE = """
SELECT * FROM (
    SELECT {position} AS position, {id} AS pk, {key} AS address, {time} AS moment FROM {table}
    WHERE {collection} >= %s AND {collection} <= %s AND {time} >= %s AND {time} <= %s
    AND ({time} {beyond} %s OR {id} {beyond} (SELECT {id} FROM {table} WHERE {key} = %s))
    AND ({expiry} IS NULL OR {expiry} > %s)
    ORDER BY {order} LIMIT {steps}
) AS side_{position}
"""
# Given one collection, MariaDB walks it from its end, and given a range of one, to the right place;
# SQLite the other way about. PostgreSQL may sort the whole half hour for the sake of the last key;
# without it, which of more than two memories of one moment are next is up to its index there.
WHERE_ONE = "{collection} >= %s AND {collection} <= %s", "{collection} = %s AND {collection} = %s"
ORDERS = {
    "mysql": "{collection} {way}, {time} {way}, {id} {way}",
    "postgresql": "{time} {way}",
    "": "{time} {way}, {id} {way}",
}


def beside(
    search: Search, matches: Sequence[VectorMatch], *, steps: int, within: timedelta
) -> list[tuple[VectorMatch, int, str, int]]:
    """Return (match, primary key, key, step) of the live memories beside each match.

    Next ones first, of the same step in the order of the matches. One statement for all of them.
    """
    connection = connections[search.using]

    def value(moment: datetime) -> Any:
        return connection.ops.adapt_datetimefield_value(to_database(moment))

    names = {
        "id": "id", "key": "key", "time": "occurred_at", "expiry": "expires_at",
        "collection": "collection_key", "table": Memory._meta.db_table,
    }  # fmt: skip
    quoted = {name: connection.ops.quote_name(column) for name, column in names.items()}
    side = SIDE if connection.vendor == "mysql" else SIDE.replace(*WHERE_ONE)
    walk = ORDERS.get(connection.vendor, ORDERS[""])
    since = search.occurred_since
    addresses = {name: key for key, name in search.collections.items()}
    statements: list[str] = []
    parameters: list[Any] = []
    alive = value(search.now)
    for match in matches:
        at, key = value(match.occurred_at), record_key(*match.address)
        address = addresses[match.collection]
        first = _shifted(match.occurred_at, -within)
        if since is not None:
            first = max(first, since + timedelta(microseconds=1))
        last = value(_shifted(match.occurred_at, within))
        for beyond, way, bounds in (("<", "DESC", (value(first), at)), (">", "ASC", (at, last))):
            position, order = len(statements), walk.format(way=way, **quoted)
            statements.append(
                side.format(position=position, beyond=beyond, order=order, steps=steps, **quoted)
            )
            parameters += [address, address, *bounds, at, key, alive]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(statements), parameters)
        rows = cursor.fetchall()
    sides: dict[int, list[Any]] = {}
    for row in rows:
        sides.setdefault(row[0], []).append(row)
    found = []
    for position, steps_off in sorted(sides.items()):
        # Before a match the latest is next to it, after it the earliest.
        steps_off.sort(key=itemgetter(3, 1), reverse=position % 2 == 0)
        for step, (_, pk, key, _) in enumerate(steps_off, 1):
            found.append((matches[position // 2], pk, key, step))
    return sorted(found, key=itemgetter(3))


def _shifted(moment: datetime, by: timedelta) -> datetime:
    """A moment some time away, or itself where there is no such moment."""
    try:
        shifted = moment + by
        to_database(shifted)
    except (OverflowError, ValueError):
        return moment
    return shifted
