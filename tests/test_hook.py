"""Whatever code saves a memory, one job a collection and transaction is put on the queue."""

from __future__ import annotations

import pytest
from django.core.management import BaseCommand, call_command
from django.db import connection, transaction
from django.http import HttpResponse
from django.test import override_settings
from django.urls import path

from prism_memory.jobs import embed_collection
from prism_memory.models import Memory
from prism_memory.queues import queue
from prism_memory.signals import embedded

from .queues import RECORDING

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def recording(settings, embedder):
    """The queue, which takes every job and runs none."""
    fake = settings.PRISM_MEMORY["EMBEDDER"]
    settings.PRISM_MEMORY = {"EMBEDDER": fake, "QUEUE": RECORDING}
    return queue()


def row(content="one", collection="c"):
    return Memory(collection=collection, record_id=content, content=content)


def remember(content="one"):
    return Memory.objects.for_owner("ana").remember(content)


def view(request):
    remember()
    assert queue().jobs == []
    if "fail" in request.GET:
        raise RuntimeError
    return HttpResponse()


urlpatterns = [path("", view)]


class Command(BaseCommand):
    def handle(self, *args, **options):
        with transaction.atomic():
            remember()
            assert queue().jobs == []


class TestWhoSaves:
    def test_save(self, recording):
        row().save()
        assert recording.jobs == [("default", "c")]

    def test_create(self, recording):
        Memory.objects.create(collection="c", record_id="r", content="one")
        assert recording.jobs == [("default", "c")]

    def test_get_or_create(self, recording):
        for _ in range(2):
            Memory.objects.get_or_create(collection="c", record_id="r", content="one")
        assert recording.jobs == [("default", "c")]

    def test_the_handle(self, recording):
        remember(["one", "two"])
        assert recording.jobs == [("default", Memory.objects.for_owner("ana").collection)]

    def test_a_foreign_bulk_create_tells_nobody_and_the_next_job_finds_its_rows(self, recording):
        Memory.objects.bulk_create([row("one"), row("two")])
        assert recording.jobs == []
        row("three").save()
        embed_collection(*recording.jobs[0])
        assert Memory.objects.unembedded().count() == 0

    def test_a_handle_that_embeds_at_once_needs_no_job(self, recording):
        Memory.objects.for_owner("ana").synchronously().remember("one")
        assert recording.jobs == []


class TestTransactions:
    def test_the_job_comes_with_the_commit(self, recording):
        with transaction.atomic():
            row().save()
            with transaction.atomic():
                remember()
            assert recording.jobs == []
        assert len(recording.jobs) == 2

    def test_one_job_a_collection(self, recording):
        with transaction.atomic():
            for number in range(20):
                row(f"{number}", "c").save()
                row(f"{number}", "d").save()
        assert recording.jobs == [("default", "c"), ("default", "d")]

    def test_a_rollback_leaves_no_job(self, recording):
        with transaction.atomic():
            row().save()
            transaction.set_rollback(True)
        assert recording.jobs == []
        row("two", "d").save()
        assert recording.jobs == [("default", "d")]

    @pytest.mark.parametrize("before", [False, True])
    @pytest.mark.parametrize("after", [False, True])
    def test_a_rolled_back_savepoint(self, recording, before, after):
        with transaction.atomic():
            if before:
                row("before").save()
            with transaction.atomic():
                row("inside").save()
                transaction.set_rollback(True)
            if after:
                row("after").save()
        assert recording.jobs == [("default", "c")] * (before or after)

    def test_a_request_of_its_own_transaction(self, recording, client, monkeypatch, settings):
        settings.ROOT_URLCONF = __name__
        monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
        assert client.get("/").status_code == 200
        assert len(recording.jobs) == 1
        recording.jobs.clear()
        with pytest.raises(RuntimeError):
            client.get("/?fail")
        assert recording.jobs == []

    def test_a_command(self, recording):
        call_command(Command())
        assert len(recording.jobs) == 1

    def test_a_job_that_remembers(self, recording):
        def note(sender, collection, **kwargs):
            if collection == "c":
                remember("noted")

        row().save()
        embedded.connect(note)
        try:
            embed_collection("default", "c")
        finally:
            embedded.disconnect(note)
        assert len(recording.jobs) == 2

    @pytest.mark.django_db(transaction=True, databases=["default", "other"])
    def test_the_commit_is_that_of_the_rows_own_database(self, recording):
        with override_settings(DATABASE_ROUTERS=["tests.routers.MemoriesElsewhere"]):
            with transaction.atomic(using="other"):
                remember("one")
                row("two").save()
                with transaction.atomic():
                    pass  # a commit of another database
                assert recording.jobs == []
            assert len(recording.jobs) == 2
            with transaction.atomic():
                remember("three")
                assert len(recording.jobs) == 3

    @pytest.mark.django_db(transaction=False)
    def test_a_test_case_captures_it(self, recording, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks(execute=True):
            row("one").save()
            remember()
            row("two").save()
        assert len(recording.jobs) == 2
        with django_capture_on_commit_callbacks(execute=True):
            row("three").save()
        assert len(recording.jobs) == 3


def test_a_queue_that_raises_harms_no_caller(recording, monkeypatch):
    def fail(alias, collection):
        raise RuntimeError

    monkeypatch.setattr(recording, "enqueue", fail)
    assert remember()
    assert Memory.objects.count() == 1
