"""When embedding happens: after the commit, out of the caller's transaction.

Only this file knows of a queue.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from django.db import connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from .conf import settings
from .exceptions import PrismMemoryError

__all__ = ["schedule"]

logger = logging.getLogger("prism_memory.embedding")


@dataclass(eq=False)
class Note:
    """The records that a transaction wrote: (store alias, collection) → ids."""

    written: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    def embed(self) -> None:
        """Embed the noted records; called again, there is nothing left to do."""
        written, self.written = self.written, {}
        deadline = time.monotonic() + settings().inline_deadline
        for (alias, collection), ids in written.items():
            _embed_inline(alias, collection, list(ids), deadline)


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
    note = _note_of_this_transaction(connections[using])
    note.written.setdefault((alias, collection), {}).update(dict.fromkeys(ids))
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
    from .embedding import embed_waiting
    from .stores import stores

    # The caller's work is done and committed; the records stay pending until the next run.
    try:
        embed_waiting(stores[alias], collection, ids=ids, deadline=deadline)
    except PrismMemoryError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - of a database, say, whose words may quote a row
        reason = f"{type(error).__module__}.{type(error).__qualname__}"
    else:
        return
    logger.warning(
        "Records of %s stay pending: %s", collection, reason, extra={"collection": collection}
    )
