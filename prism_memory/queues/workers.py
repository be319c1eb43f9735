"""Which workers of a queue are alive: RQ's own registry does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["listening"]


def listening(connection: Redis, name: str) -> tuple[int, str]:
    """Count the workers that would take a job from a queue now, and say so in words.

    RQ's registry keeps a killed worker for minutes. What ends with a worker's connection is its
    subscription to the commands that may be sent to it.
    """
    from django_rq import get_queue
    from rq.command import PUBSUB_CHANNEL_TEMPLATE
    from rq.suspension import is_suspended
    from rq.worker_registration import get_keys

    keys = get_keys(queue=get_queue(name, connection=connection))
    channels = [PUBSUB_CHANNEL_TEMPLATE % key.split(":", 2)[2] for key in keys]
    subscribed = connection.pubsub_numsub(*channels) if channels else []
    alive = sum(1 for _, count in subscribed if count)
    if not alive:
        return 0, f"no live worker listens on the queue {name!r}"
    if is_suspended(connection):
        return 0, "RQ's workers are suspended"
    return alive, f"{alive} live {'worker' if alive == 1 else 'workers'}"
