"""Transactions that start by writing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import OperationalError, connections, transaction
from django.db.models import Value
from django.db.models.functions import Concat

__all__ = ["LOCK_ORDER", "id_batches", "repeated", "write_transaction"]

BATCH = 5_000

#: The order in which all writers lock memories: two that meet wait, and don't deadlock. It is no
#: index's order: where statistics are stale, a database would go through all of a collection in the
#: order of its index to find a few memories by their keys.
LOCK_ORDER = (Concat("collection_key", Value("")), "key")

Key = TypeVar("Key", int, str)
Result = TypeVar("Result")

ATTEMPTS = 10
#: Seconds up to which the first victim waits, by chance; then up to twice as long, and so on.
FIRST_WAIT = 0.005
#: What MariaDB and PostgreSQL (psycopg: sqlstate, psycopg2: pgcode) call a deadlock.
DEADLOCKS = {1213, "40P01"}


def repeated(using: str, work: Callable[[], Result]) -> Result:
    """Return what ``work``, a whole transaction, returns; do it anew when it met a deadlock.

    All writers lock in one order, but InnoDB also locks the gaps that inserts go to, and picks a
    victim. Inside a transaction of the caller's, which is lost with it, the error is raised.
    """
    for attempt in range(0 if connections[using].in_atomic_block else ATTEMPTS - 1):
        try:
            return work()
        except OperationalError as error:
            cause = error.__cause__
            codes = [getattr(cause, name, None) for name in ("sqlstate", "pgcode")]
            if not DEADLOCKS.intersection([*codes, *error.args[:1]]):
                raise
        # Those that met go on at different times, or they would meet again.
        time.sleep(random.uniform(0, FIRST_WAIT * 2**attempt))  # noqa: S311 - no secret
    return work()


@contextmanager
def write_transaction(using: str) -> Iterator[None]:
    """An ``atomic`` block whose reads can be followed by writes on every database.

    SQLite fails at once with "database is locked", without waiting for its time-out, when a
    transaction reads first, another process commits, and it then writes. Taking the write lock as
    the first thing avoids that. The others lock the rows that they read with FOR UPDATE.
    """
    connection = connections[using]
    begins = connection.get_autocommit() and not connection.in_atomic_block
    immediate = getattr(connection, "transaction_mode", None) in ("IMMEDIATE", "EXCLUSIVE")
    with transaction.atomic(using=using):
        if connection.vendor == "sqlite" and not (begins and immediate):
            from .models import Space

            # Matches no row: it only takes the lock.
            name = connection.ops.quote_name(Space._meta.db_table)
            with connection.cursor() as cursor:
                cursor.execute(f"UPDATE {name} SET width = 0 WHERE id = -1")  # noqa: S608 - a name
        yield


def id_batches(using: str, ids: list[Key]) -> Iterator[list[Key]]:
    """Cut a list of keys into lists that every database takes in one IN (…)."""
    limit = connections[using].features.max_query_params or BATCH
    # Leave room for the other parameters of the statement.
    size = max(1, min(limit - 16, BATCH))
    for start in range(0, len(ids), size):
        yield ids[start : start + size]
