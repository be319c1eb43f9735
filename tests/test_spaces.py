"""Spaces: vectors are compared within one only, and nobody's recall silently gets worse."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from prism_memory.exceptions import (
    ConfigurationError,
    IndexUnavailable,
    InvalidArgument,
    InvalidVector,
    SpaceMismatch,
)
from prism_memory.models import Embedding, Memory, Space
from prism_memory.stores import DatabaseStore, remove_space, stores
from prism_memory.vectors import Vector
from tests.invariants import check_tables
from tests.remote_index import RemoteIndex
from tests.searching import EXACT, at, ids, query, record

pytestmark = pytest.mark.django_db
STORE = DatabaseStore(candidates=4)
BOTH = pytest.mark.parametrize("store", [STORE, EXACT])


@BOTH
def test_another_space_is_named_with_its_count(store: DatabaseStore) -> None:
    store.upsert(record(f"r{n}", at(1), space="old-model@8") for n in range(3))
    with pytest.raises(SpaceMismatch) as caught:
        store.search(query(space="new-model@8"))
    assert "new-model@8" in str(caught.value)
    assert "3 in 'old-model@8'" in str(caught.value)


@BOTH
def test_every_other_space_is_named(store: DatabaseStore) -> None:
    store.upsert(record(f"r{n}", at(1), space="one") for n in range(2))
    store.upsert([record("r1", at(1), space="two"), record("r2", at(1), space="two")])
    store.upsert([record("r3", at(1), space="ours")])
    with pytest.raises(SpaceMismatch, match=r"2 in 'one', 2 in 'two'"):
        store.search(query(space="ours"))


@BOTH
def test_a_partly_reembedded_collection_raises_until_it_is_whole(store: DatabaseStore) -> None:
    store.upsert(record(f"r{n}", at(n / 10), space="old") for n in range(4))
    for n in range(4):
        with pytest.raises(SpaceMismatch, match=f"{4 - n} in 'old'"):
            store.search(query(space="new"))
        store.attach("c", {f"r{n}": at(-n / 10)}, "new")
    assert ids(store.search(query(space="new"))) == ["r0", "r1", "r2", "r3"]
    assert ids(store.search(query(space="old"))) == ["r3", "r2", "r1", "r0"]
    check_tables()


@BOTH
def test_one_of_several_collections_is_enough(store: DatabaseStore) -> None:
    store.upsert([record("a", at(1), "c"), record("b", at(1), "d", space="old")])
    assert ids(store.search(query(collections=["c"]))) == ["a"]
    with pytest.raises(SpaceMismatch):
        store.search(query(collections=["c", "d"]))


@BOTH
def test_what_may_not_be_found_anyway_is_no_reason(store: DatabaseStore) -> None:
    past = timezone.now() - timedelta(days=1)
    store.upsert([record("expired", at(1), space="old", expires_at=past)])
    store.upsert([record("early", at(1), space="old", occurred_at=past)])
    store.upsert([record("ours", at(1)), record("unembedded")])
    recent = query(occurred_since=past + timedelta(hours=1))
    assert ids(store.search(recent)) == ["ours"]
    with pytest.raises(SpaceMismatch, match=r"1 in 'old'"):
        store.search(query())
    store.forget("c", ["early"])
    assert ids(store.search(query())) == ["ours"]


def test_a_handle_says_so_too_and_how_to_mend_it(memory, embedder, monkeypatch) -> None:
    memory.remember(["one", "two"])
    monkeypatch.setattr(embedder, "space", "fake-2")
    with pytest.raises(SpaceMismatch, match="embed_pending"):
        memory.recall("one")
    assert memory.pending() == 2
    memory.embed_pending()
    assert memory.pending() == 0
    assert len(memory.recall("one")) == 2
    assert Embedding.objects.count() == 4


@BOTH
def test_a_query_of_another_width_is_named(store: DatabaseStore) -> None:
    store.upsert([record("r", at(1))])
    with pytest.raises(SpaceMismatch, match=r"the query is 3, .*'test@8' have 8"):
        store.search(query([1, 2, 3]))


def test_a_vector_of_another_width_is_refused_and_named() -> None:
    STORE.upsert([record("r", at(1)), record("s")])
    for call in (
        lambda: STORE.attach("c", {"s": [1, 2, 3]}, "test@8"),
        lambda: STORE.upsert([record("s", [1, 2, 3])]),
        lambda: STORE.attach("c", {"r": at(1), "s": [1.0] * 9}, "test@8"),
        lambda: STORE.attach("c", {"r": at(1), "s": [1.0] * 9}, "fresh"),
    ):
        with pytest.raises(SpaceMismatch, match=r"vector of 's' is \d"):
            call()
    assert STORE.count("c", embedded_only=True) == 1
    assert not Space.objects.filter(name="fresh").exists()
    check_tables()


@BOTH
def test_a_stored_row_of_another_width_is_named(store: DatabaseStore) -> None:
    store.upsert([record("fine", at(1)), record("broken", at(0.9))])
    broken = Embedding.objects.filter(memory__record_id="broken")
    broken.update(vector=Vector.of([1, 2, 3]).to_bytes())
    with pytest.raises(SpaceMismatch, match="'broken' is 3"):
        store.search(query())


def test_signatures_of_another_size_are_refused() -> None:
    STORE.upsert([record("r", at(1))])
    other = DatabaseStore(bits=128)
    with pytest.raises(ConfigurationError, match=r"128.*256"):
        other.search(query())
    with pytest.raises(ConfigurationError, match=r"128.*256"):
        other.attach("c", {"r": at(0.5)}, "test@8")


@pytest.mark.parametrize("bits", [64, 128, 512])
def test_other_sizes_of_signatures(bits: int) -> None:
    store = DatabaseStore(bits=bits, candidates=2)
    store.upsert(record(f"r{n}", at(1 - n / 10)) for n in range(9))
    assert ids(store.search(query(limit=2))) == ["r0", "r1"]
    assert {len(bytes(row.signature)) for row in Embedding.objects.all()} == {bits // 8}
    check_tables()


class TestAttach:
    def test_counts_existing_rows_and_never_creates(self) -> None:
        STORE.upsert([record("a"), record("b")])
        given = {"a": at(1), "b": at(0.5), "missing": at(0)}
        assert STORE.attach("c", given, "test@8") == 2
        assert STORE.attach("c", given, "test@8") == 2
        assert STORE.attach("d", given, "test@8") == 0
        assert STORE.attach("c", {}, "test@8") == 0
        assert Memory.objects.count() == Embedding.objects.count() == 2
        check_tables()

    def test_replaces_a_vector(self) -> None:
        STORE.upsert([record("a", at(1)), record("b", at(0.5))])
        STORE.attach("c", {"a": at(0.1)}, "test@8")
        assert ids(STORE.search(query())) == ["b", "a"]
        check_tables()

    def test_keeps_every_bit_of_a_vector(self) -> None:
        values = [1e300, -1e-300, 0.1, -0.0, 5e-324, 1 / 3, -2.5, 1e-17]
        values[0] = 1e150
        STORE.upsert([record("a", values)])
        held = Embedding.objects.get().vector
        assert bytes(held) == Vector.of(values).to_bytes()

    @pytest.mark.parametrize("vector", [[], [0.0] * 8, [float("nan")] * 8, None, "vector"])
    def test_refuses_what_is_no_vector(self, vector: object) -> None:
        STORE.upsert([record("a"), record("b")])
        with pytest.raises(InvalidVector):
            STORE.attach("c", {"a": at(1), "b": vector}, "test@8")
        assert not Embedding.objects.exists()

    def test_compares_the_text_and_sets_only_what_lacks_a_vector(self) -> None:
        STORE.upsert([record("a", at(1)), record("b"), record("c", name="Ana")])
        texts = {"a": "content of a", "b": "outdated", "c": "Ana: content of c"}
        assert STORE.attach("c", dict.fromkeys(texts, at(0.5)), "test@8", texts=texts) == 1
        assert ids(STORE.search(query())) == ["a", "c"]
        assert STORE.search(query())[0].similarity == pytest.approx(1.0)
        check_tables()


class TestRemoval:
    def test_all_vectors_go_and_memories_stay(self) -> None:
        EXACT.upsert([record("a", [1, 0], space="old"), record("b", [1, 0], space="old")])
        EXACT.attach("c", {"a": [1, 0, 0]}, "new")
        assert remove_space("old") == 2
        assert ids(EXACT.search(query([1, 0, 0], space="new"))) == ["a"]
        assert EXACT.count("c") == 2
        assert [each.id for each in EXACT.unembedded("c")] == ["b"]
        assert not Space.objects.filter(name="old").exists()
        check_tables()

    def test_an_unknown_space_is_refused(self) -> None:
        EXACT.upsert([record("a", [1, 0], space="old")])
        with pytest.raises(InvalidArgument, match=r"no space 'odl'\. Spaces: 'old'"):
            remove_space("odl")

    @pytest.mark.django_db(transaction=True)
    def test_it_leaves_the_indexes_too_or_stays_whole(self) -> None:
        remote = RemoteIndex()
        stores.register("remote", remote)
        try:
            EXACT.upsert([record("a", [1, 0], space="old")])
            assert remote.server.spaces
            remote.server.down = True
            with pytest.raises(IndexUnavailable):
                remove_space("old")
            assert Embedding.objects.count() == 1
            remote.server.down = False
            remove_space("old")
            assert not remote.server.spaces
        finally:
            stores.unregister("remote")
