"""Records at store level: passages with ids of the caller's choice, in named collections."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from prism_memory.exceptions import (
    InvalidArgument,
    InvalidIdentifier,
    InvalidMessage,
    InvalidMetadata,
    InvalidVector,
    SpaceMismatch,
)
from prism_memory.models import Embedding, Memory, SignaturePage
from prism_memory.stores import VectorQuery, VectorRecord, stores
from prism_memory.timestamps import from_database

pytestmark = pytest.mark.django_db

SPACE = "test@2"
MARCH = datetime(2024, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def store():
    return stores["default"]


def passage(id="h-1", content="The address is 5 Hill Street.", collection="handbook", **fields):
    return VectorRecord(collection=collection, id=id, content=content, **fields)


def found(store, vector=(1.0, 0.0), space=SPACE, **query) -> list[str]:
    return [match.id for match in store.search(VectorQuery(["handbook"], vector, space, **query))]


def row(id="h-1") -> Memory:
    found = Memory.objects.get(record_id=id)
    found.occurred_at = from_database(found.occurred_at)
    found.expires_at = from_database(found.expires_at)
    return found


def test_ids_that_some_database_takes_for_one_are_two(store):
    ids = ["h-1", "H-1", "h-1 ", "h\u0301-1", "ḣ-1", "h-2", "😀", "🚀"]
    store.upsert([passage(id, f"Passage {id}.") for id in ids])
    assert store.count("handbook") == len(ids)
    assert {r.record_id: r.content for r in Memory.objects.all()} == {
        id: f"Passage {id}." for id in ids
    }
    assert store.attach("handbook", {"H-1": [1.0, 0.0]}, SPACE) == 1
    assert found(store) == ["H-1"]
    assert store.forget("handbook", ["h-1", "🚀"]) == 2
    assert store.count("handbook") == len(ids) - 2


def test_collections_that_some_database_takes_for_one_are_two(store):
    names = ["handbook", "Handbook", "handbook ", "händbook"]
    store.upsert([passage(collection=name) for name in names])
    assert [store.count(name) for name in names] == [1] * 4
    assert store.purge("Handbook") == 1
    assert [store.count(name) for name in names] == [1, 0, 1, 1]


def test_a_record_has_no_owner_and_the_callers_kind(store):
    store.upsert([passage(kind="passage", metadata={"k": 1}, occurred_at=MARCH)])
    stored = row()
    assert (stored.owner_model, stored.owner, stored.scope, stored.owner_key) == ("", "", "", "")
    assert (stored.kind, stored.metadata, stored.occurred_at) == ("passage", {"k": 1}, MARCH)


def test_a_record_may_come_with_its_vector(store):
    store.upsert([passage(vector=[3, "4"], space=SPACE), passage("h-2", "Pending.")])
    assert (store.count("handbook"), store.count("handbook", embedded_only=True)) == (2, 1)
    [match] = store.search(VectorQuery(["handbook"], [3.0, 4.0], SPACE))
    assert (match.id, match.similarity) == ("h-1", pytest.approx(1))


class TestUpsertAgain:
    @pytest.fixture(autouse=True)
    def _stored(self, store):
        store.upsert([passage(vector=[1, 0], space=SPACE, metadata={"k": 1}, occurred_at=MARCH)])

    def test_the_same_changes_nothing(self, store, django_assert_num_queries):
        before = Memory.objects.values().get(), Embedding.objects.values().get()
        store.upsert([passage()])
        store.upsert([passage(occurred_at=MARCH - timedelta(days=1))])
        store.upsert([passage(vector=[1.0, 0.0], space=SPACE)])
        assert before == (Memory.objects.values().get(), Embedding.objects.values().get())

    def test_a_changed_text_is_embedded_anew(self, store):
        pk = row().pk
        store.upsert([passage(content="The address is 6 Hill Street.")])
        assert row().pk == pk
        assert row().content == "The address is 6 Hill Street."
        assert row().metadata == {"k": 1}
        assert not Embedding.objects.exists()
        assert not SignaturePage.objects.exists()
        assert found(store) == []
        assert [record.id for record in store.unembedded("handbook")] == ["h-1"]
        store.attach("handbook", {"h-1": [0.0, 1.0]}, SPACE)
        assert store.search(VectorQuery(["handbook"], [0.0, 1.0], SPACE))[0].similarity == 1.0

    def test_a_changed_text_with_its_vector_is_at_once_searchable(self, store):
        store.upsert([passage(content="Other.", vector=[0, 1], space=SPACE)])
        [match] = store.search(VectorQuery(["handbook"], [0.0, 1.0], SPACE))
        assert (match.content, match.similarity) == ("Other.", 1.0)
        assert SignaturePage.objects.get().size == 1

    def test_a_changed_name_is_embedded_anew_and_a_changed_kind_is_not(self, store):
        store.upsert([passage(kind="passage")])
        assert found(store, filter={"kind": "passage"}) == ["h-1"]
        store.upsert([passage(kind="passage", name="ana")])
        assert found(store) == []

    def test_changed_metadata_is_what_filters_see(self, store):
        store.upsert([passage(metadata={"k": 2})])
        assert found(store, filter={"k": 2}) == ["h-1"]
        assert found(store, filter={"k": 1}) == []
        store.upsert([passage(metadata={})])
        assert found(store, filter={"k": 2}) == []
        assert found(store) == ["h-1"]

    def test_another_vector_replaces(self, store):
        store.upsert([passage(vector=[0, 1], space=SPACE)])
        assert Embedding.objects.count() == 1
        assert store.search(VectorQuery(["handbook"], [0.0, 1.0], SPACE))[0].similarity == 1.0

    def test_an_expiry_moves_where_it_is_told(self, store):
        later = datetime.now(UTC) + timedelta(days=9)
        for when in (later, later - timedelta(days=1), None):
            store.upsert([passage(expires_at=when)])
            assert row().expires_at == (when or later - timedelta(days=1))


class TestDuplicatesInOneCall:
    def test_the_last_text_wins(self, store):
        store.upsert([passage(content="one"), passage(content="two"), passage("h-2", "three")])
        assert (row().content, store.count("handbook")) == ("two", 2)

    def test_a_vector_of_another_text_is_not_the_last_texts(self, store):
        store.upsert([passage(content="one", vector=[1, 0], space=SPACE), passage(content="two")])
        assert row().content == "two"
        assert not Embedding.objects.exists()
        store.upsert([passage(content="two", vector=[1, 0], space=SPACE), passage(content="two")])
        assert found(store) == ["h-1"]

    def test_omitted_fields_leave_those_given_before(self, store):
        store.upsert([passage(metadata={"k": 1}, occurred_at=MARCH), passage()])
        assert (row().metadata, row().occurred_at) == ({"k": 1}, MARCH)


class TestAttach:
    def test_never_creates(self, store):
        store.upsert([passage()])
        assert store.attach("handbook", {"h-1": [1, 0], "h-9": [1, 0]}, SPACE) == 1
        assert store.attach("contracts", {"h-1": [1, 0]}, SPACE) == 0
        assert Memory.objects.count() == Embedding.objects.count() == 1
        assert store.attach("handbook", {}, SPACE) == 0

    def test_compares_the_text_that_was_embedded(self, store):
        store.upsert([passage(), passage("h-2", "Old."), passage("h-3", "Here.")])
        texts = {record.id: record.embedded_text for record in store.unembedded("handbook")}
        store.upsert([passage("h-2", "New.")])
        store.forget("handbook", ["h-3"])
        store.attach("handbook", {"h-1": [0, 1]}, SPACE)
        vectors = {id: [1, 0] for id in texts}
        assert store.attach("handbook", vectors, SPACE, texts=texts) == 0
        assert found(store, vector=(0.0, 1.0)) == ["h-1"]
        assert [record.id for record in store.unembedded("handbook")] == ["h-2"]

    def test_in_a_second_space_keeps_the_first(self, store):
        store.upsert([passage(vector=[1, 0], space=SPACE)])
        assert store.attach("handbook", {"h-1": [0, 1, 0]}, "other@3") == 1
        assert found(store) == found(store, (0.0, 1.0, 0.0), "other@3") == ["h-1"]

    def test_of_another_width_is_refused(self, store):
        store.upsert([passage(vector=[1, 0], space=SPACE), passage("h-2", "Pending.")])
        with pytest.raises(SpaceMismatch, match="'h-2'"):
            store.attach("handbook", {"h-2": [1, 0, 0]}, SPACE)
        with pytest.raises(SpaceMismatch, match="'h-3'"):
            store.upsert([passage("h-3", "New.", vector=[1, 0, 0], space=SPACE)])
        assert Embedding.objects.count() == 1
        assert store.count("handbook") == 2  # all or none


class TestRefusals:
    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"id": ""}, InvalidIdentifier),
            ({"id": 5}, InvalidIdentifier),
            ({"id": "x" * 256}, InvalidIdentifier),
            ({"id": "a\0"}, InvalidIdentifier),
            ({"collection": ""}, InvalidIdentifier),
            ({"collection": None}, InvalidIdentifier),
            ({"content": None}, InvalidMessage),
            ({"content": "\ud800"}, InvalidMessage),
            ({"content": "x" * 1_000_001}, InvalidMessage),
            ({"role": "x" * 33}, InvalidMessage),
            ({"kind": 5}, InvalidMessage),
            ({"vector": [1.0]}, InvalidArgument),
            ({"space": SPACE}, InvalidArgument),
            ({"occurred_at": "yesterday"}, InvalidArgument),
            ({"expires_at": 5}, InvalidArgument),
        ],
        ids=lambda value: f"{value!r:.30}",
    )
    def test_of_an_unusable_record(self, fields, error):
        with pytest.raises(error):
            passage(**fields)

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"vector": [0.0, 0.0], "space": SPACE}, InvalidVector),
            ({"vector": [float("nan"), 0.0], "space": SPACE}, InvalidVector),
            ({"metadata": {"k": []}}, InvalidMetadata),
            ({"metadata": 5}, InvalidMetadata),
        ],
        ids=["zero", "NaN", "nested", "number"],
    )
    def test_write_nothing(self, store, fields, error):
        with pytest.raises(error):
            store.upsert([passage("h-0", "Good."), passage(**fields)])
        assert not Memory.objects.exists()
