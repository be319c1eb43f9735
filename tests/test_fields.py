"""Columns that hold the same on every database, whoever saves the row."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from django.core import serializers

from prism_memory.fields import DigestField, MetadataField
from prism_memory.metadata import MAX_INTEGER_BITS
from prism_memory.models import Memory
from prism_memory.owners import address
from prism_memory.stores import VectorRecord, stores
from prism_memory.stores.keys import collection_key, record_key
from prism_memory.timestamps import to_database

pytestmark = pytest.mark.django_db

#: What JSON columns of some database change, reorder or refuse.
METADATA = {
    "z": 1, "a": 1.0, "big": 2**60, "huge": 2 ** (MAX_INTEGER_BITS - 1), "1e300": 1e300,
    "tiny": 5e-324, "minus": -0.0, "": "", "a__b": None, "0": False, 'quo"te': "'", "€": "😀",
    "contains": "\\", "line\n": "\u2028", "dot.ted": True,
}  # fmt: skip


def test_metadata_comes_back_as_it_went_in(user):
    handle = Memory.objects.for_owner(user)
    handle.remember("one", metadata=METADATA)
    found = handle.records().get().metadata
    assert list(found.items()) == list(METADATA.items())
    assert [repr(value) for value in found.values()] == [repr(v) for v in METADATA.values()]


def test_a_row_that_django_saves_has_its_digests():
    spoken = address("ana", "support")
    row = Memory.objects.create(
        collection=spoken.collection, record_id="H-1", owner="ana", scope="support", content="x"
    )
    row.refresh_from_db()
    assert row.key == record_key(spoken.collection, "H-1")
    assert row.collection_key == collection_key(spoken.collection)
    assert row.owner_key == spoken.owner.digest
    Memory.objects.bulk_create([Memory(collection="handbook", record_id="h-1", content="x")])
    passage = Memory.objects.get(key=record_key("handbook", "h-1"))
    assert (passage.record_id, passage.owner_key) == ("h-1", "")


def test_digests_follow_when_a_row_is_renamed():
    row = Memory.objects.create(collection="handbook", record_id="h-1", content="x")
    row.record_id = "h-2"
    row.save()
    assert Memory.objects.get(key=record_key("handbook", "h-2")).pk == row.pk


def test_a_dump_can_be_loaded(user):
    handle = Memory.objects.for_owner(user)
    handle.remember("one", metadata=METADATA)
    # Django's JSON cuts times to milliseconds.
    noon = to_database(datetime(2024, 3, 1, 12, tzinfo=UTC))
    Memory.objects.update(occurred_at=noon, created_at=noon)
    before = Memory.objects.values().get()
    dump = serializers.serialize("json", Memory.objects.all())
    handle.forget()
    for loaded in serializers.deserialize("json", dump):
        loaded.save()
    assert Memory.objects.values().get() == before
    assert json.loads(json.loads(dump)[0]["fields"]["metadata"]).keys() == METADATA.keys()


def test_migrations_can_write_the_fields_down():
    field = DigestField("record", "collection", "record_id", unique=True)
    _, path, args, options = field.deconstruct()
    again = DigestField(*args, **options)
    assert path == "prism_memory.fields.DigestField"
    assert (again.purpose, again.of, again.unique) == ("record", ("collection", "record_id"), True)
    assert MetadataField(default=dict).deconstruct()[1] == "prism_memory.fields.MetadataField"


def test_what_a_store_returns_is_plain(user):
    store = stores["default"]
    store.upsert([VectorRecord(collection="c", id="h", content="x", metadata={"k": 1})])
    [record] = store.unembedded("c")
    assert record.metadata == {"k": 1}
    assert record.occurred_at.utcoffset().total_seconds() == 0
