"""The driver against a real Milvus: what it sends, finds and takes away."""

from __future__ import annotations

import numpy as np
import pytest

from prism_memory.models import Embedding, IndexChange, Space
from prism_memory.stores import Entry, stores
from prism_memory.testing.clustered import clustered
from tests.searching import EXACT, SPACE, at, ids, query, record

from .conftest import LITE, milvus

pytestmark = pytest.mark.django_db(transaction=True)

ALL = (0, None)


def held(store, low=0, high=None, space=SPACE):
    return store.held("default", Space.objects.get(name=space), low, high)


def in_table(space=SPACE):
    return set(Embedding.objects.filter(space__name=space).values_list("pk", flat=True))


class TestInStep:
    def test_what_is_written_is_found_at_once(self, store):
        store.upsert([record(f"r{n}", at(n / 10)) for n in range(10)])
        assert not IndexChange.objects.exists()
        assert held(store) == in_table()
        assert ids(store.search(query(limit=3))) == ["r9", "r8", "r7"]
        nearest = store.nearest(_search(store), 3)
        assert len(nearest) == 3

    def test_what_is_forgotten_leaves(self, store):
        store.upsert([record(f"r{n}", at(n / 10)) for n in range(10)])
        store.forget("c", ["r9", "r3"])
        assert ids(store.search(query(limit=2))) == ["r8", "r7"]
        assert held(store) == in_table()
        store.purge("c")
        assert held(store) == set()

    def test_a_new_vector_replaces_the_old(self, store):
        store.upsert([record("a", at(0.1)), record("b", at(0.5))])
        store.upsert([record("a", at(0.9))])
        assert ids(store.search(query())) == ["a", "b"]
        assert held(store) == in_table()

    def test_collections_are_searched_together_and_apart(self, store):
        store.upsert(record("a", at(0.5), collection=name) for name in ("one", "two", "three"))
        for names in (["one"], ["one", "three"]):
            assert len(store.nearest(_search(store, names), 10)) == len(names)
            found = store.search(query(collections=names))
            assert {match.collection for match in found} == set(names)

    def test_spaces_of_different_width_live_side_by_side(self, store):
        store.upsert(
            [record("a", at(0.5)), record("b", [1.0, 0.0, 0.0], space="three", content="b")]
        )
        assert held(store) == in_table()
        assert held(store, space="three") == in_table("three")

    def test_the_verbs_of_a_handle(self, chosen, memory):
        kept, dropped = memory.remember(["we ship on Mondays", "we ship on Sundays"])
        memory.forget([dropped])
        assert [found.id for found in memory.recall("when do we ship?")] == [kept]
        memory.forget()
        assert not memory.recall("when do we ship?")


class TestEntries:
    """What is sent as it stands, past the tables."""

    @pytest.fixture
    def space(self, store):
        space = Space.objects.create(name=SPACE, width=8, bits=256)
        store.prepare("default", space, fresh=True)
        return space

    def entries(self, numbers, tokens=()):
        vectors = np.random.default_rng(0).standard_normal((max(numbers) + 1, 8))
        return [Entry(n, 10 * n, "k" * 64, vectors[n], list(tokens)) for n in numbers]

    def test_sending_again_changes_nothing(self, store, space):
        entries = self.entries(range(1, 20))
        for _ in range(3):
            store.send(space, entries)
        assert store.held("default", space, *ALL) == set(range(1, 20))
        found = store.nearest(_search(store, key="k" * 64, space=space), 100)
        assert sorted(found) == [10 * n for n in range(1, 20)]

    def test_what_is_not_there_is_withdrawn_in_vain(self, store, space):
        store.send(space, self.entries(range(1, 20)))
        store.withdraw(space, [3, 4, 1_000_000])
        store.withdraw(space, [3])
        assert store.held("default", space, *ALL) == set(range(1, 20)) - {3, 4}

    def test_ids_are_held_in_a_range(self, store, space):
        store.send(space, self.entries(range(1, 20)))
        assert store.held("default", space, 5, 8) == {5, 6, 7}
        assert store.held("default", space, 18, None) == {18, 19}
        assert store.held("default", space, 100, None) == set()

    def test_more_ids_than_one_answer_takes(self, store, space, monkeypatch):
        store.send(space, self.entries(range(1, 200)))
        monkeypatch.setattr(store, "most", 64)
        assert store.held("default", space, *ALL) == set(range(1, 200))
        assert store.held("default", space, 50, 150) == set(range(50, 150))

    def test_more_tokens_than_an_array_takes_match_any_filter(self, store, space):
        few, many = self.entries([1], range(1, 6)), self.entries([2], range(10_000))
        store.send(space, few + many)
        search = _search(store, key="k" * 64, space=space, filter={"k": "v"})
        assert store.nearest(search, 10) == [20]

    def test_preparing_again_keeps_what_is_there_and_afresh_drops_it(self, store, space):
        store.send(space, self.entries(range(1, 5)))
        store.prepare("default", space, fresh=False)
        assert store.held("default", space, *ALL) == {1, 2, 3, 4}
        store.prepare("default", space, fresh=True)
        assert store.held("default", space, *ALL) == set()

    def test_a_space_is_dropped(self, store, space):
        store.drop("default", space)
        assert not store._connection.call("has_collection", store.collection(space))
        store.drop("default", space)


@pytest.mark.parametrize("factor", [1e150, 1e-140])
def test_vectors_beyond_single_precision(store, factor):
    rng = np.random.default_rng(0)
    vectors = factor * rng.standard_normal((50, 8))
    store.upsert(record(f"r{n}", vector) for n, vector in enumerate(vectors))
    wanted = query(factor * rng.standard_normal(8), limit=5)
    assert ids(store.search(wanted)) == ids(EXACT.search(wanted))
    assert len(store.nearest(_search(store, vector=wanted.vector), 50)) == 50


def test_vectors_of_one_number(store):
    store.upsert([record("a", [2.0], space="one"), record("b", [-1.0], space="one", content="b")])
    assert ids(store.search(query([1.0], space="one"))) == ["a", "b"]


def test_ten_thousand_rows(store):
    """Near enough the exact neighbours, also by a filter that one row in a thousand passes."""
    vectors, queries = clustered(10_000, dimensions=64, queries=25)
    store.upsert(
        record(f"r{n}", vector, metadata={"n": n % 1000, "even": n % 2 == 0})
        for n, vector in enumerate(vectors)
    )
    assert held(store) == in_table()

    def overlap(**conditions):
        shares = []
        for vector in queries:
            wanted = query(vector, limit=8, **conditions)
            exact, found = EXACT.search(wanted), store.search(wanted)
            assert len(found) == 8
            scores = {match.id: match.similarity for match in exact}
            assert all(
                match.similarity == scores.get(match.id, match.similarity) for match in found
            )
            shares.append(len({*ids(found)} & {*ids(exact)}) / 8)
        return sum(shares) / len(shares)

    assert overlap() >= 0.99
    assert overlap(filter={"n": 7, "even": False}) == 1.0
    # What was just written is in segments without a graph; this builds it.
    space = Space.objects.get(name=SPACE)
    store.finish("default", space)
    if not LITE:  # which has no segments
        segments = store._connection.call("list_loaded_segments", store.collection(space))
        assert {segment.state.name for segment in segments} == {"Sealed"}
        assert sum(segment.num_rows for segment in segments) == 10_000
    assert overlap() >= 0.99
    assert overlap(filter={"n": [7, 8], "even": True}) == 1.0
    if not LITE:  # whose graph gives up on a rare filter
        assert len(store.nearest(_search(store, filter={"n": 7}, vector=queries[0]), 256)) == 10
    assert len(store.nearest(_search(store, vector=queries[0]), store.most)) == 10_000


def test_the_exact_strategy_asks_nobody():
    stores.register("nowhere", milvus(uri="http://127.0.0.1:9", strategy="exact"))
    try:
        EXACT.upsert([record("a", at(0.5))])
        assert ids(stores["nowhere"].search(query())) == ["a"]
    finally:
        stores.unregister("nowhere")


def _search(store, names=("c",), key=None, space=None, filter=None, vector=None):
    """A search as the base class would make it."""
    from django.utils import timezone

    from prism_memory.filters import Filter
    from prism_memory.stores import Search
    from prism_memory.stores.keys import collection_key

    collections = {key or collection_key(name): name for name in names}
    space = space or Space.objects.get(name=SPACE)
    vector = np.asarray(at(1) if vector is None else vector, float)
    return Search(
        "default", collections, space, vector, Filter.of(filter), 256, timezone.now(), None
    )
