"""A connection to the Redis of a queue for callers who can't wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["PATIENCE", "impatient"]

#: Seconds that a caller waits for Redis, in all.
PATIENCE = 0.4


@contextmanager
def impatient(name: str) -> Iterator[Redis]:
    """Connect as ``RQ_QUEUES`` describes the queue, but without retries and with short time-outs.

    They bound each step. The whole is bounded by who calls: nothing bounds how long a host's name
    takes to resolve.
    """
    from django_rq.connection_utils import get_connection
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    described: Redis = get_connection(name)
    pool = described.connection_pool
    if "connection_pool" in pool.connection_kwargs:  # a sentinel's pool, which asks for the master
        yield described
        return
    options = {
        **pool.connection_kwargs,
        "socket_connect_timeout": PATIENCE,
        "socket_timeout": PATIENCE,
        "retry": Retry(NoBackoff(), 0),
    }
    connection = Redis.from_pool(type(pool)(connection_class=pool.connection_class, **options))
    try:
        yield connection
    finally:
        connection.close()
