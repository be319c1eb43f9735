"""memory_rebuild: an index is filled from the tables, compared both ways, and then searched."""

from __future__ import annotations

import time

import pytest

from prism_memory import jobs
from prism_memory.exceptions import IndexNotReady
from prism_memory.models import Embedding, IndexChange, IndexState, Memory, Space
from prism_memory.stores import VectorQuery, VectorRecord, rebuilding, stores
from prism_memory.stores.rebuilding import rebuild

from .commands import misused, run
from .remote_index import RemoteIndex, Server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def late(server):
    """A store that is configured after 25 vectors were written."""
    write(range(25))
    store = RemoteIndex(server)
    stores.register("remote", store)
    yield store
    stores.unregister("remote")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(rebuilding, "CHUNK", 10)
    monkeypatch.setattr(rebuilding, "LOOK", 0.001)


def write(numbers, store=None, space="s"):
    (store or stores["default"]).upsert(
        VectorRecord(
            collection="c", id=f"{n}", content=f"text {n}", vector=[1.0, n, 1.0], space=space
        )
        for n in numbers
    )


def found(store, limit=100):
    query = VectorQuery(["c"], [1.0, 0.0, 0.0], "s", limit=limit)
    return sorted(int(match.id) for match in store.search(query))


def test_it_fills_an_index_without_a_call_of_the_provider(late, server, embedder):
    ran = run("memory_rebuild", "--store", "remote")
    assert ran.code == 0
    assert ran.out == (
        "The index for the space s is ready: 25 vectors compared, 25 added, 0 removed.\n"
    )
    assert found(late) == list(range(25))
    assert len(server.spaces["s"]) == 25
    assert embedder.calls == []


def test_again_it_writes_nothing(late, server):
    run("memory_rebuild", "--store", "remote")
    server.calls.clear()
    ran = run("memory_rebuild", "--store", "remote")
    assert "25 vectors compared, 0 added, 0 removed" in ran.out
    assert server.calls == []


def test_a_stopped_one_goes_on(late, server):
    sent = []

    def stop(call):
        sent.append(call)
        if len(sent) == 2:
            server.down = True
            server.entries(Space.objects.get())

    server.before = stop
    ran = run("memory_rebuild", "--store", "remote")
    assert ran.code == 1
    assert "does not answer" in ran.err
    assert len(server.spaces["s"]) == 10
    with pytest.raises(IndexNotReady):
        found(late)
    server.down, server.before = False, lambda call: None
    assert "15 added" in run("memory_rebuild", "--store", "remote").out
    assert found(late) == list(range(25))


def test_both_ways_entry_by_entry_and_not_by_their_number(late, server):
    run("memory_rebuild", "--store", "remote")
    held = server.spaces["s"]
    (gone,) = Embedding.objects.filter(memory__record_id="3")
    entry = held.pop(gone.pk)
    held[10**6] = entry  # as many as before
    ran = run("memory_rebuild", "--store", "remote", "--check")
    assert ran.code == 1
    assert "1 missing, 1 that the tables don't have" in ran.out
    assert "1 added, 1 removed" in run("memory_rebuild", "--store", "remote").out
    assert set(held) == set(Embedding.objects.values_list("pk", flat=True))
    assert run("memory_rebuild", "--store", "remote", "--check").code == 0


def test_check_before_it_was_ever_built(late):
    ran = run("memory_rebuild", "--store", "remote", "--check")
    assert (ran.code, ran.out) == (1, "The index for the space s was never built.\n")


def test_fresh_drops_what_there_is(late, server):
    run("memory_rebuild", "--store", "remote")
    pk = next(iter(server.spaces["s"]))
    server.spaces["s"][pk] = None  # what no comparison of ids would find
    assert "25 added" in run("memory_rebuild", "--store", "remote", "--fresh").out
    assert server.spaces["s"][pk] is not None


def test_a_server_that_lost_everything_is_filled_again(late, server):
    run("memory_rebuild", "--store", "remote")
    server.spaces.clear()
    assert "25 added" in run("memory_rebuild", "--store", "remote").out
    assert found(late) == list(range(25))


def test_what_is_written_and_forgotten_meanwhile_is_kept_in_step(late, server):
    turns = []

    def meanwhile(call):
        if call == "send" and not turns:
            turns.append(call)
            write([100, 101])
            stores["default"].forget("c", ["0", "20", "100"])

    server.after = meanwhile
    rebuild(late, Space.objects.get())
    assert found(late) == [*range(1, 20), *range(21, 25), 101]
    assert set(server.spaces["s"]) == set(Embedding.objects.values_list("pk", flat=True))
    assert not IndexChange.objects.exists()


def test_a_process_without_the_store_that_writes_meanwhile_is_noticed(late, server):
    def meanwhile(call):
        server.after = lambda call: None
        stores.unregister("remote")
        write([100])
        stores.register("remote", late)

    server.after = meanwhile
    ran = run("memory_rebuild", "--store", "remote")
    assert ran.code == 1
    assert "Restart all processes" in ran.err
    with pytest.raises(IndexNotReady):
        found(late)
    assert run("memory_rebuild", "--store", "remote").code == 0
    assert found(late) == [*range(25), 100]


def test_a_transaction_that_began_before_it_is_told_after_its_commit(late, server, monkeypatch):
    """The writer saw no state of the index; the rebuild saw no row of the writer."""
    from prism_memory.stores import indexes

    blind = indexes._told
    monkeypatch.setattr(indexes, "_told", lambda using, spaces: {})
    rebuild(late, Space.objects.get())
    # The state is there, and now the transaction commits that could not see it.
    write([100])
    stores["default"].forget("c", ["0"])
    monkeypatch.setattr(indexes, "_told", blind)
    late.settle()
    assert found(late) == [*range(1, 25), 100]
    assert set(server.spaces["s"]) == set(Embedding.objects.values_list("pk", flat=True))


def test_every_space_gets_its_own(late, server):
    write(range(5), space="t")
    Memory.objects.filter(record_id="4").delete()
    ran = run("memory_rebuild", "--store", "remote")
    assert "space s is ready: 24 vectors" in ran.out
    assert "space t is ready: 4 vectors" in ran.out
    assert {name: len(held) for name, held in server.spaces.items()} == {"s": 24, "t": 4}


def test_nothing_to_index(server):
    stores.register("remote", RemoteIndex(server))
    try:
        assert "Nothing is embedded yet" in run("memory_rebuild", "--store", "remote").out
    finally:
        stores.unregister("remote")


def test_a_bar_for_people(late):
    ran = run("memory_rebuild", "--store", "remote", terminal=True)
    assert "Comparing s [" in ran.err
    assert "25 of 25" in ran.err


@pytest.mark.parametrize(
    ("alias", "words"),
    [("default", "keeps no index beside the tables"), ("nope", "There is no store 'nope'")],
)
def test_a_store_without_an_index(db, alias, words):
    ran = run("memory_rebuild", "--store", alias)
    assert ran.code == 2
    assert words in ran.err


def test_misuse():
    assert "--store" in misused("memory_rebuild")
    assert "not allowed with" in misused("memory_rebuild", "--store", "x", "--fresh", "--check")


class TestPending:
    def test_it_says_what_the_index_has_not_heard_of(self, late, server):
        run("memory_rebuild", "--store", "remote")
        server.down = True
        write([100])
        stores["default"].forget("c", ["1", "2"])
        said = "The index of 'remote' has still to add 1 and to remove 2."
        ran = run("memory_pending")
        assert said in ran.out
        ran = run("memory_pending", "--embed")
        assert ran.code == 1
        assert "does not answer" in ran.err
        # What it embedded, in the embedder's own space, waits as well.
        assert "has still to add 25 and to remove 2" in ran.out
        server.down = False
        time.sleep(2 * late.timeout)
        ran = run("memory_pending", "--embed")
        assert ran.code == 0
        assert "The index" not in ran.out
        assert len(server.spaces["s"]) == 24

    def test_a_crash_is_no_reason_to_wait_for_a_write(self, late, server, monkeypatch):
        run("memory_rebuild", "--store", "remote")
        monkeypatch.setattr(jobs, "_settle_inline", lambda deadline: None)
        stores["default"].forget("c", ["1"])
        assert len(server.spaces["s"]) == 25
        run("memory_pending", "--embed")
        assert len(server.spaces["s"]) == 24


def test_states_tell_their_store_and_place(late):
    run("memory_rebuild", "--store", "remote")
    state = IndexState.objects.get()
    assert (state.alias, state.place, state.rebuild) == ("remote", "test:here", "")
    assert "remote" in str(state)
