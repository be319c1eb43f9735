"""Filling an index in Milvus from the tables, and a Milvus that lost what it held."""

from __future__ import annotations

import pytest

from prism_memory import jobs
from prism_memory.exceptions import IndexNotReady, IndexUnavailable
from prism_memory.models import Embedding, IndexChange, Space
from prism_memory.stores import stores
from tests.commands import run
from tests.searching import EXACT, SPACE, at, ids, query, record

pytestmark = pytest.mark.django_db(transaction=True)


def held(store):
    return store.held("default", Space.objects.get(name=SPACE), 0, None)


def in_table():
    return set(Embedding.objects.values_list("pk", flat=True))


def lose(store):
    """What a server without a disk of its own does when it is started anew."""
    for name in store._connection.call("list_collections"):
        if name.startswith(store.prefix):
            store._connection.call("drop_collection", name)


def test_a_store_that_came_later_is_filled_and_then_searched(store):
    stores.unregister("milvus")
    EXACT.upsert([record(f"r{n}", at(n / 30)) for n in range(30)])
    stores.register("milvus", store)
    with pytest.raises(IndexNotReady, match="memory_rebuild --store milvus"):
        store.search(query())
    ran = run("memory_rebuild", "--store", "milvus")
    assert ran.code == 0, ran.err
    assert "30 vectors compared, 30 added, 0 removed" in ran.out
    assert held(store) == in_table()
    assert ids(store.search(query(limit=2))) == ["r29", "r28"]


def test_it_is_compared_both_ways(store):
    store.upsert([record(f"r{n}", at(n / 30)) for n in range(30)])
    space = Space.objects.get(name=SPACE)
    gone, *others = sorted(in_table())
    store.withdraw(space, [gone])
    Embedding.objects.filter(pk=others[0])._raw_delete("default")
    ran = run("memory_rebuild", "--store", "milvus")
    assert "29 vectors compared, 1 added, 1 removed" in ran.out
    assert held(store) == in_table()


def test_a_server_that_was_wiped_is_refused_and_filled_again(store):
    store.upsert([record(f"r{n}", at(n / 30)) for n in range(30)])
    lose(store)
    with pytest.raises(IndexUnavailable, match="memory_rebuild --store milvus") as caught:
        store.search(query())
    assert store.place in str(caught.value)
    # Nothing is written into an index that would then look complete.
    store.upsert([record("new", at(1))])
    store.forget("c", ["r3"])
    assert store.untold() == (1, 1)
    with pytest.raises(IndexUnavailable, match="has no collection"):
        store.search(query())
    IndexChange.objects.update(claimed_until=None)
    assert run("memory_rebuild", "--store", "milvus").code == 0
    assert held(store) == in_table()
    assert store.untold() == (0, 0)
    assert ids(store.search(query(limit=2))) == ["new", "r29"]


def test_a_rebuild_afresh_drops_what_was_there(store):
    store.upsert([record(f"r{n}", at(n / 30)) for n in range(30)])
    ran = run("memory_rebuild", "--store", "milvus", "--fresh")
    assert "30 added" in ran.out
    assert held(store) == in_table()


def test_a_collection_without_its_graph_is_finished(store):
    """Whoever prepared it was killed on the way."""
    store.upsert([record("a", at(0.5))])
    name = store.collection(Space.objects.get(name=SPACE))
    store._connection.call("release_collection", name)
    store._connection.call("drop_index", name, "vector")
    store.prepare("default", Space.objects.get(name=SPACE), fresh=False)
    assert ids(store.search(query())) == ["a"]


def test_a_collection_that_is_not_in_memory_is_loaded(store):
    store.upsert([record("a", at(0.5))])
    name = store.collection(Space.objects.get(name=SPACE))
    store._connection.call("release_collection", name)
    assert len(store.search(query())) == 1
    assert held(store) == in_table()


def test_what_a_crash_left_untold_is_told_by_the_next_job(store, monkeypatch):
    with monkeypatch.context() as crash:
        crash.setattr(jobs, "_settle_inline", lambda deadline: None)
        store.upsert([record("a", at(0.9)), record("b", at(0.5))])
        store.forget("c", ["b"])
    assert IndexChange.objects.count() == 4
    jobs.embed_collection("default", "another")
    assert held(store) == in_table()
    assert ids(store.search(query())) == ["a"]


def test_nothing_forgotten_is_returned_before_milvus_hears_of_it(store, monkeypatch):
    store.upsert([record("a", at(0.9)), record("b", at(0.5))])
    monkeypatch.setattr(jobs, "_settle_inline", lambda deadline: None)
    store.forget("c", ["a"])
    assert len(held(store)) == 2
    assert store.untold().to_remove == 1
    assert ids(store.search(query())) == ["b"]
    store.settle()
    assert held(store) == in_table()
