"""System checks: of the settings, and of the databases when ``check --database`` asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from django.core.checks import CheckMessage, Error, Warning
from django.db import DatabaseError, InterfaceError, connections, router

from ...exceptions import PrismMemoryError
from ...models import Space
from . import hnsw
from .models import IndexedVector

if TYPE_CHECKING:
    from .store import PgVectorStore

__all__ = ["check_databases", "check_stores"]

#: From here on iterative scans.
OLDEST = (0, 8)


def check_stores(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that no two stores share the table: a rebuild of one would empty that of the other."""
    aliases = [store.alias for store in _stores()]
    if len(aliases) < 2:
        return []
    return [
        Error(
            f'PRISM_MEMORY["STORES"] has PgVectorStore {len(aliases)} times: '
            f"{', '.join(map(repr, aliases))}. All would use one table.",
            hint="Keep one of them.",
            id="prism_memory_pgvector.E005",
        )
    ]


def check_databases(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Check the extension, and the indexes of large spaces. Of what can't be asked, say nothing."""
    found: list[CheckMessage] = []
    for using in databases or ():
        connection = connections[using]
        if connection.vendor != "postgresql":
            continue
        if not router.allow_migrate_model(using, IndexedVector):
            continue
        for store in _stores():
            try:
                with connection.cursor() as cursor:
                    found += _database(using, store, cursor)
            except (DatabaseError, InterfaceError):
                continue
    return found


def _stores() -> list[PgVectorStore]:
    from ...stores import indexes
    from .store import PgVectorStore

    try:
        return [store for store in indexes.kept() if isinstance(store, PgVectorStore)]
    except PrismMemoryError:
        return []  # the checks of the settings say what is wrong


def _database(using: str, store: PgVectorStore, cursor: Any) -> Iterator[CheckMessage]:
    cursor.execute(
        "SELECT default_version, installed_version, to_regclass(%s) IS NOT NULL "
        "FROM pg_available_extensions WHERE name = 'vector'",
        [hnsw.TABLE],
    )
    available, installed, migrated = cursor.fetchone() or (None, None, False)
    if available is None:
        yield Error(
            f"The server of the database {using!r} has no pgvector, which the store "
            f"{store.alias!r} needs.",
            hint="Install pgvector 0.8 or later on the server, then run manage.py migrate.",
            id="prism_memory_pgvector.E006",
        )
    elif migrated and installed is None:
        yield Error(
            f"The database {using!r} lacks the extension vector, with which the vectors of the "
            f"store {store.alias!r} went.",
            hint=(
                "Run CREATE EXTENSION vector as an administrator, then manage.py migrate "
                "prism_memory_pgvector zero, manage.py migrate, and manage.py memory_rebuild "
                f"--store {store.alias}."
            ),
            id="prism_memory_pgvector.E007",
        )
    elif _version(installed or available) < OLDEST:
        yield Error(
            f"pgvector in the database {using!r} is {installed or available}; the store "
            f"{store.alias!r} needs 0.8 or later.",
            hint=(
                "Install a newer pgvector on the server, then run ALTER EXTENSION vector UPDATE "
                "as an administrator."
            ),
            id="prism_memory_pgvector.E008",
        )
    elif migrated:
        yield from _graphs(using, store, cursor)


def _graphs(using: str, store: PgVectorStore, cursor: Any) -> Iterator[CheckMessage]:
    for space in Space.objects.using(using).order_by("pk"):
        if space.width > hnsw.HALF:
            continue
        graph = hnsw.found(cursor, space)
        if graph and (graph.valid or graph.building):
            continue
        cursor.execute(
            f"SELECT count(*) FROM (SELECT FROM {hnsw.TABLE} WHERE space_id = %s LIMIT %s) AS e",  # noqa: S608
            [space.pk, hnsw.few(space) + 1],
        )
        [count] = cursor.fetchone()
        if count > hnsw.few(space):
            yield Warning(
                f"The index {hnsw.name_of(space.pk)} in the database {using!r} is "
                f"{'invalid' if graph else 'missing'}, so the store {store.alias!r} reads all "
                f"vectors of a large collection in the space {space.name!r}.",
                hint=f"Run manage.py memory_rebuild --store {store.alias}.",
                id="prism_memory_pgvector.W001",
            )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])
