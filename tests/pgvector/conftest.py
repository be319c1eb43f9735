"""Fixtures of the tests against a real PostgreSQL with pgvector."""

from __future__ import annotations

import pytest
from django.db import connection

from prism_memory.contrib.pgvector import PgVectorStore
from prism_memory.stores import stores


@pytest.fixture
def store():
    """A PgVectorStore that is configured, so that all that writes keeps its index in step."""
    store = PgVectorStore()
    stores.register("pg", store)
    yield store
    stores.unregister("pg")


@pytest.fixture
def graphs():
    """A function that lists the names of the graphs. Emptying the tables leaves them standing."""

    def graphs():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT indexname FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%' ORDER BY 1"
            )
            return [name for (name,) in cursor.fetchall()]

    return graphs


@pytest.fixture(autouse=True)
def no_graph_stays(request, graphs):
    yield
    if request.node.get_closest_marker("django_db"):
        with connection.cursor() as cursor:
            for name in graphs():
                cursor.execute(f"DROP INDEX {name}")
