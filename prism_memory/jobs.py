"""When embedding happens: after the commit, out of the caller's transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.db import connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.signals import post_save

from .conf import settings
from .exceptions import PrismMemoryError
from .queues import queue

if TYPE_CHECKING:
    from .models import Embedding, Memory

__all__ = ["connect", "embed_collection", "schedule"]

logger = logging.getLogger("prism_memory.embedding")

#: Seconds between looks at what another worker has claimed.
LOOK = 0.25
#: Seconds after which a job leaves the rest to a successor, so that no backlog outlives its limit.
JOB_SECONDS = 120.0


@dataclass(eq=False)
class Note:
    """The records that a transaction wrote: collection → ids."""

    written: dict[str, dict[str, None]] = field(default_factory=dict)

    def embed(self) -> None:
        """Have the noted records embedded; called again, there is nothing left to do."""
        written, self.written = self.written, {}
        deadline = time.monotonic() + settings().inline_deadline
        alias = settings().store
        for collection, ids in written.items():
            if not queue().enqueue(alias, collection):
                _embed_inline(alias, collection, list(ids), deadline)
                _settle_inline(deadline)


# One note a connection, that is, a thread and a database.
notes: WeakKeyDictionary[BaseDatabaseWrapper, Note] = WeakKeyDictionary()


def connect() -> None:
    """Take notice of every memory, and every vector, that is saved by other code."""
    from .models import Embedding, Memory

    post_save.connect(_saved, sender=Memory, dispatch_uid="prism_memory.jobs")
    post_save.connect(_vector_saved, sender=Embedding, dispatch_uid="prism_memory.jobs.vectors")


def _saved(sender: type[Memory], instance: Memory, using: str, **kwargs: Any) -> None:
    schedule(instance.collection, [instance.record_id], using=using)


def _vector_saved(sender: type[Embedding], instance: Embedding, using: str, **kwargs: Any) -> None:
    """A vector came from elsewhere, such as a fixture: no index has heard of it."""
    from .stores import indexes

    indexes.put_to_sleep(using, instance.space_id)


def schedule(collection: str, ids: Iterable[str], *, using: str | None = None) -> None:
    """Have records embedded once the current transaction of the memories' database commits.

    Every call registers a callback, so that a rolled back savepoint drops only its own; the first
    one to run takes the whole note. What a rolled back savepoint left in it does no harm: those
    records don't exist, and embedding skips them.
    """
    if using is None:
        from .models import Memory

        using = router.db_for_write(Memory)
    note = _note_of_this_transaction(connections[using])
    note.written.setdefault(collection, {}).update(dict.fromkeys(ids))
    # A method and no partial: of a callback that raises, Django logs the __qualname__.
    transaction.on_commit(note.embed, using=using, robust=True)


def _note_of_this_transaction(connection: BaseDatabaseWrapper) -> Note:
    note = notes.get(connection)
    # A rollback tells nobody, but it drops callbacks: a note without one is of a transaction, or a
    # savepoint, that is gone.
    if note is None or not any(call == note.embed for _, call, *_ in connection.run_on_commit):
        note = notes[connection] = Note()
    return note


def _embed_inline(alias: str, collection: str, ids: list[str], deadline: float) -> None:
    from .answers import Ask
    from .embedding import embed_waiting
    from .stores import stores

    # The caller's work is done and committed; the records stay pending until the next run.
    try:
        embed_waiting(stores[alias], collection, ids=ids, ask=Ask(deadline))
    except PrismMemoryError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - of a database, say, whose words may quote a row
        reason = f"{type(error).__module__}.{type(error).__qualname__}"
    else:
        return
    logger.warning(
        "Records of %s stay pending: %s", collection, reason, extra={"collection": collection}
    )


def _settle_inline(deadline: float) -> None:
    from .stores import indexes

    try:
        indexes.settle(deadline, sparing=True)
    except Exception as error:  # noqa: BLE001 - the caller's work is done; all stays noted
        words = isinstance(error, PrismMemoryError)
        reason = str(error) if words else f"{type(error).__module__}.{type(error).__qualname__}"
        logger.warning("An index was not told of all changes: %s", reason)


def embed_collection(alias: str, collection: str) -> None:
    """The job: embed whatever waits in a collection, and tell all indexes, until nothing is left.

    Its arguments are keys only. It may run twice, late, beside another, or after the records are
    gone. Raises EmbeddingUnavailable when the provider is at fault, so that the queue shows it; the
    records stay pending, and the next job finds them. Raises IndexUnavailable likewise.
    """
    from .answers import Ask
    from .embedding import embed_claimed
    from .stores import stores

    ask = Ask(interrupts=queue().interrupts())
    until = time.monotonic() + JOB_SECONDS
    try:
        run = embed_claimed(stores[alias], collection, ask=ask, until=until)
    finally:
        # What was forgotten leaves the indexes, whatever became of the embedding.
        told = _settle(until)
    if run.unfinished or not told:
        queue().enqueue(alias, collection)


def _settle(until: float) -> bool:
    """Tell all indexes, and wait for what another worker has claimed, which it may not live to."""
    from .stores import indexes

    while not (told := indexes.settle(until)) and time.monotonic() < until:
        time.sleep(LOOK)
    return told
