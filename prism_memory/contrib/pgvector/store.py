"""PgVectorStore: nearest by pgvector, in the database of the memories and in its transactions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db import ProgrammingError, connections, router, transaction
from django.db.utils import OperationalError

from ...exceptions import ConfigurationError, IndexUnavailable
from ...models import Embedding
from ...stores.indexed import Entry, IndexedStore
from ...stores.options import whole_number
from . import hnsw
from .hnsw import TABLE, column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...models import IndexState, Space
    from ...stores.searches import Search

__all__ = ["PgVectorStore"]

APP = "prism_memory.contrib.pgvector"
#: The largest that hnsw.ef_search may be.
MOST_EF = 1_000
#: Entries that are written in one statement.
BATCH = 500
#: SQLSTATEs that say that a table, a type, an operator or the extension's library is missing.
MISSING = {"42P01", "42704", "42883", "58P01"}
ROWS = re.compile(r"rows=(\d+)")

INSERT = f"""
    INSERT INTO {TABLE} (embedding_id, memory_id, space_id, collection_key, tokens, vector)
    SELECT held.id, held.memory_id, held.space_id, new.key, new.tokens::bigint[], new.vector::vector
    FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) AS new (id, key, tokens, vector)
    JOIN {Embedding._meta.db_table} AS held ON held.id = new.id
    ORDER BY held.id
    FOR KEY SHARE OF held
    ON CONFLICT DO NOTHING
"""  # noqa: S608 - names of tables


class PgVectorStore(IndexedStore):
    """Nearest by an HNSW index of each space, by cosine.

    ``m`` and ``ef_construction``: of the graphs, as pgvector defines them; they are used when
    ``manage.py memory_rebuild --store ALIAS`` builds a graph. ``ef_search``: how many nodes a
    search keeps in view, at least. Other options: as of IndexedStore.
    """

    def __init__(
        self,
        *,
        m: int = 16,
        ef_construction: int = 64,
        ef_search: int = 400,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.ef_search = _within("ef_search", ef_search, 1, MOST_EF)
        self.m = _within("m", m, 2, 100)
        self.ef_construction = _within("ef_construction", ef_construction, 2 * self.m, 1_000)

    @property
    def place(self) -> str:
        return f"pgvector:{TABLE}"

    def check(self, setting: str) -> list[CheckMessage]:
        found: list[CheckMessage] = []
        using = router.db_for_write(Embedding)
        if connections[using].vendor != "postgresql":
            error = _wrong_vendor(using)
            found.append(Error(f"{setting}: {error.message}", hint=error.hint, id=error.id))
        if find_spec("pgvector") is None:
            found.append(
                Error(
                    f"{setting}: PgVectorStore needs the package pgvector.",
                    hint="Run pip install 'prism-memory-django[pgvector]'.",
                    id="prism_memory_pgvector.E002",
                )
            )
        if not apps.is_installed(APP):
            found.append(
                Error(
                    f"{setting}: PgVectorStore needs the table of an app that is not installed.",
                    hint=f"Add {APP!r} to INSTALLED_APPS, and run manage.py migrate.",
                    id="prism_memory_pgvector.E001",
                )
            )
        return found

    # Reading

    def nearest(self, search: Search, count: int) -> list[int]:
        conditions, given = _conditions(search)
        compared = column(search.space)
        distance = f"{compared.name} <=> %s::{compared.type}"
        with _settings_until_the_end(search.using), _cursor(search.using) as cursor:
            sql = (
                f"SELECT memory_id, {distance} AS distance FROM {TABLE} "  # noqa: S608 - no texts
                f"WHERE {conditions}"
            )
            if _estimated(cursor, conditions, given) > hnsw.few(search.space):
                looked_at = max(count, self.ef_search)
                _look_around(cursor, looked_at)
                sql += f" ORDER BY distance LIMIT {looked_at:d}"
            # The order of a sum is that of no index. For one entry in a hundred, the planner would
            # take the graph, and search most of it; and relaxed order needs sorting once more.
            sql = f"SELECT memory_id FROM ({sql}) AS near ORDER BY distance + 0 LIMIT {count:d}"  # noqa: S608
            cursor.execute(sql, [_text(search.vector), *given])
            return [memory_id for (memory_id,) in cursor.fetchall()]

    def held(self, using: str, space: Space, low: int, high: int | None) -> set[int]:
        sql = f"SELECT embedding_id FROM {TABLE} WHERE space_id = %s AND embedding_id >= %s"  # noqa: S608
        given = [space.pk, low]
        if high is not None:
            sql += " AND embedding_id < %s"
            given.append(high)
        with _cursor(using) as cursor:
            cursor.execute(sql, given)
            return {embedding_id for (embedding_id,) in cursor.fetchall()}

    # Writing

    def index(self, using: str, state: IndexState, entries: Sequence[Entry]) -> None:
        column(state.space)
        with _cursor(using) as cursor:
            for start in range(0, len(entries), BATCH):
                batch = entries[start : start + BATCH]
                columns = [
                    [entry.id for entry in batch],
                    [entry.collection_key for entry in batch],
                    ["{" + ",".join(map(str, entry.tokens)) + "}" for entry in batch],
                    [_text(entry.vector) for entry in batch],
                ]
                cursor.execute(INSERT, columns)

    def unindex(
        self, using: str, state: IndexState, collection_key: str, ids: Sequence[int]
    ) -> None:
        """Do nothing: the foreign key of the table deletes an entry with its embedding."""

    def remove(self, using: str, state: IndexState, ids: Sequence[int]) -> None:
        with _cursor(using) as cursor:
            cursor.execute(f"DELETE FROM {TABLE} WHERE embedding_id = ANY(%s)", [list(ids)])  # noqa: S608

    # Building

    def prepare(self, using: str, space: Space, *, fresh: bool) -> None:
        column(space)
        if fresh:
            self.drop(using, space)

    def drop(self, using: str, space: Space) -> None:
        with _cursor(using) as cursor:
            cursor.execute(f"DELETE FROM {TABLE} WHERE space_id = %s", [space.pk])  # noqa: S608
            built = hnsw.found(cursor, space)
        if built:
            # After the commit: concurrently is the way that holds up nobody.
            transaction.on_commit(partial(self._drop_index, using, space), using=using)

    def finish(self, using: str, space: Space) -> None:
        """Build the graph of a space, unless it is there, holding up neither readers nor writers.

        In a transaction that can't be; there, writers wait until its end.
        """
        with _cursor(using) as cursor:
            hnsw.build(cursor, space, m=self.m, ef_construction=self.ef_construction)
            cursor.execute(f"ANALYZE {TABLE}")

    def _drop_index(self, using: str, space: Space) -> None:
        with _cursor(using) as cursor:
            hnsw.drop(cursor, space)


def _within(option: str, value: object, least: int, most: int) -> int:
    """Return the value of an option that pgvector takes, or raise ConfigurationError."""
    number = whole_number(option, value)
    if not least <= number <= most:
        raise ConfigurationError(f"{option} is {number}. Give a number from {least} to {most}.")
    return number


def _look_around(cursor: Any, looked_at: int) -> None:
    """Set, until the transaction ends, how the graph is searched.

    In relaxed order. Strict order leaves out what is found late: of 100,000 random vectors, 256
    asked for, the best 8 were among them to 77 %, and to 93 % in relaxed order, as fast.
    """
    cursor.execute(
        "SELECT set_config('hnsw.ef_search', %s, true), "
        "set_config('hnsw.iterative_scan', 'relaxed_order', true)",
        [str(min(looked_at, MOST_EF))],
    )


def _conditions(search: Search) -> tuple[str, list[Any]]:
    """Return what entries must fulfil, and the parameters of it."""
    # Written out, for the planner to see that it is the condition of the space's index.
    conditions = [f"space_id = {search.space.pk:d}", "collection_key = ANY(%s)"]
    given: list[Any] = [list(search.collections)]
    # A token names its collection too. So those of all collections can be asked for at once.
    wanted = [search.filter.tokens(name) for name in search.collections.values()]
    for alternatives in zip(*wanted, strict=True):
        conditions.append("tokens && %s::bigint[]")
        given.append(list(chain.from_iterable(alternatives)))
    return " AND ".join(conditions), given


def _estimated(cursor: Any, conditions: str, given: Sequence[Any]) -> int:
    """How many entries the planner expects, by its statistics: no entry is looked at."""
    cursor.execute(f"EXPLAIN SELECT FROM {TABLE} WHERE {conditions}", given)
    [plan] = cursor.fetchone()
    return int(ROWS.findall(plan)[0])


@contextmanager
def _settings_until_the_end(using: str) -> Iterator[None]:
    """A transaction or savepoint that is rolled back, and with it what was set in it."""
    with transaction.atomic(using=using):
        yield
        transaction.set_rollback(True, using=using)


@contextmanager
def _cursor(using: str) -> Iterator[Any]:
    """A cursor whose errors say what to do when the table or the extension is missing."""
    connection = connections[using]
    if connection.vendor != "postgresql":
        raise _wrong_vendor(using)
    try:
        with connection.cursor() as cursor:
            yield cursor
    except (ProgrammingError, OperationalError) as error:
        cause = error.__cause__
        state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
        if state not in MISSING:
            raise
        raise IndexUnavailable(
            f"The database {using!r} lacks the table {TABLE} or the extension vector "
            f"(SQLSTATE {state}). Run manage.py migrate prism_memory_pgvector there; it "
            "installs the extension where the role may, or else let an administrator run CREATE "
            "EXTENSION vector first."
        ) from error


def _wrong_vendor(using: str) -> ConfigurationError:
    return ConfigurationError(
        f"PgVectorStore needs PostgreSQL; the database {using!r}, which holds the memories, is "
        f"{connections[using].vendor}.",
        hint="Use DatabaseStore, or move the memories to PostgreSQL.",
        id="prism_memory_pgvector.E003",
    )


def _text(vector: NDArray[np.float64]) -> str:
    """Write a vector, scaled to length 1, as pgvector reads it: any double then fits a float."""
    scaled = vector / np.abs(vector).max()
    scaled /= np.linalg.norm(scaled)
    return "[" + ",".join(f"{value:.9g}" for value in scaled.tolist()) + "]"
