"""The base of drivers whose index is outside the database: told of changes after the commit.

The database is written first. In the same transaction, what the index has to be told goes into an
outbox (``IndexChange``: keys to add, keys to remove), which jobs drain; so a crash between the two
systems heals. What was forgotten is never returned, even before the index hears of it: searches
read the tables. What is still to be removed can be counted.

An entry's key is never used again, so only an addition that arrives after the removal of the same
key could do harm. Therefore a removal waits until no addition of its key is left in the outbox, and
after every addition the rows are looked at once more: for those that are gone, a removal is noted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.db import connections
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from ..exceptions import IndexUnavailable
from ..inserting import insert
from ..models import IndexChange, IndexState
from ..transactions import id_batches, repeated, write_transaction
from .entries import Entry, existing, read_entries
from .indexed import IndexedStore, Untold
from .keys import collection_key, space_key

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from ..models import Space

__all__ = ["OutboxStore"]

PREPARE, ADD, REMOVE = IndexChange.Action
#: Changes that are claimed, and told, at a time.
BATCH = 500
#: A claim lasts so many times as long as one call to the server may take; then others take it up.
LEASE = 6


class OutboxStore(IndexedStore):
    """Keeps an index on another server. Drivers implement what raises NotImplementedError.

    And ``place``, ``nearest()``, ``held()`` and ``prepare()`` of IndexedStore, which raise
    IndexUnavailable when the server does not answer. ``timeout``: seconds that one call may take.
    """

    apart = True
    timeout: float = 10.0

    def send(self, space: Space, entries: Sequence[Entry]) -> None:
        """Add entries to the index, or replace them by themselves. Raises IndexUnavailable."""
        raise NotImplementedError

    def withdraw(self, space: Space, ids: Sequence[int]) -> None:
        """Remove entries from the index, some of which may not be there."""
        raise NotImplementedError

    # Noting

    def begin(self, using: str, state: IndexState) -> None:
        _note(using, state, PREPARE, "", [0])

    def index(self, using: str, state: IndexState, entries: Sequence[Entry]) -> None:
        by_collection: dict[str, list[int]] = {}
        for entry in entries:
            by_collection.setdefault(entry.collection_key, []).append(entry.id)
        for key, ids in by_collection.items():
            _note(using, state, ADD, key, ids)

    def unindex(
        self, using: str, state: IndexState, collection_key: str, ids: Sequence[int]
    ) -> None:
        _note(using, state, REMOVE, collection_key, ids)

    def load(self, using: str, state: IndexState, ids: Sequence[int]) -> None:
        # No row is locked while the server is asked; so, as always, the rows are looked at again.
        self.send(state.space, read_entries(using, state.space, ids))
        self._look_again(using, state, ids)

    def remove(self, using: str, state: IndexState, ids: Sequence[int]) -> None:
        _note(using, state, REMOVE, "", ids)

    def noted(self, using: str, state: IndexState, ids: Sequence[int]) -> set[int]:
        changes = IndexChange.objects.using(using).filter(index=state)
        return {
            entry_id
            for batch in id_batches(using, list(ids))
            for entry_id in changes.filter(entry_id__in=batch).values_list("entry_id", flat=True)
        }

    # Counting

    def untold(self, collection_key: str | None = None) -> Untold:
        """Count what the index has still to add and to remove, in one collection or in all."""
        changes = self._changes(self._writes())
        if collection_key is not None:
            changes = changes.filter(collection_key=collection_key)
        return Untold(changes.filter(action=ADD).count(), changes.filter(action=REMOVE).count())

    def pending(self, collection: str, space: str) -> int:
        waiting = self._changes(self._writes()).filter(
            action=ADD,
            collection_key=collection_key(collection),
            index__space__key=space_key(space),
        )
        return super().pending(collection, space) + waiting.count()

    # Telling

    def settle(self, deadline: float | None = None) -> bool:
        using = self._writes()
        while deadline is None or time.monotonic() < deadline:
            if not any([self._prepare(using), self._add(using), self._remove(using)]):
                break
        return not self._changes(using).exists()

    def _prepare(self, using: str) -> bool:
        claimed = self._claimed(using, self._changes(using).filter(action=PREPARE))
        with self._giving_back(using, claimed):
            for change in claimed:
                self.prepare(using, change.index.space, fresh=True)
        _done(using, claimed)
        return bool(claimed)

    def _add(self, using: str) -> bool:
        unprepared = self._changes(using).filter(action=PREPARE, index=OuterRef("index"))
        claimed = self._claimed(using, self._changes(using).filter(~Exists(unprepared), action=ADD))
        with self._giving_back(using, claimed):
            for state, changes in _by_state(claimed):
                ids = [change.entry_id for change in changes]
                if entries := read_entries(using, state.space, ids):
                    self.send(state.space, entries)
                repeated(using, partial(self._added, using, state, changes))
        return bool(claimed)

    def _added(self, using: str, state: IndexState, changes: Sequence[IndexChange]) -> None:
        with write_transaction(using):
            self._look_again(using, state, [change.entry_id for change in changes])
            _done(using, changes)

    def _look_again(self, using: str, state: IndexState, ids: Sequence[int]) -> None:
        """Note the removal of what was added and is gone by now."""
        gone = sorted(set(ids) - existing(using, ids))
        _note(using, state, REMOVE, "", gone)

    def _remove(self, using: str) -> bool:
        additions = self._changes(using).filter(
            action=ADD, index=OuterRef("index"), entry_id=OuterRef("entry_id")
        )
        claimed = self._claimed(
            using, self._changes(using).filter(~Exists(additions), action=REMOVE)
        )
        with self._giving_back(using, claimed):
            for state, changes in _by_state(claimed):
                self.withdraw(state.space, sorted({change.entry_id for change in changes}))
                _done(using, changes)
        return bool(claimed)

    # Claiming

    def _changes(self, using: str) -> QuerySet[IndexChange]:
        # A subquery, so that claiming a change does not lock the state of the index.
        mine = IndexState.objects.filter(key=self.index_key)
        return IndexChange.objects.using(using).filter(index__in=mine)

    def _claimed(self, using: str, waiting: QuerySet[IndexChange]) -> list[IndexChange]:
        """Keep the oldest of some changes to this process for a while, and return them."""
        skip = connections[using].features.has_select_for_update_skip_locked
        changes = IndexChange.objects.using(using)

        def claim() -> list[int]:
            now = timezone.now()
            free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=now)
            with write_transaction(using):
                taken = waiting.filter(free).order_by("pk").values_list("pk", flat=True)
                ids = list(taken.select_for_update(skip_locked=skip)[:BATCH])
                until = now + timedelta(seconds=LEASE * self.timeout)
                changes.filter(pk__in=ids).update(claimed_until=until)
            return ids

        ids = repeated(using, claim)
        return list(changes.filter(pk__in=ids).select_related("index__space").order_by("pk"))

    @contextmanager
    def _giving_back(self, using: str, claimed: Sequence[IndexChange]) -> Iterator[None]:
        """Let others take up what could not be told, once a call that timed out is over for sure.

        Until then nobody asks the server again about these changes.
        """
        try:
            yield
        except IndexUnavailable:
            again = timezone.now() + timedelta(seconds=self.timeout)
            mine = IndexChange.objects.using(using).filter(pk__in=[each.pk for each in claimed])
            mine.update(claimed_until=again)
            raise


def _note(
    using: str, state: IndexState, action: int, collection_key: str, ids: Sequence[int]
) -> None:
    insert(
        using,
        IndexChange,
        {"entry_id": ids},
        {"index": state.pk, "action": action, "collection_key": collection_key},
    )


def _done(using: str, changes: Sequence[IndexChange]) -> None:
    for ids in id_batches(using, [change.pk for change in changes]):
        IndexChange.objects.using(using).filter(pk__in=ids).delete()


def _by_state(
    changes: Sequence[IndexChange],
) -> Iterator[tuple[IndexState, list[IndexChange]]]:
    grouped: dict[int, list[IndexChange]] = {}
    for change in changes:
        grouped.setdefault(change.index_id, []).append(change)
    return ((group[0].index, group) for group in grouped.values())
