"""MilvusStore passes the suite of all stores."""

from __future__ import annotations

from django.test import TransactionTestCase

from prism_memory.testing import IndexedStoreConformance

from .conftest import drop, milvus


class TestMilvusStore(IndexedStoreConformance, TransactionTestCase):
    def make_store(self):
        store = milvus()
        self.addCleanup(drop, store)
        return store

    def make_exact_store(self):
        return milvus(strategy="exact")
