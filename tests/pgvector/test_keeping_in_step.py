"""An entry lives and dies with its embedding, whoever writes or deletes that."""

from __future__ import annotations

import threading

import pytest
from django.db import DatabaseError, connection, transaction

from prism_memory.contrib.pgvector.models import IndexedVector
from prism_memory.exceptions import IndexNotReady, PrismMemoryError
from prism_memory.models import Embedding, IndexState, Memory, Space
from prism_memory.stores import DatabaseStore, remove_space, stores
from prism_memory.stores.entries import read_entries
from prism_memory.stores.rebuilding import compare, rebuild

from ..searching import SPACE, at, ids, query, record

pytestmark = pytest.mark.django_db(transaction=True)


def write(store, *names, cosine=0.5):
    store.upsert(record(name, at(cosine)) for name in names)


def indexed():
    """The record ids whose vectors are in the index."""
    entries = IndexedVector.objects.values_list("embedding__memory__record_id", flat=True)
    return sorted(entries)


def differences(store):
    return compare(store, IndexState.objects.get())


def test_what_is_forgotten_is_gone_from_the_index_in_the_same_transaction(store):
    write(store, "a", "b")
    store.forget("c", ["a"])
    assert indexed() == ["b"]
    store.purge("c")
    assert not IndexedVector.objects.exists()


def test_raw_sql_takes_the_entry_with_the_embedding(store):
    write(store, "a", "b")
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM prism_memory_embedding USING prism_memory_memory AS memory "
            "WHERE memory.id = memory_id AND record_id = 'a'"
        )
    assert indexed() == ["b"]
    assert not differences(store)


def test_another_vector_is_another_entry(store):
    write(store, "a")
    [before] = IndexedVector.objects.values_list("pk", flat=True)
    write(store, "a", cosine=0.9)
    [after] = IndexedVector.objects.values_list("pk", flat=True)
    assert after != before
    assert [round(match.similarity, 9) for match in store.search(query())] == [0.9]


def test_another_attribute_is_found_by_its_filter(store):
    store.upsert([record("a", at(0.5), metadata={"city": "Ulm"})])
    store.upsert([record("a", at(0.5), metadata={"city": "Bonn"})])
    assert ids(store.search(query(filter={"city": "Bonn"}))) == ["a"]
    assert ids(store.search(query(filter={"city": "Ulm"}))) == []
    [entry] = IndexedVector.objects.all()
    [expected] = read_entries("default", Space.objects.get(), [entry.pk])
    assert sorted(entry.tokens) == sorted(expected.tokens)


def test_a_rollback_takes_the_entries_back(store):
    write(store, "a")
    with transaction.atomic():
        write(store, "b")
        store.forget("c", ["a"])
        transaction.set_rollback(True)
    assert indexed() == ["a"]
    assert not differences(store)


def test_no_entry_is_written_for_an_embedding_that_is_gone(store):
    write(store, "a")
    space, state = Space.objects.get(), IndexState.objects.get()
    entries = read_entries("default", space, Embedding.objects.values_list("pk", flat=True))
    store.forget("c", ["a"])
    store.index("default", state, entries)
    assert not IndexedVector.objects.exists()


def test_the_database_refuses_an_entry_without_an_embedding(store):
    with pytest.raises(DatabaseError):
        IndexedVector.objects.create(
            embedding_id=1, memory_id=1, space_id=1, collection_key="c", tokens=[], vector=[1.0]
        )


def test_an_entry_is_written_once(store):
    write(store, "a")
    entries = read_entries("default", Space.objects.get(), [IndexedVector.objects.get().pk])
    store.index("default", IndexState.objects.get(), entries)
    assert IndexedVector.objects.count() == 1


def test_writers_and_forgetters_at_the_same_time_leave_no_difference(store):
    names = [f"{number:02}" for number in range(20)]
    failures = []
    start = threading.Barrier(4)

    def work(act):
        try:
            start.wait()
            for _ in range(5):
                act()
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)
        finally:
            connection.close()

    acts = [
        lambda: write(store, *names),
        lambda: write(store, *reversed(names), cosine=0.7),
        lambda: store.forget("c", names[::2]),
        lambda: store.forget("c", names[::3]),
    ]
    threads = [threading.Thread(target=work, args=[act]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert not differences(store)
    assert indexed() == sorted(Embedding.objects.values_list("memory__record_id", flat=True))


def test_what_another_transaction_deletes_meanwhile_is_not_indexed(store):
    """The writer of an entry waits for who deletes its embedding, and then writes nothing."""
    write(store, "a")
    state = IndexState.objects.get()
    entries = read_entries("default", state.space, [Embedding.objects.get().pk])
    deleted, finish = threading.Event(), threading.Event()

    def delete():
        try:
            with transaction.atomic():
                Embedding.objects.all().delete()
                deleted.set()
                finish.wait(30)
        finally:
            connection.close()

    deleter = threading.Thread(target=delete)
    deleter.start()
    assert deleted.wait(30)
    threading.Timer(0.2, finish.set).start()
    store.index("default", state, entries)
    deleter.join()
    assert finish.is_set()
    assert not IndexedVector.objects.exists()


def test_a_store_that_is_added_later_is_refused_until_it_is_rebuilt(store):
    stores.unregister("pg")
    write(DatabaseStore(), "a", "b")
    stores.register("pg", store)
    with pytest.raises(IndexNotReady, match="memory_rebuild --store pg"):
        store.search(query())
    assert rebuild(store, Space.objects.get()).missing == 2
    assert sorted(ids(store.search(query()))) == ["a", "b"]
    assert not differences(store)


def test_removing_a_space_removes_its_entries_and_its_graph(store, graphs):
    write(store, "a")
    rebuild(store, Space.objects.get())
    assert graphs() != []
    remove_space(SPACE)
    assert not IndexedVector.objects.exists()
    assert graphs() == []


def test_a_space_that_is_too_wide_is_refused_by_name(store):
    with pytest.raises(PrismMemoryError, match="16001 numbers"):
        store.upsert([record("a", at(0.5, 16_001), space="wide@16001")])
    assert not Memory.objects.exists()
