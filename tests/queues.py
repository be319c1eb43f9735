"""Queues for tests: one that only takes notes, and a Redis that answers nobody."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from prism_memory.queues import Decision, Queue

RECORDING = {"BACKEND": "tests.queues.RecordingQueue"}


class RecordingQueue(Queue):
    """Takes every job and runs none."""

    def __init__(self) -> None:
        self.jobs: list[tuple[str, str]] = []

    def decide(self) -> Decision:
        return Decision("recording", "a test asks for it")

    def enqueue(self, alias: str, collection: str) -> bool:
        self.jobs.append((alias, collection))
        return True


@contextmanager
def rq_queues(settings: Any, **queues: dict[str, Any]) -> Iterator[None]:
    """Configure django-rq, which reads its settings once, when it is imported.

    ``settings`` is the fixture, which undoes it: an override of another kind within that of the
    fixture would outlive the test.
    """
    settings.RQ_QUEUES = queues
    import django_rq.settings

    with mock.patch.object(django_rq.settings, "QUEUES", queues):
        yield


@contextmanager
def silent_server() -> Iterator[int]:
    """A server that takes connections and never answers; yields its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server.getsockname()[1]


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
