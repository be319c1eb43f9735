"""What the tests of the suite stand on: the store, its oracle, and comparing the two."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.test import TestCase, TransactionTestCase, override_settings

from ..stores import (
    DatabaseStore,
    Durability,
    Matches,
    TableStore,
    VectorMatch,
    VectorQuery,
    VectorRecord,
    VectorStore,
    stores,
)
from .records import query

if TYPE_CHECKING:
    Case = TransactionTestCase
else:
    # Mixed into a TransactionTestCase by whoever uses it, so that importing the suite, which test
    # runners look through, runs nothing.
    Case = object

__all__ = ["Mirrored", "StoreCase", "exactly"]

ALIAS = "conformance"
#: More than any test stores.
ALL = 10**6


def exactly(match: VectorMatch) -> tuple[Any, ...]:
    """All of a match, so that what is equal is equal to the last bit, and ``True`` is not 1."""
    return (
        *(match.collection, match.id, match.content, match.role, match.name, match.kind),
        *(match.occurred_at, json.dumps(match.metadata, sort_keys=True), match.similarity.hex()),
    )


class Mirrored(VectorStore):
    """Writes to two stores that hold records of their own, which must answer the same."""

    def __init__(self, store: VectorStore, oracle: VectorStore) -> None:
        self.pair = store, oracle

    def upsert(self, records: Iterable[VectorRecord]) -> None:
        records = list(records)
        for store in self.pair:
            store.upsert(records)

    def attach(
        self,
        collection: str,
        vectors: Mapping[str, Any],
        space: str,
        *,
        texts: Mapping[str, str] | None = None,
    ) -> int:
        return self._same([s.attach(collection, vectors, space, texts=texts) for s in self.pair])

    def forget(self, collection: str, ids: Iterable[str]) -> int:
        given = ids if isinstance(ids, str) else list(ids)
        return self._same([store.forget(collection, given) for store in self.pair])

    def purge(self, collection: str) -> int:
        return self._same([store.purge(collection) for store in self.pair])

    def purge_occurred_before(self, collection: str, when: datetime) -> int:
        return self._same([store.purge_occurred_before(collection, when) for store in self.pair])

    def purge_expired(self, collection: str | None = None) -> int:
        return self._same([store.purge_expired(collection) for store in self.pair])

    def _same(self, counts: list[int]) -> int:
        mine, exact = counts
        assert mine == exact, f"the store answered {mine}, the exact store {exact}"
        return mine


class StoreCase(Case):
    """Builds and registers the store. See StoreConformance for what to override."""

    keeps_records: bool = False
    keeps_index: bool = False
    reads_all: bool = False
    durability: Durability = Durability.DURABLE
    has_neighbours: bool = True
    has_look_up: bool = True
    has_claims: bool = True

    store: VectorStore
    exact: DatabaseStore
    #: What tests write to: the store, and the oracle too if that does not see the same records.
    writes: VectorStore

    def make_store(self) -> VectorStore:
        """Return the store to be tested; called before every test."""
        raise NotImplementedError

    def make_exact_store(self) -> VectorStore | None:
        """Return the same driver under ``strategy="exact"``, or None if it has no strategies."""
        return None

    def settle(self) -> None:
        """Wait until the store's index has been told all; called before every search."""
        while not self.store.settle():
            pass

    def after_operation(self) -> None:
        """Called after each random operation: assert here what else must always hold."""

    @classmethod
    def setUpClass(cls) -> None:
        if not issubclass(cls, TransactionTestCase) or issubclass(cls, TestCase):
            raise TypeError(
                f"{cls.__qualname__} must inherit from django.test.TransactionTestCase, after the "
                "suite: a TestCase never commits, and some stores are told after the commit."
            )
        super().setUpClass()

    def setUp(self) -> None:
        super().setUp()
        options = {"BACKEND": "prism_memory.stores.DatabaseStore"}
        own = {
            "EMBEDDER": {"BACKEND": "prism_memory.testing.FakeEmbedder"},
            "QUEUE": "inline",
            "REQUIRE_DURABLE": self.durability is Durability.DURABLE,
            "STORE": ALIAS,
            "STORES": {ALIAS: options},
        }
        self.enterContext(override_settings(PRISM_MEMORY=own))
        self.store = self.make_store()
        if isinstance(self.store, TableStore) == self.keeps_records:
            raise TypeError(
                f"keeps_records is {self.keeps_records}, but {type(self.store).__qualname__} is "
                f"{'a' if self.keeps_records else 'no'} TableStore. Set it to "
                f"{not self.keeps_records}."
            )
        if self.store.keeps_index and not self.keeps_index:
            raise TypeError(
                f"{type(self.store).__qualname__} keeps an index. Inherit from "
                "IndexedStoreConformance, which tests that too."
            )
        # Registered, so that all that writes keeps its index in step.
        stores.register(ALIAS, self.store)
        self.addCleanup(stores.unregister, ALIAS)
        bits = self.store.bits if isinstance(self.store, TableStore) else DatabaseStore().bits
        self.exact = DatabaseStore(strategy="exact", bits=bits)
        self.writes = Mirrored(self.store, self.exact) if self.keeps_records else self.store

    def write(self, *records: VectorRecord) -> None:
        """Upsert records."""
        self.writes.upsert(records)

    def search(self, vector: Any = None, **fields: Any) -> Matches:
        """Search, and assert that the answer is in order and every match the exact store's."""
        return self.searched(query(vector, **fields))

    def searched(self, asked: VectorQuery) -> Matches:
        self.settle()
        found = self.store.search(asked)
        self.assertIsInstance(found, Matches)
        self.check_order(found)
        everything = self.exact.search(replace(asked, limit=ALL, min_similarity=None))
        exact = {match.address: exactly(match) for match in everything}
        for match in found:
            self.assertIn(match.address, exact, "a match that the exact store does not find")
            self.assertEqual(exactly(match), exact[match.address])
        return found

    def check_order(self, found: Matches) -> None:
        """Assert that the best come first, ties by id, and none twice."""
        order = [(-match.similarity, match.id, match.collection) for match in found]
        self.assertEqual(order, sorted(order))
        self.assertEqual(len({match.address for match in found}), len(found))

    def found(self, vector: Any = None, **fields: Any) -> list[str]:
        """Search for up to a thousand, and return the ids in order."""
        return [match.id for match in self.search(vector, **{"limit": 1000, **fields})]
