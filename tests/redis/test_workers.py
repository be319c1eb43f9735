"""Real workers: what they embed, and what is left when they are killed at any point."""

from __future__ import annotations

import threading

import pytest
import redis
from django.db import connections, transaction
from rq.suspension import resume, suspend
from rq.worker import Worker as RQWorker

from prism_memory.models import Embedding, Memory
from prism_memory.queues import queue
from tests.commands import run
from tests.invariants import check_tables

from .conftest import URL
from .workers import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ana():
    return Memory.objects.for_owner("ana")


def texts(count):
    return [f"text {number:04}" for number in range(count)]


def embedded(memory):
    return lambda: memory.pending() == 0


class TestAWorker:
    @pytest.mark.parametrize("name", ["default", "auto"])
    def test_embeds_what_is_remembered(self, ana, rq, start, sent, name):
        start()
        rq(name)
        with transaction.atomic():
            ana.remember(texts(50))
        wait_for(embedded(ana), "the worker")
        assert sent() == 50
        assert len(ana.recall("text 0007", limit=1)) == 1
        check_tables()

    @pytest.mark.parametrize("serializer", ["rq.serializers.JSONSerializer"])
    def test_gets_arguments_that_are_json(self, ana, start, sent):
        start()
        ana.remember("one")
        wait_for(embedded(ana), "the worker")
        assert sent() == 1

    def test_leaves_nothing_behind_in_redis(self, ana, start, server):
        start()
        ana.remember("one")
        wait_for(embedded(ana), "the worker")
        wait_for(lambda: not list(server.scan_iter("rq:job:*")), "the end of the job")

    def test_that_shares_a_collection_wastes_little(self, ana, start, sent):
        for _ in range(2):
            start(PRISM_WORKER_SECONDS="0.02")
        for number in range(20):
            ana.remember([f"{number} {text}" for text in texts(50)])
        wait_for(embedded(ana), "two workers")
        assert sent() <= 1_100
        assert Embedding.objects.count() == 1_000
        check_tables()


class TestJobs:
    def test_one_that_waits_is_enough(self, ana, rq, server):
        for text in texts(5):
            ana.remember(text)
        assert server.llen("rq:queue:default") == 1
        Memory.objects.for_owner("bea").remember("one")
        assert server.llen("rq:queue:default") == 2

    def test_one_that_runs_is_not(self, ana, start, server, held, go_on):
        stopped = held("after")
        start()
        ana.remember("one")
        wait_for(stopped, "the embedder")
        ana.remember("two")
        ana.remember("three")
        assert server.llen("rq:queue:default") == 1
        go_on()
        wait_for(embedded(ana), "the second job")

    def test_one_that_was_deleted_is_not(self, ana, rq, server):
        ana.remember("one")
        for key in server.scan_iter("rq:job:*"):
            server.delete(key)
        ana.remember("two")
        assert server.llen("rq:queue:default") == 2

    def test_the_commit_mode_of_django_rq_does_not_matter(self, ana, rq, server, settings):
        settings.RQ = {"COMMIT_MODE": "request_finished"}
        ana.remember("one")  # in no request
        assert server.llen("rq:queue:default") == 1

    def test_one_that_failed_is_not(self, ana, rq, start, server, folder):
        start(PRISM_WORKER_FOLDER="/nonexistent")
        ana.remember("one")
        wait_for(lambda: server.zcard("rq:failed:default") == 1, "the failure")
        assert ana.pending() == 1
        start()
        for number in range(50):  # one of the two workers has no folder
            if ana.pending() == 0:
                break
            ana.remember(f"{number}")
            wait_for(lambda: server.llen("rq:queue:default") == 0, "a worker")
        wait_for(embedded(ana), "the worker")


POINTS = ["before", "after"]  # the provider took the texts, and before their vectors are written


class TestKilled:
    @pytest.fixture
    def killed(self, ana, start, held, go_on):
        """A function that kills a worker in mid-batch, at a point."""

        def kill(point, horse_only=False):
            stopped = held(point)
            worker = start()
            ana.remember(texts(30))
            wait_for(stopped, "the embedder")
            worker.kill(horse_only=horse_only)
            go_on()
            assert ana.pending() == 30

        return kill

    @pytest.mark.parametrize("point", POINTS)
    def test_the_next_job_embeds_the_rest(self, ana, killed, start, point):
        killed(point)
        start()
        ana.remember("one more")
        wait_for(embedded(ana), "the next job")
        assert Embedding.objects.count() == 31
        check_tables()

    @pytest.mark.parametrize("point", POINTS)
    def test_so_does_embed_pending(self, ana, killed, point):
        killed(point)
        assert ana.embed_pending() == 30
        check_tables()

    def test_so_does_the_pending_command(self, ana, killed):
        killed("after")
        assert run("memory_pending", "--embed", "--fail-over", "0").code == 0
        assert ana.pending() == 0

    def test_a_work_horse_alone(self, ana, killed):
        killed("after", horse_only=True)
        ana.remember("one more")
        wait_for(embedded(ana), "the next job")


class TestLost:
    def test_a_flushed_redis(self, ana, start, server):
        ana.remember("one")
        server.flushdb()
        start()
        assert ana.pending() == 1
        ana.remember("two")
        wait_for(embedded(ana), "the next job")

    def test_a_queue_that_was_emptied(self, ana, start, server):
        ana.remember("one")
        server.delete("rq:queue:default")
        start()
        ana.remember("two")
        wait_for(embedded(ana), "the next job")

    def test_a_queue_that_is_paused(self, ana, rq, start, server):
        worker = start()
        suspend(server)
        assert rq("auto").decide().queue is None
        assert "suspended" in queue().decide().reason
        rq("default")
        ana.remember("one")
        assert ana.pending() == 1
        resume(server)
        assert worker.process.poll() is None
        wait_for(embedded(ana), "the worker")


class TestAuto:
    @pytest.fixture(autouse=True)
    def fresh(self, rq):
        self.rq = rq

    def decision(self):
        """A decision that was made just now."""
        return self.rq("auto").decide()

    def test_without_a_worker_it_is_inline(self, ana):
        assert self.decision().queue is None
        assert self.decision().reason == "no live worker listens on the queue 'default'"
        ana.remember("one")
        assert ana.pending() == 0

    def test_a_live_worker_counts_idle_or_busy(self, ana, start, held, go_on):
        stopped = held("after")
        start()
        wait_for(lambda: self.decision().queue == "default", "a decision")
        assert self.decision().reason == "1 live worker"
        ana.remember("one")
        wait_for(stopped, "the embedder")
        wait_for(lambda: self.decision().queue == "default", "a decision")
        go_on()

    def test_a_killed_worker_does_not_count(self, start, server):
        start().kill()
        assert RQWorker.count(connection=server) == 1
        wait_for(lambda: self.decision().queue is None, "the end of its connection", 5)

    def test_the_pending_command_tells(self, start):
        self.rq("auto")
        assert "Embedding runs inline, after the commit (no live worker" in (
            run("memory_pending").out
        )
        start()
        wait_for(lambda: self.decision().queue == "default", "a decision")
        out = run("memory_pending").out
        assert "Embedding runs on the queue 'default' (1 live worker)." in out


def test_twenty_threads_that_remember_one_sentence_give_one_row(ana, start):
    start()
    failures = []
    barrier = threading.Barrier(20)

    def remember():
        try:
            barrier.wait(20)
            Memory.objects.for_owner("ana").remember("I live in Graz.")
        except Exception as error:  # noqa: BLE001
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=remember) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert Memory.objects.count() == 1
    wait_for(embedded(ana), "the worker")
    assert Embedding.objects.count() == 1


def test_forgetting_races_the_workers(ana, start):
    for _ in range(2):
        start(PRISM_WORKER_SECONDS="0.01")
    for turn in range(10):
        ids = ana.remember([f"{turn} {text}" for text in texts(50)])
        kept = Memory.objects.for_owner("bea").remember(f"kept {turn}")
        assert ana.forget(ids) == 50
        assert len(kept) == 1
    wait_for(embedded(Memory.objects.for_owner("bea")), "the workers")
    assert ana.count() == 0
    assert Memory.objects.count() == 10
    check_tables()


def test_a_redis_that_can_not_be_reached_is_a_failure():
    """What these tests promise: they are never skipped for want of a service."""
    with redis.Redis.from_url(URL) as server:
        assert server.ping()
