"""Calls that are not waited for longer than one can afford."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["DeadlineExceeded", "call_until"]

Result = TypeVar("Result")


class DeadlineExceeded(Exception):
    """The call was still running at its deadline."""


def call_until(call: Callable[[], Result], deadline: float | None) -> Result:
    """Return what a call returns or raise what it raises, but stop waiting at the deadline.

    ``deadline`` is a ``time.monotonic()``; None waits for ever, in this thread. Clients of HTTP
    and Redis take a time-out per attempt, retry, and resolve names without any; so only another
    thread keeps a total. An abandoned call ends by itself, and as a daemon its thread does not hold
    up the process. Raises DeadlineExceeded.
    """
    if deadline is None:
        return call()
    if deadline <= time.monotonic():  # nobody would wait for what it brings
        raise DeadlineExceeded
    results: list[Result] = []
    failures: list[Exception] = []

    def run() -> None:
        try:
            results.append(call())
        except Exception as error:  # noqa: BLE001 - it is raised in the caller's thread
            failures.append(error)

    # Tracing follows context variables into the thread.
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), name="prism-memory", daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    for failure in failures:
        raise failure
    for result in results:
        return result
    raise DeadlineExceeded
