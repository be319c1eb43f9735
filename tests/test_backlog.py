"""What waits for a vector, in its order; and vectors go only to what is as it was read."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import override_settings

from prism_memory.answers import Ask
from prism_memory.embedding import embed_claimed, embed_waiting
from prism_memory.models import Embedding, Memory
from prism_memory.stores import VectorRecord, VectorStore, default_store
from prism_memory.timestamps import to_database
from prism_memory.vectors import Vector

from .invariants import check_tables

pytestmark = pytest.mark.django_db(transaction=True)

SPACE = "test@2"
MARCH = datetime(2026, 3, 1, tzinfo=UTC)
#: Ids in the order in which they wait: by time, to the microsecond.
TIMES = {
    "z": MARCH - timedelta(days=1),
    "b": MARCH,
    "y": MARCH + timedelta(microseconds=1),
    "a": MARCH + timedelta(seconds=1),
    "x": MARCH + timedelta(days=1),
}


def store_all(times=TIMES, collection="c"):
    default_store().upsert(
        VectorRecord(collection=collection, id=name, content=f"text {name}", occurred_at=moment)
        for name, moment in times.items()
    )


def ids(waiting):
    return [each.id for each in waiting]


def walked(next_after):
    """What one walk brings, two at a time."""
    found, last = [], None
    while batch := next_after(last):
        assert len(batch) <= 2
        found += ids(batch)
        last = batch[-1]
    return found


@pytest.fixture(params=["UTC", "Asia/Kathmandu without USE_TZ"])
def zone(request):
    zone, _, without = request.param.partition(" ")
    with override_settings(USE_TZ=not without, TIME_ZONE=zone):
        yield zone


class TestOrder:
    @pytest.mark.parametrize("way", ["unembedded", "waiting", "claim"])
    def test_a_walk_meets_each_once_oldest_first(self, zone, way):
        store_all()
        store_all({"other": MARCH}, collection="d")
        options = {"seconds": 0} if way == "claim" else {}
        look = getattr(default_store(), way)
        assert walked(lambda last: look("c", 2, space=SPACE, after=last, **options)) == list(TIMES)

    @pytest.mark.parametrize("way", ["unembedded", "waiting"])
    def test_of_one_moment_in_the_order_of_writing(self, way):
        store_all(dict.fromkeys("gecafbd", MARCH))
        look = getattr(default_store(), way)
        expected = list(Memory.objects.order_by("pk").values_list("record_id", flat=True))
        assert walked(lambda last: look("c", 2, space=SPACE, after=last)) == expected

    def test_after_one_that_is_gone_none_is_missed(self):
        store_all(dict.fromkeys("abcde", MARCH))
        store = default_store()
        seen = store.unembedded("c", 3, space=SPACE)
        store.forget("c", [seen[-1].id])
        later = store.unembedded("c", space=SPACE, after=seen[-1])
        assert {each.id for each in later} >= set("abcde") - {each.id for each in seen}

    def test_of_some_that_are_named(self, zone):
        store_all()
        store, named = default_store(), ["x", "a", "z", "unknown"]
        found = walked(lambda last: store.waiting("c", 2, space=SPACE, ids=named, after=last))
        assert found == ["z", "a", "x"]
        assert store.waiting("d", 9, space=SPACE, ids=named) == []
        assert store.waiting("c", 9, space=SPACE, ids=[]) == []

    def test_without_what_has_a_vector_in_this_space_or_has_expired(self):
        store_all()
        store = default_store()
        store.attach("c", {"b": [1, 0]}, SPACE)
        store.attach("c", {"x": [1, 0]}, "another")
        Memory.objects.filter(record_id="z").update(expires_at=to_database(MARCH))
        assert ids(store.waiting("c", 9, space=SPACE)) == ["y", "a", "x"]
        assert ids(store.unembedded("c", 9)) == ["y", "a"]

    def test_claims_leave_out_what_is_not_due(self):
        store_all()
        store = default_store()
        assert ids(store.claim("c", 2, space=SPACE, seconds=60)) == ["z", "b"]
        assert ids(store.claim("c", 2, space=SPACE, seconds=0)) == ["y", "a"]
        assert ids(store.claim("c", 9, space=SPACE, seconds=60)) == ["y", "a", "x"]
        assert store.claim("c", 9, space=SPACE, seconds=60) == []


class TestAttaching:
    def read(self):
        return {row.id: row for row in default_store().waiting("c", 9, space=SPACE)}

    def attach(self, *rows):
        pairs = [(row, Vector.of([1.0, 0.5])) for row in rows]
        attached = default_store().attach_waiting("c", pairs, SPACE)
        check_tables()
        return attached

    def test_only_to_what_still_has_the_text_and_no_vector(self):
        store_all()
        rows, store = self.read(), default_store()
        store.forget("c", ["z"])
        store.upsert([VectorRecord(collection="c", id="b", content="another text")])
        store.upsert([VectorRecord(collection="c", id="a", content="text a", name="Ana")])
        store.attach("c", {"y": [0, 1]}, SPACE)
        assert self.attach(*rows.values()) == 1
        held = Embedding.objects.values_list("memory__record_id", "vector")
        assert {name: Vector.from_bytes(vector) for name, vector in held} == {
            "y": Vector.of([0, 1]),
            "x": Vector.of([1, 0.5]),
        }

    def test_never_to_another_record_that_has_the_number_of_one_that_is_gone(self):
        store_all({"a": MARCH, "b": MARCH})
        rows = self.read()
        default_store().forget("c", ["a"])
        gone = rows["a"]._replace(pk=rows["b"].pk, embedded_text="text b")
        assert self.attach(gone) == 0
        assert not Embedding.objects.exists()

    def test_a_failure_that_was_noted_is_forgotten(self):
        store_all({"a": MARCH, "b": MARCH})
        default_store().postpone("c", {"a": "too long"}, texts={"a": "text a"})
        assert self.attach(*self.read().values()) == 2
        assert set(Memory.objects.values_list("attempts", "failure", "not_before")) == {
            (0, "", None)
        }


class Shelf(VectorStore):
    """A store of somebody else's: it overrides no more than it has to."""

    def __init__(self, records):
        self.records = {record.id: record for record in records}
        self.vectors = {}

    def unembedded(self, collection, limit=100, *, space=None, ids=None, after=None):
        names = [name for name in self.records if name not in self.vectors]
        if ids is not None:
            names = [name for name in names if name in ids]
        if after is not None:
            names = [name for name in names if name > after.id]
        return [self.records[name] for name in sorted(names)[:limit]]

    def attach(self, collection, vectors, space, *, texts=None):
        assert texts == {name: self.records[name].embedded_text for name in vectors}
        self.vectors |= vectors
        return len(vectors)


class TestAnotherStore:
    @pytest.mark.parametrize("refused", [None, "text 3"])
    @pytest.mark.parametrize("claimed", [True, False])
    def test_that_overrides_little_is_embedded_to_its_end(
        self, embedder, monkeypatch, claimed, refused
    ):
        from prism_memory.exceptions import TextRefused

        embed = embedder.embed

        def picky(texts):
            if refused in texts:
                raise TextRefused("too long")
            return embed(texts)

        monkeypatch.setattr(embedder, "embed", picky)
        monkeypatch.setattr(embedder, "batch_size", 2)
        shelf = Shelf(
            VectorRecord(collection="c", id=f"{n}", content=f"text {n}", name="") for n in range(7)
        )
        if claimed:
            run = embed_claimed(shelf, "c", ask=Ask(), until=time.monotonic() + 60)
            assert not run.unfinished
        else:
            run = embed_waiting(shelf, "c")
        assert run.failures == ({"3": "too long"} if refused else {})
        assert run.embedded == len(shelf.vectors) == 7 - len(run.failures)


class TestJobs:
    @pytest.fixture
    def claims(self, embedder, monkeypatch):
        """After what each claim of a run looked, and what it got."""
        store, seen = type(default_store()), []
        claim = store.claim

        def noted(self, *args, after=None, **options):
            batch = claim(self, *args, after=after, **options)
            seen.append((after and after.id, ids(batch)))
            return batch

        monkeypatch.setattr(store, "claim", noted)
        monkeypatch.setattr(embedder, "batch_size", 2)
        return seen

    def run(self):
        return embed_claimed(default_store(), "c", ask=Ask(), until=time.monotonic() + 60)

    def test_walk_through_a_backlog_once_and_look_once_more(self, claims):
        store_all()
        assert self.run().embedded == 5
        assert claims == [
            (None, ["z", "b"]), ("b", ["y", "a"]), ("a", ["x"]), ("x", []), (None, []),
        ]  # fmt: skip

    def test_take_up_what_came_late_and_happened_early(self, claims, embedder, monkeypatch):
        embed, late = embedder.embed, [{"late": MARCH - timedelta(days=9)}]

        def embed_meanwhile(texts):
            if late:
                store_all(late.pop())
            return embed(texts)

        monkeypatch.setattr(embedder, "embed", embed_meanwhile)
        store_all()
        assert self.run().embedded == 6
        assert claims[3:] == [("x", []), (None, ["late"]), ("late", []), (None, [])]

    @pytest.mark.skipif("connection.vendor != 'sqlite'")
    def test_walk_by_the_index(self):
        """The time that is said twice keeps SQLite from walking what lies before it."""
        store_all()
        store = default_store()
        [first] = store.waiting("c", 1, space=SPACE)
        with connection.execute_wrapper(explained := Explained()):
            store.waiting("c", 1, space=SPACE, after=first)
        assert "prism_memory_collection (collection_key=? AND occurred_at>?)" in explained.plan


class Explained:
    """How SQLite goes about the last statement."""

    plan = ""

    def __call__(self, execute, sql, params, many, context):
        execute(f"EXPLAIN QUERY PLAN {sql}", params, many, context)
        self.plan = "\n".join(row[-1] for row in context["cursor"].fetchall())
        return execute(sql, params, many, context)
