"""Fixtures of the tests against a real Redis and real workers."""

from __future__ import annotations

import os

import pytest
import redis
from django.db import connection

from prism_memory.queues import queue
from tests.queues import rq_queues

from .workers import Worker, wait_for

URL = os.environ["PRISM_TEST_REDIS"]


@pytest.fixture
def server():
    """The Redis that the variable names, emptied. One that can't be reached is a failure."""
    with redis.Redis.from_url(URL) as connection:
        connection.flushdb()
        yield connection
        connection.flushdb()


@pytest.fixture
def serializer():
    return "rq.serializers.DefaultSerializer"


@pytest.fixture
def rq(server, settings, serializer):
    """A function that sets QUEUE, with django-rq's queue "default" there to be used."""
    embedder = settings.PRISM_MEMORY["EMBEDDER"]

    def use(name="default"):
        settings.PRISM_MEMORY = {"EMBEDDER": embedder, "QUEUE": name}
        return queue()

    with rq_queues(settings, default={"URL": URL, "SERIALIZER": serializer}):
        use()
        yield use


@pytest.fixture
def folder(tmp_path):
    """Where tests and workers meet."""
    return tmp_path


@pytest.fixture
def start(folder, rq, serializer, transactional_db):
    """A function that starts a worker and waits until it listens."""
    started = []

    def start(**variables):
        worker = Worker(
            {
                "PRISM_TEST_REDIS": URL,
                "PRISM_WORKER_DATABASE": str(connection.settings_dict["NAME"]),
                "PRISM_WORKER_FOLDER": str(folder),
                "PRISM_WORKER_SERIALIZER": serializer,
                "PRISM_WORKER_CLAIM": "2",
                **variables,
            },
            folder / "log",
        )
        started.append(worker)
        alive = sum(other.process.poll() is None for other in started)
        wait_for(lambda: live_workers() == alive, f"{alive} workers")
        return worker

    yield start
    for worker in started:
        if worker.process.poll() is None:
            worker.kill()


def live_workers() -> int:
    from prism_memory.queues.workers import listening

    with redis.Redis.from_url(URL) as connection:
        return listening(connection, "default")[0]


@pytest.fixture
def held(folder):
    """A function that has the embedder of the workers stop at a point, and tells when it did."""

    def hold(point):
        (folder / "held").unlink(missing_ok=True)
        (folder / f"hold-{point}").touch()
        return (folder / "held").exists

    return hold


@pytest.fixture
def go_on(folder):
    def go_on():
        for hold in folder.glob("hold-*"):
            hold.unlink()

    return go_on


@pytest.fixture
def sent(folder):
    """A function that tells how many texts were sent to the provider."""

    def sent():
        path = folder / "sent"
        lines = path.read_text().splitlines() if path.exists() else []
        return sum(int(line.split()[1]) for line in lines)

    return sent
