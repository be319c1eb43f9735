"""MilvusStore passes the suite that every store with an index passes."""

from __future__ import annotations

import uuid

from django.test import TransactionTestCase

from prism_memory.stores import MilvusStore
from prism_memory.testing import IndexedStoreConformance

from .conftest import drop, milvus


class Recycling(MilvusStore):
    """Empties a Milvus collection where others drop it: a server takes seconds to make one."""

    def collection(self, space):
        # Tests use one name for spaces of different width.
        return f"{super().collection(space)}_{space.width}"

    def prepare(self, using, space, *, fresh):
        if fresh:
            self.drop(using, space)
        super().prepare(using, space, fresh=False)

    def drop(self, using, space):
        if self._call("has_collection", self.collection(space)):
            self._call("delete", self.collection(space), filter="id >= 0")


class TestMilvusStore(IndexedStoreConformance, TransactionTestCase):
    prefix = f"test_{uuid.uuid4().hex}"

    @classmethod
    def tearDownClass(cls):
        drop(milvus(prefix=cls.prefix))
        super().tearDownClass()

    def make_store(self):
        return milvus(Recycling, prefix=self.prefix)

    def make_exact_store(self):
        return milvus(strategy="exact")
