"""Putting our job on a queue of RQ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..digests import digest

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["put"]

#: RQ stops a job after so many seconds. Ours hand over to a successor well before.
JOB_TIMEOUT = 600
#: A day: during an outage of the provider, one job fails for every call that remembers.
FAILURE_TTL = 24 * 3600
#: How long a job that waits is remembered for; a longer one gets a duplicate, which does no harm.
WAITING_TTL = 24 * 3600


def put(connection: Redis, name: str, alias: str, collection: str) -> None:
    """Put a job on the queue, unless one for the collection already waits there.

    A job that runs is no reason to drop another: it may have looked for the last time. One that
    waits is: it starts, and looks, after our rows were committed. Two callers at once may put two:
    that wastes a look, where a job of a fixed id could vanish with its namesake that just ended.
    """
    from django_rq import get_queue
    from rq.utils import as_text

    from ..jobs import embed_collection

    # By default, django-rq would wait for a commit of the default database; ours has committed.
    queue: Any = get_queue(name, connection=connection, commit_mode="auto")
    note = f"prism-memory:waiting:{name}:{digest(alias, collection)[:32]}"
    last = connection.get(note)
    if last is not None and _waits(connection, queue, as_text(last)):
        return
    job = queue.enqueue_call(
        embed_collection,
        args=(alias, collection),
        timeout=JOB_TIMEOUT,
        result_ttl=0,  # a finished job leaves nothing behind
        failure_ttl=FAILURE_TTL,
        description=f"prism_memory.embed_collection({collection})",
    )
    connection.set(note, job.id, ex=WAITING_TTL)


def _waits(connection: Redis, queue: Any, job_id: str) -> bool:
    """Whether a job stands in the queue, untouched by any worker, and can still be run."""
    position = connection.lpos(queue.key, job_id)
    return position is not None and queue.job_class.exists(job_id, connection=connection)
