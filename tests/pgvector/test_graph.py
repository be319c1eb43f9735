"""The graph of a space: built by the rebuild, used by searches, and how it is asked."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import connection, transaction

from prism_memory.contrib.pgvector import hnsw
from prism_memory.exceptions import IndexNotReady
from prism_memory.models import IndexState, Space
from prism_memory.stores import VectorQuery
from prism_memory.stores.rebuilding import rebuild

from ..commands import run
from ..searching import EXACT, SPACE, ids, query, random_vectors, record
from .plans import planned
from .test_searching import fill, same

pytestmark = pytest.mark.django_db(transaction=True)


def catalogue(name):
    """Whether an index is valid, and how it was made."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index "
            "WHERE indexrelid = to_regclass(%s)",
            [name],
        )
        return cursor.fetchone()


def setting(name):
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s, true)", [name])
        return cursor.fetchone()[0]


@pytest.fixture
def filled(store, monkeypatch):
    """2,000 vectors of one collection, each with a number and one of a thousand codes.

    They are not taken for few, and searches ask for so little that the graph is cheaper.
    """
    monkeypatch.setattr(hnsw, "FEW", 100)
    store.candidates, store.ef_search = 16, 64
    store.upsert(
        record(f"{row:04}", vector, metadata={"code": row % 1_000, "even": row % 2 == 0})
        for row, vector in enumerate(random_vectors(2_000))
    )
    rebuild(store, Space.objects.get())
    return store


def test_the_rebuild_builds_it_and_searches_use_it(filled, graphs):
    [graph] = graphs()
    valid, made = catalogue(graph)
    assert valid
    assert "vector_cosine_ops" in made
    assert "m='16', ef_construction='64'" in made
    asked = query(random_vectors(1, seed=3)[0], limit=10)
    found, plans = planned(filled, asked)
    assert all(f"Index Scan using {graph}" in plan for plan in plans)
    assert plans
    assert same(found, EXACT.search(asked))


def test_the_command_builds_it_by_the_options_of_the_store(store, graphs):
    fill(store, random_vectors(20))
    store.m, store.ef_construction = 8, 32
    assert graphs() == []
    assert run("memory_rebuild", "--store", "pg").code == 0
    _, made = catalogue(*graphs())
    assert "m='8', ef_construction='32'" in made


def test_a_fresh_rebuild_builds_it_anew(filled, graphs):
    filled.m = 8
    assert rebuild(filled, Space.objects.get()).missing == 0
    assert "m='16'" in catalogue(*graphs())[1]
    assert rebuild(filled, Space.objects.get(), fresh=True).missing == 2_000
    assert "m='8'" in catalogue(*graphs())[1]


def test_what_a_stopped_build_left_is_replaced(filled, graphs):
    [graph] = graphs()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)", [graph]
        )
    assert catalogue(graph)[0] is False
    rebuild(filled, Space.objects.get())
    assert catalogue(graph)[0] is True


@pytest.mark.parametrize(
    ("width", "operators"), [(3, "vector"), (384, "vector"), (3072, "halfvec"), (4001, None)]
)
def test_every_space_has_its_own(store, graphs, width, operators):
    """In half precision above 2,000 numbers, and none above 4,000."""
    for other in (3, 384, 3072, 4001):
        fill(store, random_vectors(30, other), f"c{other}", space=f"test@{other}")
    assert run("memory_rebuild", "--store", "pg").code == 0
    assert len(graphs()) == 3
    space = Space.objects.get(width=width)
    made = catalogue(f"prism_memory_pgv_hnsw_{space.pk}")
    assert (made is None) if operators is None else (f"{operators}_cosine_ops" in made[1])
    asked = VectorQuery([f"c{width}"], random_vectors(1, width, 5)[0], space.name, limit=30)
    assert same(EXACT.search(asked), store.search(asked))


def test_a_graph_that_another_process_builds_is_left_alone(store, graphs):
    """A build waits for transactions that may have seen less; until then it can't be replaced."""
    fill(store, random_vectors(20))
    space = Space.objects.get()
    writer = connection.copy()
    writer.set_autocommit(False)
    with writer.cursor() as cursor:
        cursor.execute("UPDATE prism_memory_pgvector_entry SET space_id = space_id")
    failures = []

    def build():
        try:
            store.finish("default", space)
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)
        finally:
            connection.close()

    builder = threading.Thread(target=build)
    builder.start()
    try:
        wait_until(lambda: graphs() != [])
        with pytest.raises(IndexNotReady, match="Another process builds"):
            store.finish("default", space)
    finally:
        writer.rollback()
        writer.close()
        builder.join()
    assert failures == []
    assert catalogue(*graphs())[0] is True


def wait_until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_in_a_transaction_it_is_built_as_well(store, graphs):
    fill(store, random_vectors(20))
    with transaction.atomic():
        store.finish("default", Space.objects.get())
    assert catalogue(*graphs())[0]


@pytest.mark.parametrize("code", [0, 7, 999])
def test_a_rare_filter_fills_the_limit(filled, code):
    asked = query(random_vectors(1, seed=4)[0], filter={"code": code}, limit=2)
    found = filled.search(asked)
    assert sorted(ids(found)) == [f"{code:04}", f"{code + 1_000:04}"]
    assert same(found, EXACT.search(asked))


def test_filters_and_several_collections(filled):
    fill(filled, random_vectors(50, seed=8), "d", metadata={"code": 7, "even": True})
    for filter in ({"even": True}, {"even": True, "code": [7, 8, 9]}, {"code": None}, {"code": []}):
        asked = query(random_vectors(1, seed=4)[0], ["c", "d"], filter=filter, limit=60)
        assert same(filled.search(asked), EXACT.search(asked))


@pytest.mark.parametrize(("few", "graph"), [(1_000, True), (3_000, False)])
def test_a_few_are_compared_one_by_one(filled, monkeypatch, few, graph):
    monkeypatch.setattr(hnsw, "FEW", few)
    asked = query(random_vectors(1, seed=3)[0], limit=10)
    found, [plan] = planned(filled, asked)
    assert ("prism_memory_pgv_hnsw" in plan) is graph
    assert same(found, EXACT.search(asked))


def test_of_wide_vectors_fewer_are_few():
    assert [hnsw.few(Space(width=width)) for width in (3, 384, 1_536)] == [10_000, 10_000, 2_604]


def test_a_small_collection_is_found_behind_a_large_one(filled):
    fill(filled, random_vectors(1)[:1] * -1, "small")
    assert ids(filled.search(query(random_vectors(1)[0], ["small"]))) == ["000000"]


def test_forgotten_rows_never_come_back(filled):
    vectors = random_vectors(2_000)
    for row in range(0, 40, 2):
        filled.forget("c", [f"{row:04}"])
        assert f"{row:04}" not in ids(filled.search(query(vectors[row], limit=50)))


@pytest.mark.parametrize("inside", [True, False])
def test_what_is_set_for_a_search_ends_with_it(filled, inside):
    filled.search(query())  # the library is loaded, so its defaults can be asked for
    with connection.cursor() as cursor:
        cursor.execute("SET hnsw.ef_search = 77")
    if inside:
        with transaction.atomic():
            filled.search(query())
            assert setting("hnsw.ef_search") == "77"
            assert setting("hnsw.iterative_scan") == "off"
    else:
        filled.search(query())
    assert setting("hnsw.ef_search") == "77"
    assert setting("hnsw.iterative_scan") == "off"
    connection.close()


def test_the_transaction_of_the_caller_goes_on(filled):
    with transaction.atomic():
        fill(filled, random_vectors(1, seed=9), "mine")
        filled.search(query())
        IndexState.objects.update(rebuild="")
        filled.search(query())
    assert filled.count("mine") == 1


def test_a_search_writes_nothing(filled):
    """So it works on a replica."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        assert len(filled.search(query(limit=5))) == 5


def test_a_search_asks_for_as_wide_a_look_as_it_needs(filled):
    seen = []

    def note(execute, sql, params, many, context):
        if "hnsw.ef_search" in sql:
            seen.append(params[0])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        filled.candidates = 10
        filled.search(query(limit=1))
        filled.search(query(limit=1_500))
    assert seen == ["64", "1000"]


def test_the_space_is_that_of_the_query(filled):
    fill(filled, random_vectors(3), "other", space="other@8")
    found = filled.search(query(collections=["other"], space="other@8"))
    assert len(found) == 3
    assert SPACE != "other@8"
