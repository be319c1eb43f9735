"""When embedding happens: after the commit, out of the caller's transaction.

Only this file knows of a queue.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from django.db import connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from .conf import settings
from .exceptions import PrismMemoryError

__all__ = ["schedule"]

logger = logging.getLogger("prism_memory.embedding")


@dataclass
class Note:
    """The records that a transaction wrote: (store alias, collection) → ids."""

    written: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)


# One note a connection, that is, a thread and a database.
notes: WeakKeyDictionary[BaseDatabaseWrapper, Note] = WeakKeyDictionary()


def schedule(alias: str, collection: str, ids: Iterable[str]) -> None:
    """Have records embedded once the current transaction of the memories' database commits.

    Every call registers a callback, so that a rolled back savepoint drops only its own; the first
    one to run takes the whole note. What a rolled back savepoint left in it does no harm: those
    records don't exist, and embedding skips them.
    """
    from .models import Memory

    using = router.db_for_write(Memory)
    note = notes.setdefault(connections[using], Note())
    note.written.setdefault((alias, collection), {}).update(dict.fromkeys(ids))
    transaction.on_commit(partial(_committed, using), using=using, robust=True)


def _committed(using: str) -> None:
    note = notes.pop(connections[using], Note())
    deadline = time.monotonic() + settings().inline_deadline
    for (alias, collection), ids in note.written.items():
        _embed_inline(alias, collection, list(ids), deadline)


def _embed_inline(alias: str, collection: str, ids: list[str], deadline: float) -> None:
    from .embedding import embed_waiting
    from .stores import stores

    try:
        embed_waiting(stores[alias], collection, ids=ids, deadline=deadline)
    except PrismMemoryError as error:
        # The caller's work is done and committed; the records stay pending until the next run.
        logger.warning(
            "Records of %s stay pending: %s", collection, error, extra={"collection": collection}
        )
