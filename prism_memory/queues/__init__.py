"""Queues: whether somebody else embeds what was remembered. Only these files import one."""

from __future__ import annotations

from ..conf import Once, settings
from .base import Decision, InlineQueue, Queue

__all__ = ["Decision", "Queue", "build_queue", "queue"]


def build_queue() -> Queue:
    """Construct the configured queue. Raises ConfigurationError."""
    chosen = settings().queue
    if isinstance(chosen, str):
        if chosen == "inline":
            return InlineQueue()
        from .auto import AutoQueue
        from .rq import RQQueue

        return AutoQueue() if chosen == "auto" else RQQueue(chosen)
    from ..backends import build

    return build(chosen, Queue)


#: The configured queue, one per process.
queue: Once[Queue] = Once(build_queue)
