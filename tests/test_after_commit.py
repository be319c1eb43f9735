"""Without a queue, what was remembered is embedded in the process, after the commit."""

from __future__ import annotations

import logging
import threading

import pytest
from django.db import transaction
from django.test import override_settings

from prism_memory import backends
from prism_memory.models import Embedding, Memory

SECRET = "SECRET-4711"
FAKE = "prism_memory.testing.FakeEmbedder"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ana(embedder):
    """A handle that embeds after the commit."""
    return Memory.objects.for_owner("ana")


def texts(embedder) -> list[list[str]]:
    return [sorted(call) for call in embedder.calls]


def test_in_no_transaction_it_is_embedded_when_remember_returns(ana, embedder):
    ana.remember(["one", "two"])
    assert texts(embedder) == [["one", "two"]]
    assert ana.pending() == 0
    assert len(ana.recall("one")) == 2


def test_in_a_transaction_it_is_embedded_after_the_commit(ana, embedder):
    with transaction.atomic():
        ana.remember("one")
        assert ana.pending() == 1
        assert embedder.calls == []
    assert ana.pending() == 0


def test_a_transaction_is_one_call(ana, embedder):
    with transaction.atomic():
        ana.remember(["one", "two"])
        with transaction.atomic():
            ana.remember("three")
        ana.remember(["one", "four"])
    assert texts(embedder) == [["four", "one", "three", "two"]]


def test_collections_are_embedded_each(ana, embedder):
    with transaction.atomic():
        ana.remember("one")
        Memory.objects.for_owner("ana", "support").remember("two")
        Memory.objects.for_owner("bea").remember("three")
    assert sorted(texts(embedder)) == [["one"], ["three"], ["two"]]
    assert Memory.objects.unembedded().count() == 0


def test_a_batch_is_one_call():
    with override_settings(
        PRISM_MEMORY={"EMBEDDER": {"BACKEND": FAKE, "OPTIONS": {"batch_size": 4}}}
    ):
        ana = Memory.objects.for_owner("ana")
        said = [f"message {number:02}" for number in range(10)]
        ana.remember(said)
        assert backends.embedder().calls == [said[:4], said[4:8], said[8:]]  # oldest first
        assert ana.pending() == 0


def test_what_was_pending_before_is_left_for_another_run(ana, embedder):
    embedder.failure = ConnectionError()
    ana.remember("old")
    embedder.failure = None
    embedder.calls.clear()
    ana.remember("new")
    assert texts(embedder) == [["new"]]
    assert ana.pending() == 1
    ana.remember("old")  # again, so that it is of this transaction
    assert ana.pending() == 0


def test_a_repeat_costs_no_call(ana, embedder):
    ana.remember(["one", "two"])
    ana.remember(["one", "two"], metadata={"k": 1})
    assert len(embedder.calls) == 1


class TestRollback:
    def test_embeds_nothing(self, ana, embedder):
        with transaction.atomic():
            ana.remember("one")
            transaction.set_rollback(True)
        assert embedder.calls == []
        assert ana.count() == 0

    def test_is_not_carried_into_the_next_transaction(self, ana, embedder):
        embedder.failure = ConnectionError()
        ana.remember("pending")
        embedder.failure = None
        embedder.calls.clear()
        with transaction.atomic():
            ana.remember(["gone", "pending"])
            transaction.set_rollback(True)
        with transaction.atomic():
            ana.remember("kept")
        assert texts(embedder) == [["kept"]]

    @pytest.mark.parametrize("before", [False, True])
    @pytest.mark.parametrize("after", [False, True])
    def test_of_a_savepoint_drops_its_own_records_only(self, ana, embedder, before, after):
        with transaction.atomic():
            if before:
                ana.remember("before")
            with transaction.atomic():
                ana.remember("inside")
                transaction.set_rollback(True)
            if after:
                ana.remember("after")
        expected = ["after"] * after + ["before"] * before
        assert texts(embedder) == ([expected] if expected else [])
        assert sorted(row.content for row in ana.records().embedded()) == expected

    def test_of_a_savepoint_around_another_that_was_released(self, ana, embedder):
        with transaction.atomic():
            with transaction.atomic():
                with transaction.atomic():
                    ana.remember("inside")
                transaction.set_rollback(True)
            ana.remember("after")
        assert texts(embedder) == [["after"]]

    def test_of_a_savepoint_after_which_the_same_is_said_again(self, ana, embedder):
        with transaction.atomic():
            with transaction.atomic():
                ana.remember("one")
                transaction.set_rollback(True)
            ana.remember("one")
        assert texts(embedder) == [["one"]]
        assert ana.pending() == 0


class TestFailure:
    @pytest.fixture(autouse=True)
    def _level(self, caplog):
        caplog.set_level(logging.DEBUG)

    def test_leaves_the_records_pending_and_the_caller_unharmed(self, ana, embedder, caplog):
        embedder.failure = RuntimeError(f"401 for {SECRET}: I live in Graz.")
        with transaction.atomic():
            ids = ana.remember("I live in Graz.")
        assert [row.record_id for row in ana.records()] == ids
        assert ana.pending() == 1
        assert [record.levelname for record in caplog.records if "prism" in record.name] == [
            "WARNING"
        ]
        assert "RuntimeError" in caplog.text
        assert SECRET not in caplog.text
        assert "Graz" not in caplog.text
        embedder.failure = None
        assert ana.embed_pending() == 1
        assert len(ana.recall("Where do I live?")) == 1

    def test_of_the_settings_too(self, caplog):
        with override_settings(PRISM_MEMORY={"EMBEDDER": {"BACKEND": "nowhere.Embedder"}}):
            Memory.objects.for_owner("ana").remember("one")
        assert Memory.objects.unembedded().count() == 1
        assert "nowhere.Embedder" in caplog.text

    def test_keeps_the_batches_before_it(self, caplog):
        with override_settings(
            PRISM_MEMORY={"EMBEDDER": {"BACKEND": FAKE, "OPTIONS": {"batch_size": 2}}}
        ):
            ana, embedder = Memory.objects.for_owner("ana"), backends.embedder()
            embed = embedder.embed

            def fail_later(texts):
                if embedder.calls:
                    embedder.failure = ConnectionError()
                return embed(texts)

            embedder.embed = fail_later
            ana.remember(["one", "two", "three"])
            assert (ana.count(), ana.pending()) == (3, 1)

    def test_of_the_database_harms_nobody(self, ana, embedder, monkeypatch, caplog):
        def fail(*args, **kwargs):
            raise RuntimeError("the server went away")

        monkeypatch.setattr("prism_memory.stores.table.write_vectors", fail)
        ana.remember("I live in Graz.")
        assert ana.pending() == 1
        assert "Graz" not in caplog.text


class TestDeadline:
    @pytest.fixture
    def slow(self, embedder):
        """Make the embedder wait until the test is over."""
        over = threading.Event()
        embed = embedder.embed

        def wait(texts):
            answer = embed(texts)
            over.wait(30)
            return answer

        embedder.embed = wait
        yield embedder
        over.set()
        del embedder.embed

    @pytest.fixture(autouse=True)
    def _short(self):
        # Not override_settings, which would make a new embedder.
        with pytest.MonkeyPatch.context() as patch:
            from prism_memory.conf import settings

            patch.setitem(vars(settings()), "inline_deadline", 0.05)
            yield

    def test_leaves_the_records_pending_and_the_caller_goes_on(self, ana, slow, caplog):
        ana.remember("I live in Graz.")
        assert ana.pending() == 1
        assert "INLINE_DEADLINE" in caplog.text
        assert "Graz" not in caplog.text

    def test_is_one_for_the_whole_transaction(self, ana, slow):
        slow.batch_size, before = 1, slow.batch_size
        try:
            with transaction.atomic():
                ana.remember(["one", "two", "three"])
                Memory.objects.for_owner("bea").remember("four")
        finally:
            slow.batch_size = before
        # No call is paid for whose answer nobody would wait for.
        assert slow.calls == [["one"]]
        assert Embedding.objects.count() == 0

    def test_does_not_hold_for_those_who_wait_on_purpose(self, ana, embedder):
        in_thread = []
        embed = embedder.embed
        embedder.embed = lambda texts: in_thread.append(threading.current_thread()) or embed(texts)
        try:
            ana.synchronously().remember("one")
        finally:
            del embedder.embed
        assert in_thread == [threading.current_thread()]


@pytest.mark.django_db(transaction=False)
class TestInATestCase:
    def test_callbacks_can_be_captured(self, embedder, django_capture_on_commit_callbacks):
        ana = Memory.objects.for_owner("ana")
        with django_capture_on_commit_callbacks(execute=True):
            ana.remember("one")
            ana.remember("two")
        assert texts(embedder) == [["one", "two"]]
        with django_capture_on_commit_callbacks(execute=True):
            ana.remember("three")
        assert texts(embedder)[1:] == [["three"]]
        assert ana.pending() == 0
