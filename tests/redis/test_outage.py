"""A Redis that stops or falls silent when a request commits."""

from __future__ import annotations

import time

import pytest
import redis
from django.db import transaction

from prism_memory.models import Memory
from prism_memory.queues import queue
from tests.queues import rq_queues

from .servers import RedisServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def own(tmp_path, settings):
    """A Redis of the test's own, configured for django-rq."""
    own = RedisServer(tmp_path)
    with rq_queues(settings, default={"URL": own.url}):
        yield own
    own.stop()


@pytest.mark.parametrize("how", ["stop", "freeze"])
@pytest.mark.parametrize("name", ["default", "auto"])
def test_the_request_is_done_within_a_second(own, how, name, settings, embedder, monkeypatch):
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "QUEUE": name}
    if name == "auto":
        # Decided while a worker was there, and to be found out at the commit.
        monkeypatch.setattr("prism_memory.queues.rq.listening", lambda *args: (1, "1 live worker"))
        assert queue().decide().queue == "default"
    ana = Memory.objects.for_owner("ana")
    ana.remember("before")
    waiting = ana.pending()
    with transaction.atomic():
        ana.remember("one")
        getattr(own, how)()
        start = time.monotonic()
    # A second is promised; a busy machine gets more.
    assert time.monotonic() - start < 3.5
    assert ana.pending() == waiting + (name == "default")
    assert ana.count() == 2


def test_jobs_are_put_again_once_redis_is_back(own, settings, embedder, monkeypatch):
    monkeypatch.setattr("prism_memory.queues.rq.HOLDS", 0.1)
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "QUEUE": "default"}
    ana = Memory.objects.for_owner("ana")
    own.stop()
    ana.remember("one")
    own.start()
    time.sleep(0.2)
    ana.remember("two")
    with redis.Redis.from_url(own.url) as connection:
        assert connection.llen("rq:queue:default") == 1


@pytest.mark.parametrize("by", ["HOST", "UNIX_SOCKET_PATH"])
def test_redis_may_be_named_in_each_way(own, by, settings):
    place = {"HOST": "127.0.0.1", "PORT": own.port, "DB": 0}
    if by == "UNIX_SOCKET_PATH":
        place = {"UNIX_SOCKET_PATH": own.socket, "DB": 0}
    with rq_queues(settings, default=place):
        settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "QUEUE": "auto"}
        assert queue().decide().reason == "no live worker listens on the queue 'default'"
