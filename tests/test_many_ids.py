"""Calls with more ids than any database takes in one statement."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from prism_memory.digests import digest
from prism_memory.models import Embedding, Memory
from prism_memory.stores import DatabaseStore
from prism_memory.stores.database import DatabaseStore as Store
from tests.invariants import check_tables
from tests.searching import SPACE, at, ids, query, record

pytestmark = pytest.mark.django_db

#: SQLite takes 32,766 parameters (250,000 as Debian builds it), PostgreSQL 65,535.
MANY = 33_000
NAMES = [f"r{n:05}" for n in range(MANY)]
STRANGERS = [f"unknown {n}" for n in range(70_000)]


@pytest.fixture
def store() -> Store:
    store = DatabaseStore()
    store.upsert([record("first", at(0.9)), record("last", at(0.8)), record("waiting")])
    return store


def test_writing_reading_and_erasing_that_many() -> None:
    store = DatabaseStore()
    store.upsert(record(name) for name in NAMES)
    assert store.count("c") == store.pending("c", SPACE) == MANY
    assert len(store.unembedded("c", None, ids=NAMES)) == MANY
    assert store.attach("c", dict.fromkeys(NAMES, at(0.5)), SPACE) == MANY
    assert store.unembedded("c", None, space=SPACE, ids=NAMES) == []
    keys = [digest("record", "c", name) for name in NAMES]
    assert sorted(ids(store.look_up(query(), keys))) == NAMES
    # Again, with new attributes: all rows are compared, and all change.
    store.upsert(record(name, metadata={"k": 1}) for name in NAMES)
    assert len(store.search(query(limit=MANY, filter={"k": 1}))) == MANY
    assert store.forget("c", NAMES) == MANY
    assert not Memory.objects.exists()
    assert not Embedding.objects.exists()
    check_tables()


def test_few_among_many_strangers(store: Store) -> None:
    names = ["first", *STRANGERS, "waiting", "last"]
    assert ids(store.unembedded("c", None, space=SPACE, ids=names)) == ["waiting"]
    found = store.look_up(query(), [digest("record", "c", name) for name in names])
    assert sorted(ids(found)) == ["first", "last"]
    assert store.attach("c", dict.fromkeys(names, at(0.1)), SPACE) == 3
    assert store.forget("c", names) == 3


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="Of PostgreSQL's planner.")
@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda store: store.unembedded("c", None, space=SPACE, ids=NAMES[:500]), []),
        (lambda store: store.claim("c", 500, space=SPACE, seconds=0), []),
        (lambda store: store.in_work("c", space=SPACE), False),
        (lambda store: store.pending("c", SPACE), 0),
    ],
    ids=["unembedded", "claim", "in_work", "pending"],
)
def test_vectors_are_looked_up_one_by_one_whatever_the_statistics_say(ask, answer) -> None:
    store = DatabaseStore()
    store.upsert(record(name, at(0.5)) for name in NAMES[:2_000])
    with CaptureQueriesContext(connection) as queries:
        assert ask(store) == answer
    [sql] = [query["sql"] for query in queries if "COALESCE" in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}".replace("%", "%%"))
        plan = "\n".join(line for [line] in cursor.fetchall())
    assert "SubPlan" in plan
    assert "Join" not in plan
    assert "embedding_space_id" not in plan
    assert "(space_id + 0)" in plan  # compared, and no index asked for it


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="Others decide by statistics.")
def test_the_oldest_that_wait_are_found_without_sorting() -> None:
    store = DatabaseStore()
    store.upsert(record(name) for name in NAMES[:200])
    with CaptureQueriesContext(connection) as queries:
        *_, last = store.waiting("c", 10, space=SPACE)
        store.waiting("c", 10, space=SPACE, after=last)
    asked = [query["sql"] for query in queries if "ORDER BY" in query["sql"]]
    assert len(asked) == 2
    for sql in asked:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}".replace("%", "%%"))
            plan = "\n".join(row[-1] for row in cursor.fetchall())
        assert "prism_memory_collection" in plan
        assert "ORDER BY" not in plan  # as "USE TEMP B-TREE FOR ORDER BY"


def test_a_conversation_that_long(memory) -> None:
    given = [f"Message {n}." for n in range(MANY)]
    kept = memory.remember(given)
    assert (len(set(kept)), memory.count(), memory.pending()) == (MANY, MANY, 0)
    assert memory.remember(given[::-1]) == kept[::-1]
    assert memory.count() == MANY
    order = memory.records().order_by("occurred_at").values_list("content", flat=True)
    assert list(order) == given
    assert memory.forget(kept) == MANY
