"""Fixtures of the tests against a real PostgreSQL with pgvector."""

from __future__ import annotations

import pytest

from prism_memory.contrib.pgvector import PgVectorStore
from prism_memory.stores import stores


@pytest.fixture
def store():
    """A PgVectorStore that is configured, so that all that writes keeps its index in step."""
    store = PgVectorStore()
    stores.register("pg", store)
    yield store
    stores.unregister("pg")
