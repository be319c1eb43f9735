"""PgVectorStore passes the suite of all stores."""

from __future__ import annotations

from django.test import TransactionTestCase

from prism_memory.contrib.pgvector import PgVectorStore
from prism_memory.testing import IndexedStoreConformance


class TestPgVectorStore(IndexedStoreConformance, TransactionTestCase):
    def make_store(self) -> PgVectorStore:
        return PgVectorStore()

    def make_exact_store(self) -> PgVectorStore:
        return PgVectorStore(strategy="exact")
