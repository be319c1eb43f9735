"""The job: keys in, and whatever waits in the collection is embedded, once, under no lock."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, connections
from django.utils import timezone

from prism_memory import jobs
from prism_memory.embedding import CLAIM
from prism_memory.exceptions import EmbeddingUnavailable
from prism_memory.jobs import embed_collection
from prism_memory.models import Embedding, Memory
from prism_memory.queues import queue
from prism_memory.stores import VectorRecord, default_store
from prism_memory.vectors import Vector

from .invariants import check_tables
from .queues import RECORDING

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def recording(settings, embedder):
    fake = {**settings.PRISM_MEMORY["EMBEDDER"], "OPTIONS": {"batch_size": 10}}
    settings.PRISM_MEMORY = {"EMBEDDER": fake, "QUEUE": RECORDING}
    return queue()


@pytest.fixture
def fake(recording):
    """The embedder; what is put into ``fake.meanwhile`` happens while it works."""
    from prism_memory import backends

    fake = backends.embedder()
    fake.meanwhile = lambda: None
    embed = fake.embed

    def embed_and_more(texts):
        vectors = embed(texts)
        fake.meanwhile()
        return vectors

    fake.embed = embed_and_more
    return fake


def say(*contents, collection="c"):
    default_store().upsert(
        [VectorRecord(collection=collection, id=content, content=content) for content in contents]
    )


def texts(count):
    return [f"text {number:03}" for number in range(count)]


def check_vectors(fake):
    """Every vector is that of its row's text."""
    check_tables()
    for embedding in Embedding.objects.select_related("memory"):
        expected = Vector.of(fake.vector(embedding.memory.embedded_text))
        assert bytes(embedding.vector) == expected.to_bytes()


def once(action):
    """A function that does something the first time only."""
    left = [action]
    return lambda: left.pop()() if left else None


def in_another_connection(call):
    failures = []

    def run():
        try:
            call()
        except Exception as error:  # noqa: BLE001
            failures.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it waits for a lock"
    assert failures == []


class TestRuns:
    def test_until_nothing_is_left_oldest_first(self, fake):
        say(*texts(25))
        embed_collection("default", "c")
        assert fake.calls == [texts(25)[:10], texts(25)[10:20], texts(25)[20:]]
        check_vectors(fake)

    def test_twice(self, fake):
        say("one")
        embed_collection("default", "c")
        embed_collection("default", "c")
        assert fake.calls == [["one"]]
        assert Embedding.objects.count() == 1

    def test_after_the_rows_are_gone(self, fake):
        say("one")
        default_store().purge("c")
        embed_collection("default", "c")
        assert fake.calls == []

    def test_beside_another(self, fake):
        say(*texts(200))
        threads = [
            threading.Thread(target=in_another_connection, args=[run], daemon=True)
            for run in [lambda: embed_collection("default", "c")] * 2
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert Memory.objects.unembedded().count() == 0
        assert sum(map(len, fake.calls)) <= 220
        check_vectors(fake)

    def test_so_long_and_leaves_the_rest_to_a_successor(self, fake, recording, monkeypatch):
        say(*texts(15))
        monkeypatch.setattr(jobs, "JOB_SECONDS", 0)
        embed_collection("default", "c")
        assert recording.jobs == [("default", "c")]
        monkeypatch.undo()
        embed_collection("default", "c")
        assert recording.jobs == [("default", "c")]
        assert Memory.objects.unembedded().count() == 0

    def test_and_finds_what_was_saved_while_it_ran(self, fake):
        say("one")
        fake.meanwhile = once(lambda: say("two"))
        embed_collection("default", "c")
        assert fake.calls == [["one"], ["two"]]


class TestMeanwhile:
    def test_no_transaction_is_open_and_no_row_is_locked(self, fake):
        def write():
            Memory.objects.filter(collection="c").update(metadata={"k": 1})
            say("one", "two", "three")
            default_store().forget("c", ["two"])

        def look():
            assert not connection.in_atomic_block
            in_another_connection(write)

        say("one", "two")
        fake.meanwhile = once(look)
        embed_collection("default", "c")
        rows = Memory.objects.embedded().values_list("content", flat=True)
        assert sorted(rows) == ["one", "three"]
        check_vectors(fake)

    def test_the_same_holds_for_embedding_in_the_process(self, fake, settings):
        seen = []
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "QUEUE": "inline"}
        from prism_memory import backends

        embedder = backends.embedder()
        embed = embedder.embed
        embedder.embed = lambda texts: seen.append(connection.in_atomic_block) or embed(texts)
        Memory.objects.for_owner("ana").remember("one")
        Memory.objects.for_owner("ana").synchronously().remember("two")
        assert seen == [False, False]

    def test_a_text_that_changed_gets_the_vector_of_the_new_one(self, fake):
        def change():
            record = VectorRecord(collection="c", id="one", content="something else")
            default_store().upsert([record])

        say("one", "two")
        fake.meanwhile = once(change)
        embed_collection("default", "c")
        assert fake.calls == [["one", "two"], ["something else"]]
        assert Memory.objects.unembedded().count() == 0
        check_vectors(fake)

    def test_what_was_forgotten_stays_forgotten(self, fake):
        say("one", "two")
        fake.meanwhile = once(lambda: default_store().forget("c", ["one"]))
        embed_collection("default", "c")
        assert [row.content for row in Memory.objects.all()] == ["two"]
        check_vectors(fake)

    def test_what_was_forgotten_and_remembered_is_a_new_row(self, fake):
        def anew():
            default_store().forget("c", ["one", "two"])
            say("one")
            record = VectorRecord(collection="c", id="two", content="another text")
            default_store().upsert([record])

        say("one", "two")
        before = set(Memory.objects.values_list("pk", flat=True))
        fake.meanwhile = once(anew)
        embed_collection("default", "c")
        assert Memory.objects.count() == 2
        assert Memory.objects.unembedded().count() == 0
        assert not before & set(Memory.objects.values_list("pk", flat=True)) or (
            connection.vendor == "sqlite"  # which gives the number of a deleted row again
        )
        check_vectors(fake)


class TestClaims:
    def test_what_a_killed_worker_had_claimed_is_waited_for(self, fake):
        say("one", "two")
        default_store().claim("c", 1, space=fake.space, seconds=0.5)
        embed_collection("default", "c")
        assert fake.calls == [["two"], ["one"]]

    def test_that_end_between_two_looks_are_not_missed(self, fake, monkeypatch):
        store = default_store()
        say("one")
        store.claim("c", 1, space=fake.space, seconds=CLAIM)
        in_work = type(store).in_work

        def end_first(store, collection, *, space):
            Memory.objects.update(not_before=timezone.now())
            return in_work(store, collection, space=space)

        monkeypatch.setattr(type(store), "in_work", end_first)
        embed_collection("default", "c")
        assert fake.calls == [["one"]]

    def test_are_given_back_when_the_provider_fails(self, fake):
        say(*texts(15))
        fake.failure = ConnectionError()
        with pytest.raises(EmbeddingUnavailable):
            embed_collection("default", "c")
        assert not Memory.objects.exclude(not_before=None).exists()
        fake.failure = None
        embed_collection("default", "c")
        assert Memory.objects.unembedded().count() == 0

    def test_keep_others_off(self, fake):
        say("one", "two", "three")
        store = default_store()
        first = store.claim("c", 2, space=fake.space, seconds=CLAIM)
        assert [record.id for record in first] == ["one", "two"]
        assert [r.id for r in store.claim("c", 2, space=fake.space, seconds=CLAIM)] == ["three"]
        assert store.claim("c", 2, space=fake.space, seconds=CLAIM) == []

    def test_do_not_hold_up_who_asks_for_it_now(self, fake):
        say("one")
        default_store().claim("c", 2, space=fake.space, seconds=CLAIM)
        row = Memory.objects.get()
        assert row.not_before is not None
        from prism_memory.embedding import embed_waiting

        assert embed_waiting(default_store(), "c").embedded == 1
