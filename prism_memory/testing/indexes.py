"""The suite for drivers that keep an index beside the tables: it holds just what the tables do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast
from unittest import mock

from django.db import connections, router, transaction

from ..exceptions import IndexNotReady
from ..models import Embedding, IndexState, Memory, Space
from ..stores import DatabaseStore, IndexedStore, Matches, Search, VectorQuery, remove_space
from ..stores.rebuilding import Difference, compare, rebuild
from .conformance import StoreConformance
from .records import SPACE, at, query, random_vectors, record

if TYPE_CHECKING:
    from django.db.models import QuerySet

__all__ = ["IndexedStoreConformance"]


class IndexedStoreConformance(StoreConformance):
    """The tests of a store that is an IndexedStore: those of all stores, and of its index.

    Before every search, index and tables are compared entry by entry.
    """

    keeps_index = True

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(self._remove_spaces)

    def _remove_spaces(self) -> None:
        """Leave nothing behind in the index, of which a flush of the tables knows nothing."""
        for name in Space.objects.using(self.using).values_list("name", flat=True):
            remove_space(name)

    @property
    def using(self) -> str:
        """The alias of the database that memories are written to."""
        return router.db_for_write(Memory)

    @property
    def index(self) -> IndexedStore:
        """The store, which is an IndexedStore."""
        return cast("IndexedStore", self.store)

    def state_of(self, space: str = SPACE) -> IndexState:
        """The state of the index of a space."""
        states = IndexState.objects.using(self.using).select_related("space")
        return states.get(key=self.index.index_key, space__name=space)

    def searched(self, asked: VectorQuery) -> Matches:
        self.settle()
        self.assert_in_step()
        return super().searched(asked)

    def assert_in_step(self) -> None:
        """Assert that the index holds an entry for every embedding and no other."""
        states = IndexState.objects.using(self.using).filter(key=self.index.index_key)
        for state in states.select_related("space"):
            difference = compare(self.index, state)
            self.assertEqual(difference, Difference(), "the index differs from the tables")

    def held(self) -> set[int]:
        """The ids of all entries of the space of most tests."""
        self.settle()
        return self.index.held(self.using, self.state_of().space, 0, None)

    def embeddings(self) -> QuerySet[Embedding]:
        return Embedding.objects.using(self.using)

    def asked_of_the_index(self, asked: VectorQuery) -> Search:
        """The search with which the index is asked for what is nearest."""
        self.settle()
        with mock.patch.object(self.index, "nearest", wraps=self.index.nearest) as nearest:
            self.store.search(asked)
        self.assertTrue(nearest.called, "a search did not ask the index")
        return cast("Search", nearest.call_args_list[0].args[0])

    def at_ten_thousand(self, asked: Sequence[VectorQuery], exact: Sequence[Matches]) -> None:
        with self.subTest("the index answers in full"):
            search = self.asked_of_the_index(asked[0])
            self.assertEqual(len(set(self.index.nearest(search, 256))), 256)
        with self.subTest("rebuilt"):
            self.rebuild(asked[0].space)
            self.assert_overlap(self.store, asked, exact)

    def rebuild(self, space: str = SPACE, *, fresh: bool = False) -> Difference:
        return rebuild(self.index, self.state_of(space).space, fresh=fresh)

    # What the index is asked

    def test_the_place_of_the_index_needs_no_io(self) -> None:
        with self.assertNumQueries(0):
            place = self.index.place
        self.assertIsInstance(place, str)
        self.assertTrue(place)
        self.assertEqual(self.index.place, place)

    def test_the_nearest_of_the_index(self) -> None:
        """At most so many, of the collections and space asked for, without repeats."""
        names = [f"r{n:02}" for n in range(30)]
        rows = {name: at(1 - n / 20) for n, name in enumerate(names)}
        self.write(*(record(name, row) for name, row in rows.items()))
        self.write(*(record(name, row, "d") for name, row in rows.items()))
        self.writes.attach("c", {name: [1.0, 2.0, 3.0] for name in names}, "narrow")
        mine = Memory.objects.using(self.using).filter(collection="c")
        keys = dict(mine.values_list("pk", "record_id"))
        search = self.asked_of_the_index(query())
        for count in (1, 5, 30, 100):
            found = self.index.nearest(search, count)
            self.assertEqual(len(set(found)), len(found))
            self.assertLessEqual(len(found), count)
            self.assertEqual([keys[pk] for pk in found], names[: len(found)])
        both = self.asked_of_the_index(query(collections=["c", "d"]))
        self.assertLessEqual(len(self.index.nearest(both, 100)), 60)

    def test_the_index_knows_the_filter_at_least_roughly(self) -> None:
        for n in range(40):
            self.write(record(f"r{n}", at(n / 40), metadata={"four": n % 4 == 0, "n": n}))
        filter = {"four": True, "n": list(range(20))}
        search = self.asked_of_the_index(query(filter=filter))
        found = Memory.objects.using(self.using).filter(pk__in=self.index.nearest(search, 40))
        self.assertTrue(found)
        for memory in found:
            self.assertTrue(search.filter.matches(memory.attributes))

    def test_the_entries_between_two_ids(self) -> None:
        self.write(*(record(f"r{n}", row) for n, row in enumerate(random_vectors(10))))
        ids = sorted(self.held())
        self.assertEqual(ids, sorted(self.embeddings().values_list("pk", flat=True)))
        space = self.state_of().space
        for low, high, expected in [
            (ids[3], ids[7], ids[3:7]),
            (ids[3], None, ids[3:]),
            (0, ids[0], []),
            (ids[9] + 1, None, []),
        ]:
            self.assertEqual(self.index.held(self.using, space, low, high), set(expected))

    # In step with the tables

    def test_what_is_rolled_back_is_in_no_index(self) -> None:
        self.write(record("a", at(1)), record("b", at(0.9)))
        with transaction.atomic(using=self.using):
            self.write(record("c", at(0.5)))
            self.writes.forget("c", ["a"])
            transaction.set_rollback(True, using=self.using)
        self.assertEqual(self.found(), ["a", "b"])

    def test_what_other_stores_write_is_in_the_index(self) -> None:
        other = DatabaseStore(bits=self.index.bits)
        other.upsert([record("a", at(1)), record("b", at(0.9)), record("c", at(0.8))])
        self.assertEqual(self.found(), ["a", "b", "c"])
        other.forget("c", ["a"])
        self.assertEqual(self.found(), ["b", "c"])
        self.assertEqual(len(self.held()), 2)

    def test_what_models_delete_leaves_the_index(self) -> None:
        self.write(*(record(f"r{n}", at(1 - n / 10)) for n in range(4)))
        memories = Memory.objects.using(self.using)
        memories.get(record_id="r0").delete()
        memories.filter(record_id="r1").delete()
        self.assertEqual(self.found(), ["r2", "r3"])
        self.assertEqual(len(self.held()), 2)

    def test_another_vector_or_attribute_is_another_entry(self) -> None:
        self.write(record("r", at(1)))
        seen = [self.held()]
        self.write(record("r", at(0.5)))
        seen.append(self.held())
        self.write(record("r", metadata={"k": 1}))
        seen.append(self.held())
        self.assertEqual([len(ids) for ids in seen], [1, 1, 1])
        self.assertEqual(sorted(min(ids) for ids in seen), [min(ids) for ids in seen])
        self.assertEqual(len(set.union(*seen)), 3, "an entry changed")
        self.write(record("r", content="another text"))
        self.assertEqual(self.held(), set())

    def test_a_removed_space_can_come_back(self) -> None:
        self.write(record("r", at(1)), record("s", at(0.9)))
        self.assertEqual(self.found(), ["r", "s"])
        remove_space(SPACE)
        self.writes.attach("c", {"s": at(0.5)}, SPACE)
        self.assertEqual(self.found(), ["s"])

    # Rebuilding

    def test_an_index_that_was_never_compared_is_not_searched(self) -> None:
        self.write(record("r", at(1)))
        self.settle()
        IndexState.objects.using(self.using).update(ready_at=None)
        with self.assertRaises(IndexNotReady):
            self.store.search(query())
        self.assertEqual(self.rebuild(), Difference())
        self.assertEqual(self.found(), ["r"])

    def test_a_rebuild_adds_what_the_index_lacks_and_removes_what_is_gone(self) -> None:
        self.write(*(record(f"r{n}", at(1 - n / 10)) for n in range(6)))
        self.assertEqual(self.rebuild(), Difference())
        ids = dict(self.embeddings().values_list("memory__record_id", "pk"))
        self.index.remove(self.using, self.state_of(), [ids["r0"], ids["r3"]])
        self.assertEqual(self.held(), set(ids.values()) - {ids["r0"], ids["r3"]})
        self.assertEqual(compare(self.index, self.state_of()), Difference(missing=2))
        # Behind the app's back; an index in the same database may hear of it all the same.
        with connections[self.using].cursor() as cursor:
            table = connections[self.using].ops.quote_name(Embedding._meta.db_table)
            cursor.execute(f"DELETE FROM {table} WHERE id = %s", [ids["r5"]])  # noqa: S608
        mended = self.rebuild()
        self.assertEqual(mended.missing, 2)
        self.assertEqual(self.held(), set(ids.values()) - {ids["r5"]})
        self.assertEqual(self.found(), ["r0", "r1", "r2", "r3", "r4"])

    def test_a_fresh_rebuild_fills_the_index_from_nothing(self) -> None:
        self.write(*(record(f"r{n}", at(1 - n / 10)) for n in range(6)))
        ids = self.held()
        self.assertEqual(self.rebuild(fresh=True), Difference(missing=6))
        self.assertEqual(self.held(), ids)
        self.assertEqual(self.found(), [f"r{n}" for n in range(6)])

    def test_preparing_twice_keeps_what_is_there(self) -> None:
        self.write(record("r", at(1)))
        ids = self.held()
        self.index.prepare(self.using, self.state_of().space, fresh=False)
        self.assertEqual(self.held(), ids)
        self.assertEqual(self.found(), ["r"])
