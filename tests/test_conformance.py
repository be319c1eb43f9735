"""The stores of this package pass the suite that it ships, and broken ones don't."""

from __future__ import annotations

from django.test import TransactionTestCase

from prism_memory.stores import DatabaseStore, Durability
from prism_memory.testing import IndexedStoreConformance, StoreConformance

from .dict_store import DictStore
from .remote_index import RemoteIndex


class TestDatabaseStore(StoreConformance, TransactionTestCase):
    def make_store(self):
        return DatabaseStore()

    def make_exact_store(self):
        return DatabaseStore(strategy="exact")


class TestExactDatabaseStore(StoreConformance, TransactionTestCase):
    reads_all = True

    def make_store(self):
        return DatabaseStore(strategy="exact")


class TestRemoteIndex(IndexedStoreConformance, TransactionTestCase):
    def make_store(self):
        return RemoteIndex()

    def make_exact_store(self):
        return RemoteIndex(strategy="exact")


class TestDictStore(StoreConformance, TransactionTestCase):
    keeps_records = reads_all = True
    durability = Durability.VOLATILE
    has_neighbours = has_look_up = has_claims = False

    def make_store(self):
        return DictStore()
