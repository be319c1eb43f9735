"""memory_prune: what has expired or outlived its retention goes for good, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from prism_memory.management import base
from prism_memory.managers import MemoryQuerySet
from prism_memory.models import Embedding, Memory, SignaturePage
from prism_memory.stores import VectorRecord, VectorStore, default_store, stores

from .commands import run

pytestmark = pytest.mark.django_db


def expire(handle):
    handle.records().update(expires_at=timezone.now())


@pytest.fixture
def retention(settings):
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RETENTION": 86_400}


def test_nothing_to_prune(memory):
    memory.remember("kept")
    assert run("memory_prune").out == "Erased 0 memories.\n"
    assert memory.count() == 1


def test_what_has_expired_goes_with_its_vectors_and_signatures(memory):
    memory.remember(["one", "two"])
    expire(memory)
    memory.remember("kept")
    assert run("memory_prune").out == "Erased 2 memories.\n"
    assert [row.content for row in Memory.objects.all()] == ["kept"]
    assert Embedding.objects.count() == 1
    assert sum(page.size for page in SignaturePage.objects.all()) == 1


def test_expired_passages_go_too(db):
    over = timezone.now() - timedelta(1)
    default_store().upsert(
        [VectorRecord(collection="handbook", id="h-1", content="x", expires_at=over)]
    )
    assert run("memory_prune").out == "Erased 1 memory.\n"
    assert default_store().count("handbook") == 0


def test_a_dry_run_says_would_and_erases_nothing(memory, retention):
    memory.remember("over")
    expire(memory)
    memory.remember("old", occurred_at=timezone.now() - timedelta(2))
    assert run("memory_prune", "--dry-run").out == "Would erase 2 memories.\n"
    assert memory.count() == 2


def test_what_is_older_than_the_retention_set_now_goes(memory, settings):
    memory.remember("old", occurred_at=timezone.now() - timedelta(2))
    memory.remember("new", occurred_at=timezone.now() - timedelta(hours=23))
    assert run("memory_prune").out == "Erased 0 memories.\n"
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RETENTION": 86_400}
    assert run("memory_prune").out == "Erased 1 memory.\n"
    assert [row.content for row in memory.records()] == ["new"]


def test_retention_spares_passages_and_what_other_packages_keep(memory, retention):
    old = timezone.now() - timedelta(9)
    default_store().upsert(
        [
            VectorRecord(collection="a", id="1", content="x", occurred_at=old),
            VectorRecord(collection="b", id="1", content="x", occurred_at=old, kind="observation"),
        ]
    )
    memory.remember("derived by somebody", occurred_at=old)
    memory.records().update(kind="summary", expires_at=None)
    assert run("memory_prune").out == "Erased 0 memories.\n"


def test_what_is_both_expired_and_outlived_counts_once(memory, retention):
    memory.remember("old", occurred_at=timezone.now() - timedelta(2))
    expire(memory)
    assert run("memory_prune", "--dry-run").out == "Would erase 1 memory.\n"
    assert run("memory_prune").out == "Erased 1 memory.\n"


def test_the_longest_retention_is_within_the_calendar(memory, settings):
    memory.remember("old", occurred_at="1789-07-14")
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "RETENTION": 9e9}
    assert run("memory_prune").out == "Erased 0 memories.\n"


def test_many_rows_go_in_several_transactions(memory, monkeypatch):
    monkeypatch.setattr(base, "BATCH", 2)
    memory.remember([f"memory {number}" for number in range(5)])
    expire(memory)
    erased = []
    erase = MemoryQuerySet.erase
    monkeypatch.setattr(
        MemoryQuerySet, "erase", lambda rows: erased.append(erase(rows)) or erased[-1]
    )
    assert run("memory_prune").out == "Erased 5 memories.\n"
    assert erased == [2, 2, 1]


def test_rows_between_those_that_go_stay(memory, monkeypatch):
    monkeypatch.setattr(base, "BATCH", 2)
    ids = memory.remember([f"memory {number}" for number in range(6)])
    memory.records().filter(record_id__in=ids[::2]).update(expires_at=timezone.now())
    assert run("memory_prune").out == "Erased 3 memories.\n"
    assert set(memory.records().values_list("record_id", flat=True)) == set(ids[1::2])


def test_a_row_that_is_written_anew_meanwhile_stays(memory, monkeypatch):
    memory.remember(["one", "two"])
    expire(memory)
    erase = MemoryQuerySet.erase

    def somebody_is_faster(rows):
        Memory.objects.filter(content="one").update(expires_at=None)
        return erase(rows)

    monkeypatch.setattr(MemoryQuerySet, "erase", somebody_is_faster)
    assert run("memory_prune").out == "Erased 1 memory.\n"
    assert memory.records().get().content == "one"


def test_progress_is_shown_on_a_terminal_only(memory):
    memory.remember("over")
    expire(memory)
    assert run("memory_prune", "--dry-run", terminal=True).err == ""
    assert "Erasing [" in run("memory_prune", terminal=True).err
    assert run("memory_prune").err == ""


def test_a_database_that_fails_halfway_is_reported_with_what_went(memory, monkeypatch):
    monkeypatch.setattr(base, "BATCH", 1)
    memory.remember(["one", "two"])
    expire(memory)
    erase = MemoryQuerySet.erase

    def fails_for_the_second(rows):
        if memory.count() == 1:
            raise DatabaseError("gone away")
        return erase(rows)

    monkeypatch.setattr(MemoryQuerySet, "erase", fails_for_the_second)
    ran = run("memory_prune")
    assert ran.code == 1
    assert "failed with DatabaseError after 1 memory had been erased" in ran.err
    assert memory.count() == 1


def test_stores_that_keep_their_own_records_prune_them(memory):
    class Elsewhere(VectorStore):
        durability = default_store().durability

        def purge_expired(self, collection=None):
            return 4

    stores.register("elsewhere", Elsewhere())
    try:
        assert run("memory_prune").out == "Erased 4 memories.\n"
    finally:
        stores.unregister("elsewhere")


def test_no_text_and_no_vector_is_read(memory):
    from django.db import connection

    memory.remember("my secret")
    expire(memory)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        run("memory_prune")
    selected = [
        query["sql"].partition(" FROM ")[0] for query in queries if "SELECT" in query["sql"]
    ]
    assert selected
    assert not [columns for columns in selected if '"content"' in columns or '"vector"' in columns]
