"""django-rq: a queue by name, and "auto", which uses one only while a worker is there."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error

from ..deadlines import call_until
from ..digests import digest
from .base import Decision, Queue

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["AutoQueue", "RQQueue"]

logger = logging.getLogger("prism_memory.queue")

#: The queue that "auto" uses.
AUTO = "default"
#: Seconds for which a decision holds, so that it costs a save no round trip.
HOLDS = 5.0
#: Seconds that a caller waits for Redis, in all; then nobody waits for it again while HOLDS.
PATIENCE = 0.4
#: RQ stops a job after so many seconds. Ours hand over to a successor well before.
JOB_TIMEOUT = 600
#: Jobs of one collection: each of these may run, and one of them wait.
SLOTS = 8

Result = TypeVar("Result")


class RQQueue(Queue):
    """The queue of this name in ``RQ_QUEUES``, always: while Redis is down, rows stay pending."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.Lock()
        self.silent_until = 0.0

    def check(self, setting: str) -> list[CheckMessage]:
        queues = getattr(django_settings, "RQ_QUEUES", None) or {}
        if self.name in queues:
            return []
        return [
            Error(
                f"{setting} is {self.name!r}, but RQ_QUEUES defines no such queue.",
                hint=f"Defined: {', '.join(map(repr, queues)) or 'none'}. Add it, or use "
                '"auto" or "inline".',
                id="prism_memory.E010",
            )
        ]

    def decide(self) -> Decision:
        if self.name not in (getattr(django_settings, "RQ_QUEUES", None) or {}):
            return Decision(self.name, "RQ_QUEUES does not define it, so rows stay pending")
        try:
            alive = self._ask(lambda: _live_workers(self.name))
        except Exception as error:  # noqa: BLE001
            return Decision(self.name, f"Redis: {type(error).__name__}, so rows stay pending")
        return Decision(self.name, f"{alive} live workers")

    def enqueue(self, alias: str, collection: str) -> bool:
        if self._runs_at_once():
            return False
        if time.monotonic() >= self.silent_until:
            self._enqueued(alias, collection)
        return True

    def _runs_at_once(self) -> bool:
        # RQ would run the job here too, but in the thread that we stop waiting for.
        queues = getattr(django_settings, "RQ_QUEUES", None) or {}
        return queues.get(self.name, {}).get("ASYNC", True) is False

    def interrupts(self) -> tuple[type[BaseException], ...]:
        from rq.timeouts import BaseTimeoutException

        return (BaseTimeoutException,)

    def _enqueued(self, alias: str, collection: str) -> bool:
        try:
            self._ask(lambda: _enqueue(self.name, alias, collection))
        except Exception as error:  # noqa: BLE001 - whatever it is, the rows are committed
            logger.warning(
                "The queue %s took no job for %s (%s).", self.name, collection, type(error).__name__
            )
            return False
        return True

    def _ask(self, call: Callable[[], Result]) -> Result:
        # One at a time, so that a silent Redis holds up one caller, once.
        with self.lock:
            if time.monotonic() < self.silent_until:
                raise ConnectionError("Redis did not answer some seconds ago.")
            try:
                return call_until(call, time.monotonic() + PATIENCE)
            except Exception:
                self.silent_until = time.monotonic() + HOLDS
                raise


class AutoQueue(RQQueue):
    """The queue "default" while Redis answers and a live worker listens; otherwise inline."""

    def __init__(self) -> None:
        super().__init__(AUTO)
        self.decided: tuple[float, Decision] | None = None

    def check(self, setting: str) -> list[CheckMessage]:
        return []  # without the queue, embedding runs inline

    def decide(self) -> Decision:
        if self.decided is None or self.decided[0] <= time.monotonic():
            self.decided = (time.monotonic() + HOLDS, self._look())
        return self.decided[1]

    def enqueue(self, alias: str, collection: str) -> bool:
        if self.decide().queue is None:
            return False
        if self._enqueued(alias, collection):
            return True
        self.decided = None
        return False

    def _look(self) -> Decision:
        queues = getattr(django_settings, "RQ_QUEUES", None)
        if not queues:
            return Decision(None, "django-rq is not configured: there is no RQ_QUEUES")
        if self.name not in queues:
            return Decision(None, f"RQ_QUEUES does not define {self.name!r}")
        try:
            alive = self._ask(lambda: _live_workers(self.name))
        except Exception as error:  # noqa: BLE001 - any failure means that there is no worker
            return Decision(None, f"Redis: {type(error).__name__}")
        if not alive:
            return Decision(None, f"no live worker listens on the queue {self.name!r}")
        return Decision(self.name, f"{alive} live workers")


def _connection(name: str) -> Redis:
    """A connection as ``RQ_QUEUES`` describes it, but impatient: no retries, short time-outs."""
    from django_rq.connection_utils import get_connection
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    connection: Redis = get_connection(name)
    pool = connection.connection_pool
    options = {
        **pool.connection_kwargs,
        "socket_connect_timeout": PATIENCE,
        "socket_timeout": PATIENCE,
        "retry": Retry(NoBackoff(), 0),
    }
    if "connection_pool" in options:  # a sentinel's pool knows its own way to the master
        return connection
    return Redis(connection_pool=type(pool)(connection_class=pool.connection_class, **options))


def _live_workers(name: str) -> int:
    """Count the workers that listen on a queue and are alive.

    RQ's registry keeps a killed worker for minutes. Its subscription ends with its connection.
    """
    from django_rq import get_queue
    from rq.command import PUBSUB_CHANNEL_TEMPLATE
    from rq.worker_registration import get_keys

    connection = _connection(name)
    try:
        keys = get_keys(queue=get_queue(name, connection=connection))
        names = [(key.decode() if isinstance(key, bytes) else key).split(":", 2)[2] for key in keys]
        channels = [PUBSUB_CHANNEL_TEMPLATE % worker for worker in names]
        return sum(1 for _, count in connection.pubsub_numsub(*channels) if count) if names else 0
    finally:
        connection.close()


def _enqueue(name: str, alias: str, collection: str) -> None:
    """Put a job on the queue, unless one for the collection already waits there.

    A job that runs is no reason to drop another: it may have looked for the last time. One that
    waits is: it starts, and looks, after our rows were committed.
    """
    from django_rq import get_queue
    from rq.job import Job, JobStatus

    from ..jobs import embed_collection

    connection = _connection(name)
    try:
        queue: Any = get_queue(name, connection=connection, commit_mode="auto")
        slots = [f"prism-memory-{digest(alias, collection)[:32]}-{slot}" for slot in range(SLOTS)]
        jobs = Job.fetch_many(slots, connection=connection, serializer=queue.serializer)
        status = [job.get_status(refresh=False) if job else None for job in jobs]
        for slot, state in zip(slots, status, strict=True):
            if state == JobStatus.QUEUED and queue.get_job_position(slot) is not None:
                return
        free = [
            slot
            for slot, state in zip(slots, status, strict=True)
            if state not in (JobStatus.STARTED, JobStatus.QUEUED)
        ]
        queue.enqueue_call(
            embed_collection,
            args=(alias, collection),
            job_id=free[0] if free else None,
            timeout=JOB_TIMEOUT,
            result_ttl=0,  # a finished job leaves nothing behind, and its slot free
            description=f"prism_memory.embed_collection({collection})",
        )
    finally:
        connection.close()
