"""The records of the tables that wait for a vector: finding, claiming and postponing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.db import connections, router
from django.db.models import Q
from django.utils import timezone

from ..models import Memory
from ..timestamps import from_database, to_database
from ..transactions import id_batches, repeated, write_transaction
from .contract import VectorRecord, VectorStore, check_identifier
from .writing import collection_key, record_key

if TYPE_CHECKING:
    from ..managers import MemoryQuerySet

__all__ = ["Backlog"]

#: After its first failure a text is tried again in a minute, then in twice the time, to a day.
FIRST_RETRY = timedelta(minutes=1)
LAST_RETRY = timedelta(days=1)

#: The columns of a record, in the order in which _as_record() takes them.
RECORD = (
    *("collection", "record_id", "content", "metadata", "occurred_at", "expires_at"),
    *("role", "name", "kind"),
)
#: What a PositiveSmallIntegerField holds on every database.
MOST_ATTEMPTS = 32_767


class Backlog(VectorStore):
    """The part of a store over tables that knows what is not embedded yet."""

    def pending(self, collection: str, space: str) -> int:
        return self._rows(self._reads(), collection).live().unembedded(space).count()

    def unembedded(
        self,
        collection: str,
        limit: int | None = 100,
        *,
        space: str | None = None,
        ids: Iterable[str] | None = None,
        after: VectorRecord | None = None,
    ) -> list[VectorRecord]:
        # Asked for in order to write: a replica would name rows that are long embedded.
        using = self._writes()
        keys = sorted({record_key(collection, record_id) for record_id in ids or ()})
        if ids is not None and not keys:
            return []
        waiting = self._waiting(using, collection, space)
        if after is not None:
            waiting = waiting.filter(_later_than(after))
        if ids is None:
            return [_as_record(row) for row in waiting.values_list(*RECORD)[:limit]]
        rows = [
            row
            for batch in id_batches(using, keys)
            for row in waiting.filter(key__in=batch).values_list("occurred_at", "key", *RECORD)
        ]
        rows.sort(key=itemgetter(0, 1))
        return [_as_record(row) for _, _, *row in rows[:limit]]

    def claim(
        self, collection: str, limit: int, *, space: str, seconds: float
    ) -> list[VectorRecord]:
        using = self._writes()
        now = timezone.now()
        due = Q(not_before__isnull=True) | Q(not_before__lte=now)
        skip = connections[using].features.has_select_for_update_skip_locked

        def take() -> list[tuple[Any, ...]]:
            with write_transaction(using):
                rows = self._waiting(using, collection, space).filter(due)
                locked = rows.select_for_update(skip_locked=skip)
                taken = list(locked.values_list("pk", *RECORD)[:limit])
                for ids in id_batches(using, [pk for pk, *_ in taken]):
                    mine = Memory.objects.using(using).filter(pk__in=ids)
                    mine.update(not_before=now + timedelta(seconds=seconds))
            return taken

        return [_as_record(row) for _, *row in repeated(using, take)]

    def release(self, collection: str, ids: Iterable[str]) -> None:
        using = self._writes()
        keys = sorted(record_key(collection, record_id) for record_id in ids)
        for batch in id_batches(using, keys):
            # What failed for its own text waits for longer than a claim.
            rows = Memory.objects.using(using).filter(key__in=batch, failure="")
            rows.update(not_before=None)

    def in_work(self, collection: str, *, space: str) -> bool:
        # Without a look at the clock: a claim that ends between two looks would be missed by both.
        # So would a row be that is locked just now, and skipped.
        return self._waiting(self._writes(), collection, space).filter(failure="").exists()

    def postpone(
        self, collection: str, failures: Mapping[str, str], *, texts: Mapping[str, str]
    ) -> None:
        using = self._writes()
        keys = sorted(record_key(collection, record_id) for record_id in failures)
        repeated(using, lambda: _postpone(using, keys, failures, texts))

    def _waiting(self, using: str, collection: str, space: str | None) -> MemoryQuerySet:
        waiting = self._rows(using, collection).live().unembedded(space)
        return waiting.order_by("occurred_at", "key")

    def _rows(self, using: str, collection: str) -> MemoryQuerySet:
        check_identifier("collection", collection)
        return Memory.objects.using(using).filter(collection_key=collection_key(collection))

    def _writes(self) -> str:
        return router.db_for_write(Memory)

    def _reads(self) -> str:
        return router.db_for_read(Memory)


def _postpone(
    using: str, keys: list[str], failures: Mapping[str, str], texts: Mapping[str, str]
) -> None:
    now = timezone.now()
    memories = Memory.objects.using(using)
    with write_transaction(using):
        for batch in id_batches(using, keys):
            rows = memories.filter(key__in=batch).order_by("collection_key", "key")
            for row in rows.select_for_update():
                if row.embedded_text != texts[row.record_id]:
                    continue  # rewritten meanwhile: another text, with no failure yet
                wait = FIRST_RETRY * 2 ** min(row.attempts, 16)
                # No save(): its signal would have the text embedded again, at once and for ever.
                memories.filter(pk=row.pk).update(
                    attempts=min(row.attempts + 1, MOST_ATTEMPTS),
                    failure=failures[row.record_id][:64],
                    not_before=now + min(wait, LAST_RETRY),
                )


def _later_than(record: VectorRecord) -> Q:
    """The condition on memories that come after a record, by time, then by key."""
    assert record.occurred_at is not None  # noqa: S101 - it was read from a row
    moment = to_database(record.occurred_at)
    same = Q(occurred_at=moment, key__gt=record_key(record.collection, record.id))
    # Said twice, because no database walks an index along an OR.
    return Q(occurred_at__gte=moment) & (Q(occurred_at__gt=moment) | same)


def _as_record(row: Sequence[Any]) -> VectorRecord:
    collection, id, content, metadata, occurred_at, expires_at, role, name, kind = row
    return VectorRecord(
        collection=collection,
        id=id,
        content=content,
        metadata=metadata,
        occurred_at=from_database(occurred_at),
        expires_at=from_database(expires_at),
        role=role,
        name=name,
        kind=kind,
    )
