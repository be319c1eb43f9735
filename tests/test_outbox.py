"""Indexes outside the database: told after the commit, whatever happens in between."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from prism_memory import jobs
from prism_memory.exceptions import IndexNotReady, IndexUnavailable
from prism_memory.models import Embedding, IndexChange, IndexState, Memory
from prism_memory.stores import VectorQuery, VectorRecord, stores

from .remote_index import RemoteIndex, Server

pytestmark = pytest.mark.django_db(transaction=True)

ONE, TWO = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def store(server):
    store = RemoteIndex(server)
    stores.register("remote", store)
    yield store
    stores.unregister("remote")


def written(store, *names, vector=ONE, **fields):
    store.upsert(
        VectorRecord(
            collection="c", id=name, content=f"text {name}", vector=vector, space="s", **fields
        )
        for name in names
    )


def found(store, vector=ONE, **query):
    return [match.id for match in store.search(VectorQuery(["c"], vector, "s", **query))]


def held(server):
    """The memories that the server holds, by their present ids."""
    ids = [entry.memory_id for entry in server.spaces.get("s", {}).values()]
    return sorted(Memory.objects.filter(pk__in=ids).values_list("record_id", flat=True))


class TestInStep:
    def test_what_is_written_is_in_the_index_after_the_commit(self, store, server):
        with transaction.atomic():
            written(store, "a", "b")
            assert not server.spaces
        assert held(server) == ["a", "b"]
        assert not IndexChange.objects.exists()

    def test_what_is_rolled_back_is_not(self, store, server):
        written(store, "a")
        with transaction.atomic():
            written(store, "b")
            transaction.set_rollback(True)
        store.settle()
        assert held(server) == ["a"]

    def test_also_what_another_store_writes(self, store, server):
        written(stores["default"], "a")
        assert held(server) == ["a"]
        stores["default"].forget("c", ["a"])
        assert not server.spaces["s"]

    def test_the_search_asks_the_index(self, store, server):
        written(store, *"abc")
        server.calls.clear()
        assert sorted(found(store)) == ["a", "b", "c"]
        server.down = True
        with pytest.raises(IndexUnavailable):
            found(store)

    def test_a_new_vector_is_a_new_entry(self, store, server):
        written(store, "a")
        (old,) = server.spaces["s"]
        written(store, "a", vector=TWO)
        (new,) = server.spaces["s"]
        assert new > old
        assert server.spaces["s"][new].vector.tolist() == TWO

    def test_new_metadata_is_a_new_entry(self, store, server):
        written(store, "a", metadata={"k": 1})
        (old,) = server.spaces["s"]
        written(store, "a", metadata={"k": 2})
        (new,) = server.spaces["s"]
        assert new > old
        assert found(store, filter={"k": 2}) == ["a"]
        assert found(store, filter={"k": 1}) == []

    def test_a_new_text_leaves_the_index(self, store, server):
        written(store, "a")
        store.upsert([VectorRecord(collection="c", id="a", content="another text")])
        assert not server.spaces["s"]

    def test_the_verbs_of_a_handle(self, store, server, memory):
        ids = memory.remember(["one", "two"])
        (entries,) = server.spaces.values()
        assert len(entries) == 2
        memory.forget(ids[:1])
        assert len(entries) == 1
        memory.forget()
        assert not entries

    def test_deleting_by_the_admin_or_a_queryset(self, store, server):
        written(store, *"abc")
        Memory.objects.get(record_id="a").delete()
        assert held(server) == ["b", "c"]
        Memory.objects.all().delete()
        assert not server.spaces["s"]


class TestFailures:
    def test_a_server_that_is_down_breaks_no_write(self, store, server, caplog):
        server.down = True
        written(store, "a")
        store.forget("c", ["a"])
        assert store.untold() == (1, 1)
        assert "An index was not told of all changes" in caplog.text
        server.down = False
        time.sleep(2 * store.timeout)
        assert store.settle()
        assert store.untold() == (0, 0)
        assert not server.spaces["s"]

    def test_it_holds_up_one_caller_and_not_the_next(self, store, server, monkeypatch):
        written(store, "a")
        server.down = True
        asked = []
        monkeypatch.setattr(store, "settle", lambda deadline=None: asked.append(1) or fail())

        def fail():
            raise IndexUnavailable("The index in test does not answer. Start it.")

        written(store, "b")
        written(store, "c")
        assert len(asked) == 1
        store.resting_until = 0.0
        written(store, "d")
        assert len(asked) == 2

    def test_what_a_crash_left_untold_is_told_by_the_next_job(self, store, server, monkeypatch):
        with monkeypatch.context() as crash:
            crash.setattr(jobs, "_settle_inline", lambda deadline: None)
            written(store, "a", "b")
            store.forget("c", ["b"])
        assert not server.spaces
        # Some other record's job: it tells all.
        jobs.embed_collection("default", "other")
        assert held(server) == ["a"]

    def test_a_killed_worker_s_claim_runs_out(self, store, server, monkeypatch):
        monkeypatch.setattr(jobs, "_settle_inline", lambda deadline: None)
        written(store, "a")
        IndexChange.objects.update(claimed_until=timezone.now() + timedelta(hours=1))
        assert not store.settle()
        assert not server.spaces
        IndexChange.objects.update(claimed_until=timezone.now())
        assert store.settle()
        assert held(server) == ["a"]

    def test_a_server_that_lost_everything_is_not_taken_for_an_empty_one(self, store, server):
        written(store, "a")
        server.spaces.clear()
        with pytest.raises(IndexUnavailable):
            found(store)


class TestForgetting:
    def test_nothing_forgotten_is_returned_before_the_index_hears(self, store, server):
        written(store, "a", "b")
        server.down = True
        store.forget("c", ["a"])
        server.down = False
        assert held(server) == ["b"]
        assert len(server.spaces["s"]) == 2
        assert found(store) == ["b"]
        assert store.untold() == (0, 1)

    def test_what_went_while_it_was_sent_is_removed_again(self, store, server):
        written(store, "a")
        # The removal can't overtake: the addition is still noted.
        server.before = lambda call: (
            call == "send" and Memory.objects.filter(record_id="b").delete()
        )
        written(store, "b")
        assert store.settle()
        assert held(server) == ["a"]
        assert len(server.spaces["s"]) == 1

    def test_what_raw_sql_deleted_while_it_was_sent_is_removed_too(self, store, server):
        written(store, "a")

        def lose(call):
            if call == "send":
                Embedding.objects.filter(memory__record_id="b")._raw_delete("default")

        server.before = lose
        written(store, "b")
        store.settle()
        assert len(server.spaces["s"]) == 1

    def test_a_removal_waits_for_the_addition_in_flight(self, store, server, monkeypatch):
        monkeypatch.setattr(jobs, "_settle_inline", lambda deadline: None)
        written(store, "a")
        later = timezone.now() + timedelta(hours=1)
        store._prepare("default")
        IndexChange.objects.filter(action=IndexChange.Action.ADD).update(claimed_until=later)
        store.forget("c", ["a"])
        assert not store.settle()
        assert not [call for call in server.calls if call[0] == "withdraw"]
        IndexChange.objects.update(claimed_until=None)
        assert store.settle()
        assert not server.spaces["s"]

    def test_what_waits_can_be_counted_by_collection(self, store, server):
        server.down = True
        written(store, "a", "b")
        store.forget("c", ["a"])
        key = Memory.objects.get(record_id="b").collection_key
        assert store.untold(key) == (2, 1)
        assert store.untold("0" * 64) == (0, 0)

    def test_what_the_index_has_not_heard_of_is_pending(self, store, server):
        server.down = True
        written(store, "a")
        assert store.pending("c", "s") == 1
        server.down = False
        time.sleep(2 * store.timeout)
        store.settle()
        assert store.pending("c", "s") == 0


class TestTooFew:
    def test_what_the_index_lacks_is_found_by_its_signature(self, store, server):
        written(store, *"abc")
        server.spaces["s"].clear()
        assert sorted(found(store)) == ["a", "b", "c"]

    def test_more_is_asked_for_until_the_limit_is_filled(self, store, server):
        store.candidates = 2
        past = timezone.now() - timedelta(days=1)
        written(store, *(f"gone {n}" for n in range(20)), expires_at=past)
        written(store, *(f"here {n}" for n in range(3)), vector=[0.9, 0.1, 0.0])
        assert sorted(found(store, limit=3)) == ["here 0", "here 1", "here 2"]


class TestReadiness:
    def test_an_index_that_came_later_is_refused_until_it_is_built(self, server):
        written(stores["default"], "a")
        late = RemoteIndex(server)
        stores.register("remote", late)
        try:
            with pytest.raises(IndexNotReady, match="memory_rebuild --store remote"):
                found(late)
            written(late, "b")
            assert not server.spaces, "there is nothing yet to keep in step"
        finally:
            stores.unregister("remote")

    def test_a_writer_that_does_not_know_it_puts_it_to_sleep(self, store):
        written(store, "a")
        assert found(store) == ["a"]
        stores.unregister("remote")
        written(stores["default"], "b")
        stores.register("remote", store)
        with pytest.raises(IndexNotReady):
            found(store)

    def test_so_does_one_that_forgets(self, store):
        written(store, "a", "b")
        stores.unregister("remote")
        stores["default"].forget("c", ["a"])
        stores.register("remote", store)
        with pytest.raises(IndexNotReady):
            found(store)

    def test_a_fixture_puts_it_to_sleep(self, store, tmp_path):
        fixture = tmp_path / "vectors.json"
        written(store, "a", "b")
        call_command("dumpdata", "prism_memory.embedding", output=str(fixture))
        call_command("loaddata", str(fixture), verbosity=0)
        with pytest.raises(IndexNotReady):
            found(store)

    def test_another_place_is_another_index(self, store, server):
        written(store, "a")
        stores.register("remote", RemoteIndex(server, name="elsewhere"))
        with pytest.raises(IndexNotReady, match="test:elsewhere"):
            found(stores["remote"])

    def test_another_alias_is_another_index(self, store, server):
        written(store, "a")
        assert IndexState.objects.get().alias == "remote"
        stores.register("second", RemoteIndex(server))
        try:
            with pytest.raises(IndexNotReady, match="'second'"):
                found(stores["second"])
        finally:
            stores.unregister("second")

    def test_the_exact_strategy_needs_no_index(self, server):
        written(stores["default"], "a")
        exact = RemoteIndex(server, strategy="exact")
        stores.register("remote", exact)
        try:
            assert found(exact) == ["a"]
        finally:
            stores.unregister("remote")
