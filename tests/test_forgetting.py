"""Forgetting: gone for good, with true counts, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from prism_memory.exceptions import InvalidIdentifier, InvalidTimestamp
from prism_memory.models import Embedding, Memory, SignaturePage
from prism_memory.stores import stores
from prism_memory.timestamps import to_database
from tests.invariants import check_tables
from tests.searching import random_vectors, record

pytestmark = pytest.mark.django_db
WHEN = datetime(2026, 1, 1, tzinfo=UTC)
STEP = timedelta(microseconds=1)
TABLES = [Memory, Embedding, SignaturePage]


def everything() -> Iterator[bytes]:
    """Every value of every table, as bytes."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            for row in cursor.fetchall():
                for value in row:
                    is_bytes = isinstance(value, bytes | memoryview | bytearray)
                    yield bytes(value) if is_bytes else str(value).encode()


def traces(*needles: bytes) -> list[bytes]:
    return [value for value in everything() if any(needle in value for needle in needles)]


class TestByIds:
    def test_the_count_is_of_rows_that_went(self, memory) -> None:
        ids = memory.remember([f"text {n}" for n in range(5)])
        assert memory.forget([]) == 0
        assert memory.forget(["unknown", ""]) == 0
        assert memory.forget([ids[0], ids[0], "unknown"]) == 1
        assert memory.forget(iter(ids[:3])) == 2
        assert memory.forget(tuple(ids)) == 2
        assert memory.forget(ids) == 0
        assert memory.count() == 0
        check_tables()

    @pytest.mark.parametrize("ids", [None, "x", "", 7, [None], ["a", 1], b"x", [b"x"], [["x"]]])
    def test_what_is_no_list_of_ids_is_refused(self, memory, ids: Any) -> None:
        memory.remember("x")
        with pytest.raises(InvalidIdentifier, match="ids"):
            memory.forget(ids)
        with pytest.raises(InvalidIdentifier, match="ids"):
            stores["default"].forget(memory.collection, ids)
        assert memory.count() == 1

    def test_an_id_of_another_collection_is_no_id(self, memory, user) -> None:
        ids = memory.remember("x")
        other = Memory.objects.for_owner(user, scope="other").synchronously()
        assert other.remember("x") == ids
        assert other.forget(ids) == 1
        assert memory.count() == len(memory.recall("x")) == 1

    def test_more_ids_than_a_statement_takes(self, memory) -> None:
        ids = memory.remember(["kept", "first", "last"])
        many = [ids[1], *(f"unknown {n}" for n in range(33_000)), ids[2]]
        assert memory.forget(many) == 2
        assert len(memory.recall("kept")) == 1
        check_tables()


def test_everything_is_of_this_owner_and_scope_only(memory, user, django_user_model) -> None:
    others = [
        Memory.objects.for_owner(user, scope="Default").synchronously(),
        Memory.objects.for_owner(django_user_model.objects.create_user("ann")).synchronously(),
        Memory.objects.for_owner(str(user.pk)).synchronously(),
    ]
    for handle in (memory, *others):
        handle.remember(["one", "two"])
    assert memory.forget() == 2
    assert memory.forget() == 0
    assert [handle.count() for handle in others] == [2, 2, 2]
    assert [len(handle.recall("one")) for handle in others] == [2, 2, 2]
    check_tables()


class TestBefore:
    def test_is_strict_and_by_when_it_happened(self, memory) -> None:
        memory.remember(["before", "at", "after"], occurred_at=[WHEN - STEP, WHEN, WHEN + STEP])
        Memory.objects.filter(content="after").update(
            created_at=to_database(WHEN - timedelta(days=9))
        )
        Memory.objects.filter(content="before").update(
            created_at=to_database(WHEN + timedelta(days=9))
        )
        assert memory.forget_before(WHEN) == 1
        assert {row.content for row in memory.records()} == {"at", "after"}
        assert memory.forget_before("2026-01-01T00:00:00.000001Z") == 1
        assert memory.forget_before(WHEN + timedelta(days=1)) == 1
        check_tables()

    @pytest.mark.parametrize("when", [None, "", "yesterday", 3, True])
    def test_takes_a_moment(self, memory, when: Any) -> None:
        memory.remember("x")
        with pytest.raises(InvalidTimestamp, match="when"):
            memory.forget_before(when)
        assert memory.count() == 1


class TestThroughTheOrm:
    @pytest.fixture
    def ids(self, memory) -> list[str]:
        return memory.remember([f"text {n}" for n in range(4)])

    def test_records(self, memory, ids) -> None:
        expected = (8, {"prism_memory.Memory": 4, "prism_memory.Embedding": 4})
        assert memory.records().delete() == expected
        assert not any(model.objects.exists() for model in TABLES)

    def test_filtered_records(self, memory, ids) -> None:
        chosen = memory.records().filter(content__in=["text 1", "text 2"])
        assert chosen.delete() == (4, {"prism_memory.Memory": 2, "prism_memory.Embedding": 2})
        assert memory.records().none().delete()[0] == 0
        assert len(memory.recall("text")) == 2
        check_tables()

    def test_joined_and_distinct_records(self, memory, ids) -> None:
        joined = Memory.objects.filter(embeddings__space__width=64, content="text 0").distinct()
        assert joined.delete()[1]["prism_memory.Memory"] == 1
        check_tables()

    def test_grouped_records(self, memory, ids) -> None:
        counted = Memory.objects.annotate(vectors=Count("embeddings")).filter(vectors=1)
        assert counted.exclude(content="text 0").delete()[1]["prism_memory.Memory"] == 3
        assert [row.content for row in memory.records()] == ["text 0"]
        check_tables()

    def test_the_table_is_not_joined_with_itself(self, memory, ids) -> None:
        # Where statistics are stale, a database may go through all of it for each row of it.
        with CaptureQueriesContext(connection) as queries:
            memory.records().filter(content="text 0").delete()
        table = f"FROM {connection.ops.quote_name(Memory._meta.db_table)}"
        assert max(query["sql"].count(table) for query in queries) == 1

    def test_an_instance(self, memory, ids) -> None:
        row = memory.records().get(record_id=ids[0])
        assert row.delete() == (2, {"prism_memory.Memory": 1, "prism_memory.Embedding": 1})
        assert row.pk is None
        with pytest.raises(ValueError, match="never saved"):
            row.delete()
        assert len(memory.recall("text")) == 3
        check_tables()

    def test_a_slice_is_refused(self, memory, ids) -> None:
        with pytest.raises(TypeError, match="limit"):
            memory.records()[:2].delete()
        assert memory.count() == 4

    def test_there_is_no_deletion_of_everything_by_accident(self) -> None:
        for name in ("delete", "erase", "forget", "recall", "remember"):
            assert not hasattr(Memory.objects, name)


class TestNothingIsLeft:
    SECRET = "a most private sentence"

    def remembered(self, memory: Any) -> tuple[list[str], list[bytes]]:
        """Ids of something private between other things, and bytes that betray it."""
        memory.remember([f"text {n}" for n in range(30)])
        message = {"role": "user", "name": "Ana-Quux", "content": self.SECRET}
        ids = memory.remember([message], metadata={"k": "value-Quux"})
        memory.remember([f"later {n}" for n in range(30)])
        held = Embedding.objects.get(memory__record_id=ids[0])
        signs, vector = bytes(held.signature), bytes(held.vector)
        return ids, [self.SECRET.encode(), b"Quux", ids[0].encode(), signs, vector[:64]]

    @pytest.mark.parametrize("way", ["ids", "all", "before", "records", "instance", "expired"])
    def test_in_any_table(self, memory, way: str) -> None:
        ids, needles = self.remembered(memory)
        assert len(traces(*needles)) >= 6
        row = memory.records().get(record_id=ids[0])
        if way == "ids":
            memory.forget(ids)
        elif way == "all":
            memory.forget()
        elif way == "before":
            memory.records().filter(pk=row.pk).update(occurred_at=to_database(WHEN))
            memory.forget_before(WHEN + STEP)
        elif way == "records":
            memory.records().filter(pk=row.pk).delete()
        elif way == "expired":
            memory.records().filter(pk=row.pk).update(expires_at=timezone.now())
            stores["default"].purge_expired()
        else:
            row.delete()
        assert traces(*needles) == []
        check_tables()
        assert memory.count() == (0 if way == "all" else 60)

    def test_of_a_text_that_was_replaced(self) -> None:
        store = stores["default"]
        store.upsert(record(f"r{n}", row) for n, row in enumerate(random_vectors(9)))
        held = Embedding.objects.get(memory__record_id="r4")
        needles = [bytes(held.signature), bytes(held.vector), b"content of r4"]
        store.upsert([record("r4", content="another text")])
        assert traces(*needles) == []
        check_tables()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'sqlite'")
def test_nothing_is_left_in_the_file_after_vacuum(memory, tmp_path: Path) -> None:
    ids, needles = TestNothingIsLeft().remembered(memory)

    def image(name: str) -> bytes:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(tmp_path / name)])
        sqlite3.connect(tmp_path / name).close()
        return (tmp_path / name).read_bytes()

    before = image("before")
    assert all(needle in before for needle in needles)
    memory.forget(ids)
    after = image("after")
    assert not any(needle in after for needle in needles)


def test_retention_is_enforced_on_read_whatever_was_promised(memory, settings) -> None:
    """What outlived RETENTION is not recalled, before anything pruned it, and can be purged."""
    now = timezone.now()
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RETENTION": 3600}
    memory.remember(["old", "new"], occurred_at=[now - timedelta(hours=2), now])
    assert [each.content for each in memory.recall("new")] == ["new"]
    assert memory.pending() == 0
    assert stores["default"].purge_expired(memory.collection) == 1
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RETENTION": None}
    assert memory.count() == 1
