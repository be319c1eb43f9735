"""Django's own tasks as the queue. Where Django has none, configuring it is a clear error."""

from __future__ import annotations

import json

import django
import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import transaction
from django.utils.module_loading import import_string

from prism_memory.models import Memory
from prism_memory.queues import queue

PATH = "prism_memory.queues.tasks.TasksQueue"
HAS_TASKS = django.VERSION >= (6, 0)

TASKS = {
    "default": {"BACKEND": "django.tasks.backends.immediate.ImmediateBackend"},
    "later": {
        "BACKEND": "django.tasks.backends.dummy.DummyBackend",
        "QUEUES": ["default", "embedding"],
    },
}


@pytest.fixture
def use(settings, embedder):
    """A function that has QUEUE be Django's tasks, with options."""
    embedding_settings = settings.PRISM_MEMORY["EMBEDDER"]

    def use(**options):
        settings.TASKS = TASKS
        entry = {"BACKEND": PATH, "OPTIONS": options}
        settings.PRISM_MEMORY = {"EMBEDDER": embedding_settings, "QUEUE": entry}

    return use


# Not skipped: a version of Django has either these tests or the other one.
if not HAS_TASKS:

    def test_an_older_django_is_told(use):
        use()
        with pytest.raises(SystemCheckError, match=r"needs Django 6\.0 or newer; this is 5\."):
            call_command("check")

else:

    @pytest.mark.django_db(transaction=True)
    class TestImmediately:
        def test_what_is_remembered_is_embedded_after_the_commit(self, use):
            use()
            ana = Memory.objects.for_owner("ana")
            with transaction.atomic():
                ana.remember(["one", "two"])
                assert ana.pending() == 2
            assert ana.pending() == 0

        def test_a_failing_provider_harms_no_caller(self, use):
            from prism_memory import backends

            use()
            backends.embedder().failure = ConnectionError()
            ana = Memory.objects.for_owner("ana")
            ana.remember("one")
            assert ana.pending() == 1
            backends.embedder().failure = None
            ana.remember("two")  # the job embeds whatever waits
            assert ana.pending() == 0

    @pytest.mark.django_db(transaction=True)
    class TestLater:
        @pytest.fixture
        def results(self, use):
            from django.tasks import task_backends

            use(backend="later", queue_name="embedding")
            task_backends["later"].clear()
            return task_backends["later"].results

        def test_one_task_a_collection_and_transaction(self, results):
            ana = Memory.objects.for_owner("ana")
            with transaction.atomic():
                ana.remember("one")
                ana.remember("two")
                assert results == []
            [result] = results
            assert result.task.queue_name == "embedding"
            assert json.loads(json.dumps(result.args)) == ["default", ana.collection]
            assert result.kwargs == {}

        def test_a_worker_finds_the_task_by_its_path(self, results):
            from django.tasks import Task

            ana = Memory.objects.for_owner("ana")
            ana.remember(["one", "two"])
            found = import_string(results[0].task.module_path)
            assert isinstance(found, Task)
            found.call(*results[0].args)
            assert ana.pending() == 0

        def test_a_rollback_leaves_no_task(self, results):
            with transaction.atomic():
                Memory.objects.for_owner("ana").remember("one")
                transaction.set_rollback(True)
            assert results == []

        def test_a_backend_that_raises_harms_no_caller(self, results, monkeypatch, caplog):
            from django.tasks import task_backends

            def fail(*args):
                raise RuntimeError("secret")

            monkeypatch.setattr(task_backends["later"], "enqueue", fail)
            ana = Memory.objects.for_owner("ana")
            ana.remember("I live in Graz.")
            assert ana.pending() == 1
            assert "took no job" in caplog.text
            assert "secret" not in caplog.text
            assert "Graz" not in caplog.text

        def test_the_decision_names_it(self, results):
            decision = queue().decide()
            assert (decision.queue, decision.reason) == (
                "embedding",
                "django.tasks, backend 'later'",
            )

    @pytest.mark.parametrize("wrong", [{"backend": "nowhere"}, {"queue_name": "nowhere"}])
    def test_checks_name_what_tasks_does_not_define(use, wrong):
        use(**wrong)
        with pytest.raises(SystemCheckError, match=r"nowhere.*\n.*\(?prism_memory.E010|E010"):
            call_command("check")

    def test_checks_pass_what_it_defines(use):
        use(backend="later", queue_name="embedding")
        call_command("check")


def test_unknown_options_are_refused(use):
    use(colour="red")
    with pytest.raises(SystemCheckError, match=r"unknown options 'colour'"):
        call_command("check")
