"""django-rq: a queue by name."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error

from ..deadlines import call_until
from .base import Decision, Queue
from .redis_connection import PATIENCE, impatient
from .rq_job import put
from .workers import listening

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["HOLDS", "RQQueue", "in_words", "redis_deadline"]

logger = logging.getLogger("prism_memory.queue")

#: Seconds for which a Redis that failed is not asked again.
HOLDS = 5.0

Result = TypeVar("Result")


class RQQueue(Queue):
    """The queue of this name in ``RQ_QUEUES``, always: while Redis is down, rows stay pending."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.silent_until = 0.0

    def check(self, setting: str) -> list[CheckMessage]:
        queues = _configured()
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
        if problem := self._misfit():
            return Decision(None if self._runs_at_once() else self.name, problem)
        try:
            _, reason = self._ask(self._listening, redis_deadline())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is to be told
            return Decision(self.name, f"{in_words(error)}; rows stay pending")
        return Decision(self.name, reason)

    def enqueue(self, alias: str, collection: str) -> bool:
        if self._runs_at_once():
            return False
        if time.monotonic() >= self.silent_until:
            self._put(alias, collection, redis_deadline())
        return True

    def interrupts(self) -> tuple[type[BaseException], ...]:
        from rq.timeouts import BaseTimeoutException

        return (BaseTimeoutException,)

    def _misfit(self) -> str:
        """Say why ``RQ_QUEUES`` leaves nothing to ask Redis for, or return ""."""
        queues = _configured()
        if not queues:
            return "django-rq is not configured: there is no RQ_QUEUES"
        if self.name not in queues:
            return f"RQ_QUEUES does not define {self.name!r}"
        if self._runs_at_once():
            return f"RQ_QUEUES gives {self.name!r} ASYNC: False"
        return ""

    def _runs_at_once(self) -> bool:
        # RQ would run the job in the caller too, but in a thread that is not waited for.
        return _configured().get(self.name, {}).get("ASYNC", True) is False

    def _listening(self, connection: Redis) -> tuple[int, str]:
        return listening(connection, self.name)

    def _put(self, alias: str, collection: str, deadline: float) -> str:
        """Put a job on the queue; return what went wrong, or ""."""
        try:
            self._ask(lambda connection: put(connection, self.name, alias, collection), deadline)
        except Exception as error:  # noqa: BLE001 - whatever it is, the rows are committed
            problem = in_words(error)
            logger.warning(
                "The queue %s took no job for %s. %s",
                self.name, collection, problem, extra={"collection": collection},
            )  # fmt: skip
            return problem
        return ""

    def _ask(self, question: Callable[[Redis], Result], deadline: float) -> Result:
        """Ask Redis, which may fail or be silent: then it is left alone for some seconds."""

        def ask() -> Result:
            with impatient(self.name) as connection:
                return question(connection)

        if time.monotonic() < self.silent_until:
            raise ConnectionError
        try:
            return call_until(ask, deadline)
        except Exception:
            self.silent_until = time.monotonic() + HOLDS
            raise


def _configured() -> dict[str, Any]:
    return getattr(django_settings, "RQ_QUEUES", None) or {}


def redis_deadline() -> float:
    return time.monotonic() + PATIENCE


def in_words(error: Exception) -> str:
    # The type alone: an error of Redis may quote its address with the password.
    return f"Redis can't be used ({type(error).__name__})"
