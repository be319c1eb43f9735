"""QUEUE: which queue is taken, for how long a decision holds, and what an absent Redis costs."""

from __future__ import annotations

import contextvars
import socket
import threading
import time

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import transaction

from prism_memory.deadlines import DeadlineExceeded, call_until
from prism_memory.models import Memory
from prism_memory.queues import build_queue, queue
from prism_memory.queues import rq as named
from prism_memory.queues.auto import AutoQueue
from prism_memory.queues.redis_connection import PATIENCE
from prism_memory.queues.rq import RQQueue

from .queues import closed_port, rq_queues, silent_server

#: What PATIENCE may become on a busy machine; without it, RQ's clients would take 4 to 59 seconds.
LONGEST = PATIENCE + 3


@pytest.fixture
def chosen(settings):
    """A function that sets QUEUE and returns the queue that is built."""

    def choose(name):
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "QUEUE": name}
        return queue()

    return choose


@pytest.fixture
def looks(monkeypatch):
    """Let RQ have as many workers as a list says last; returns the list, and what was asked."""
    alive = [1]
    seen = []

    def listening(connection, name):
        seen.append(name)
        return alive[-1], f"{alive[-1]} workers"

    monkeypatch.setattr(named, "listening", listening)
    # What answers at once is not waited for, but a busy machine may be.
    monkeypatch.setattr(named, "PATIENCE", 60.0)
    return alive, seen


class TestWithoutDjangoRQ:
    def test_auto_is_inline(self, chosen):
        decision = chosen("auto").decide()
        assert decision.queue is None
        assert "there is no RQ_QUEUES" in decision.reason

    def test_auto_needs_the_queue_default(self, chosen, settings):
        with rq_queues(settings, other={}):
            assert "does not define 'default'" in chosen("auto").decide().reason

    def test_a_name_is_an_error_of_the_checks(self, chosen, settings):
        chosen("slow")
        with pytest.raises(SystemCheckError, match=r"\(prism_memory.E010\)"):
            call_command("check")
        with rq_queues(settings, slow={}):
            call_command("check")

    @pytest.mark.django_db(transaction=True)
    def test_a_name_that_is_not_defined_leaves_rows_pending(self, chosen, embedder, caplog):
        chosen("slow")
        ana = Memory.objects.for_owner("ana")
        ana.remember("I live in Graz.")
        assert ana.pending() == 1
        assert "took no job" in caplog.text
        assert "Graz" not in caplog.text


@pytest.fixture(params=["refused", "silent", "nameless"])
def absent(request, monkeypatch, settings):
    """RQ_QUEUES of a Redis that refuses, never answers, or whose name takes long to resolve."""
    if request.param == "silent":
        with (
            silent_server() as port,
            rq_queues(settings, default={"HOST": "127.0.0.1", "PORT": port}),
        ):
            yield
        return
    if request.param == "nameless":
        over = threading.Event()

        def resolve(*args, **kwargs):
            over.wait(20)
            raise socket.gaierror

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with rq_queues(settings, default={"HOST": "redis.invalid", "PORT": 6379}):
            yield
        over.set()
        return
    with rq_queues(settings, default={"URL": f"redis://127.0.0.1:{closed_port()}/0"}):
        yield


@pytest.mark.django_db(transaction=True)
class TestAnAbsentRedis:
    def test_is_waited_for_once_and_then_embedding_runs_inline(self, absent, chosen, embedder):
        chosen("auto")
        ana = Memory.objects.for_owner("ana")
        start = time.monotonic()
        ana.remember("one")
        assert time.monotonic() - start < LONGEST
        assert ana.pending() == 0
        again = time.monotonic()
        for number in range(20):
            ana.remember(f"{number}")
        assert time.monotonic() - again < LONGEST + 2  # and not 20 times PATIENCE
        decision = queue().decide()
        assert decision.queue is None
        assert decision.reason.startswith("Redis can't be used (")

    def test_leaves_rows_pending_where_the_queue_is_named(self, absent, chosen, caplog):
        chosen("default")
        ana = Memory.objects.for_owner("ana")
        start = time.monotonic()
        for number in range(20):
            ana.remember(f"{number}")
        with transaction.atomic():
            for owner in "abcdef":
                Memory.objects.for_owner(owner).remember("one")
        assert time.monotonic() - start < LONGEST + 3
        assert ana.pending() == 20
        decision = queue().decide()
        assert decision.queue == "default"
        assert decision.reason.endswith("rows stay pending")

    def test_holds_up_callers_at_once_no_longer_than_one(self, absent, chosen):
        auto = chosen("auto")
        start = time.monotonic()
        threads = [threading.Thread(target=auto.enqueue, args=("default", "c")) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert time.monotonic() - start < LONGEST + 1


class TestAuto:
    @pytest.fixture
    def put(self, monkeypatch, settings):
        """The jobs that are put on the queue."""
        jobs = []

        def put(connection, *job):
            jobs.append(job)

        monkeypatch.setattr(named, "put", put)
        with rq_queues(settings, default={"URL": f"redis://127.0.0.1:{closed_port()}/0"}):
            yield jobs

    def test_a_decision_holds_for_seconds_and_not_for_ever(self, looks, put, monkeypatch):
        alive, seen = looks
        auto = AutoQueue()
        for _ in range(50):
            assert auto.enqueue("default", "c")
        assert seen == ["default"]
        alive.append(0)
        monkeypatch.setattr(auto, "decided_until", 0)
        assert not auto.enqueue("default", "c")
        assert len(seen) == 2
        assert put == [("default", "default", "c")] * 50

    def test_a_queue_that_stops_taking_jobs_is_left_at_once(self, looks, put, monkeypatch):
        def refuse(connection, *job):
            raise ConnectionError("redis://user:password@host")

        auto = AutoQueue()
        assert auto.enqueue("default", "c")
        monkeypatch.setattr(named, "put", refuse)
        assert not auto.enqueue("default", "c")
        assert auto.decide().queue is None
        assert auto.decide().reason == "Redis can't be used (ConnectionError)"

    def test_decision_and_job_share_their_time(self, put, monkeypatch):
        def slow(connection, name):
            time.sleep(PATIENCE * 0.8)
            return 1, "1 live worker"

        def slower(connection, *job):
            time.sleep(PATIENCE * 0.8)

        monkeypatch.setattr(named, "listening", slow)
        monkeypatch.setattr(named, "put", slower)
        assert not AutoQueue().enqueue("default", "c")

    @pytest.mark.parametrize("name", ["auto", "default"])
    def test_a_queue_that_is_not_asynchronous_counts_as_none(
        self, looks, put, chosen, name, settings
    ):
        with rq_queues(settings, default={"URL": "redis://127.0.0.1:1/0", "ASYNC": False}):
            chosen(name)
            assert queue().decide().queue is None
            assert "ASYNC" in queue().decide().reason
            assert not queue().enqueue("default", "c")
        assert put == []


def test_sentinels_that_do_not_answer_are_no_queue(chosen, settings):
    place = {"SENTINELS": [("127.0.0.1", closed_port())], "MASTER_NAME": "main", "DB": 0}
    with rq_queues(settings, default=place):
        decision = chosen("auto").decide()
    assert decision.queue is None
    assert decision.reason.startswith("Redis can't be used (")


def test_each_setting_has_its_queue(chosen):
    assert type(chosen("auto")) is AutoQueue
    assert type(chosen("slow")) is RQQueue
    assert chosen("inline").decide().queue is None
    assert not chosen("inline").enqueue("default", "c")
    assert build_queue() is not build_queue()


class TestDeadlines:
    def test_context_variables_reach_the_call(self):
        trace = contextvars.ContextVar("trace", default="none")
        trace.set("of the request")
        for deadline in (None, time.monotonic() + 20):
            assert call_until(trace.get, deadline) == "of the request"

    @pytest.mark.django_db(transaction=True)
    def test_context_variables_reach_the_embedder(self, embedder, monkeypatch):
        trace = contextvars.ContextVar("trace", default="none")
        seen = []
        embed = embedder.embed
        monkeypatch.setattr(
            embedder, "embed", lambda texts: seen.append(trace.get()) or embed(texts)
        )
        trace.set("of the request")
        Memory.objects.for_owner("ana").remember("one")
        assert seen == ["of the request"]

    def test_a_call_that_raises(self):
        with pytest.raises(ZeroDivisionError):
            call_until(lambda: 1 / 0, time.monotonic() + 20)

    def test_a_call_that_hangs(self):
        over = threading.Event()
        with pytest.raises(DeadlineExceeded):
            call_until(lambda: over.wait(20), time.monotonic() + 0.05)
        over.set()

    def test_a_call_that_comes_too_late_is_not_made(self):
        made = []
        with pytest.raises(DeadlineExceeded):
            call_until(lambda: made.append(1), time.monotonic() - 1)
        assert made == []
