"""Where a benchmark of all stores keeps its rows: servers, tables, indexes, and queries by hand."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from benchmarks.project import sqlite

__all__ = ["STORES", "Server"]

STORES = ["sqlite", "postgresql", "mariadb", "pgvector", "milvus"]
ENGINES = {"postgresql": ("postgresql", "5432", "postgres"), "mariadb": ("mysql", "3306", "root")}
PLAIN = {"BACKEND": "prism_memory.stores.DatabaseStore"}
TABLES = ("memory", "embedding", "signaturepage")


class Server:
    """The database of one kind of store, and the store itself."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.apps: list[str] = []
        self.closing = ExitStack()

    @staticmethod
    def missing(kind: str) -> str | None:
        """Why a store can't be measured here, or None."""
        if kind == "milvus" and "PRISM_TEST_MILVUS" not in os.environ:
            return "PRISM_TEST_MILVUS names no server"
        return None

    def __enter__(self) -> Self:
        if self.kind in ENGINES:
            self.database = _given(self.kind)
        elif self.kind == "pgvector":
            self.apps = ["django.contrib.postgres", "prism_memory.contrib.pgvector"]
            self.database = self._started()
        else:
            self.database = sqlite(self.folder / f"{self.kind}.sqlite3")
        return self

    def __exit__(self, *error: object) -> None:
        from django.db import connections

        connections.close_all()
        self.closing.close()

    def _started(self) -> dict[str, Any]:
        from tools.pgvector_server import Postgres

        server = Postgres(self.folder / "pgvector")
        server.start()
        self.closing.callback(server.stop)
        return {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": str(server.folder),
            "USER": "postgres",
            "NAME": "postgres",
            "TEST": {"NAME": "prism_memory_benchmark"},
        }

    @contextmanager
    def tables(self) -> Iterator[None]:
        """The tables, in a database that is dropped afterwards."""
        from django.core.management import call_command
        from django.db import connection

        if connection.vendor == "sqlite":
            call_command("migrate", verbosity=0)
            yield
            return
        connection.creation.create_test_db(verbosity=0, autoclobber=True)
        try:
            yield
        finally:
            connection.creation.destroy_test_db(self.database["NAME"], verbosity=0)

    def analyse(self) -> None:
        """Let the planner know what a database in use knows."""
        from django.db import connection

        if connection.vendor == "sqlite":
            return
        verb = "ANALYZE" if connection.vendor == "postgresql" else "ANALYZE TABLE"
        with connection.cursor() as cursor:
            for name in TABLES:
                cursor.execute(f"{verb} prism_memory_{name}")
                if connection.vendor == "mysql":
                    cursor.fetchall()

    @contextmanager
    def store(self) -> Iterator[dict[str, float]]:
        """Make the store the one that recalls, its index filled; yields what that took."""
        from django.conf import settings
        from django.test import override_settings

        entry = self._entry()
        if entry is None:
            yield {}
            return
        given = {**settings.PRISM_MEMORY, "STORES": {"default": PLAIN, "indexed": entry}}
        with override_settings(PRISM_MEMORY={**given, "STORE": "indexed"}):
            try:
                yield {"rebuild": _rebuilt()}
            finally:
                _dropped()

    def _entry(self) -> dict[str, Any] | None:
        if self.kind == "pgvector":
            return {"BACKEND": "prism_memory.contrib.pgvector.PgVectorStore"}
        if self.kind == "milvus":
            return {
                "BACKEND": "prism_memory.stores.MilvusStore",
                "OPTIONS": {"uri": os.environ["PRISM_TEST_MILVUS"], "prefix": "benchmark"},
            }
        return None

    def by_hand(self, best: int, many: int) -> dict[str, Callable[[Any], object]]:
        """Queries that are worded for the server, by name."""
        from benchmarks.by_hand import milvus, pgvector

        ways = {"pgvector": pgvector, "milvus": milvus}
        if self.kind not in ways:
            return {}
        return {
            "by hand": ways[self.kind](best, vectors=False),
            "by hand, as many": ways[self.kind](many, vectors=True),
        }


def _rebuilt() -> float:
    """Fill the index of the store; return how many seconds that took."""
    from prism_memory.models import Space
    from prism_memory.stores import default_store
    from prism_memory.stores.rebuilding import rebuild

    store: Any = default_store()
    started = time.perf_counter()
    for space in Space.objects.all():
        rebuild(store, space, fresh=True)
    return time.perf_counter() - started


def _dropped() -> None:
    from prism_memory.models import Space
    from prism_memory.stores import default_store

    store: Any = default_store()
    for space in Space.objects.all():
        store.drop("default", space)


def _given(kind: str) -> dict[str, Any]:
    engine, port, user = ENGINES[kind]

    def given(name: str, default: str) -> str:
        return os.environ.get(f"PRISM_TEST_{kind.upper()}_{name}", default)

    return {
        "ENGINE": f"django.db.backends.{engine}",
        "HOST": given("HOST", "127.0.0.1"),
        "PORT": given("PORT", port),
        "USER": given("USER", user),
        "PASSWORD": given("PASSWORD", ""),
        "NAME": "prism_memory",
        "OPTIONS": {"charset": "utf8mb4"} if kind == "mariadb" else {},
        "TEST": {"NAME": "prism_memory_benchmark"},
    }
