"""The records of the tables that wait for a vector: finding, claiming and postponing them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.db import router
from django.utils import timezone

from ..models import Memory
from ..selecting import parameter
from ..timestamps import from_database, to_database
from ..transactions import LOCK_ORDER, id_batches, repeated, write_transaction
from .contract import VectorRecord, VectorStore
from .keys import collection_key, record_key
from .records import check_identifier
from .waiting import COLUMNS, RAW, Place, WaitingRow, select_waiting

if TYPE_CHECKING:
    from ..managers import MemoryQuerySet

__all__ = ["Backlog"]

#: After its first failure a text is tried again in a minute, then in twice the time, to a day.
FIRST_RETRY = timedelta(minutes=1)
LAST_RETRY = timedelta(days=1)

#: The columns of a record, in the order in which _as_record() takes them.
RECORD = (
    *("collection", "record_id", "content", "metadata", "occurred_at", "expires_at"),
    *("role", "name", "kind", "pk"),
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
        place = None if after is None else self._place(after)
        rows = self._waiting(RECORD, collection, limit, space, ids, place)
        return [_as_record(row) for row in rows]

    def waiting(
        self,
        collection: str,
        limit: int,
        *,
        space: str,
        ids: Iterable[str] | None = None,
        after: Any = None,
    ) -> list[WaitingRow]:
        place = None if after is None else after.place
        rows = self._waiting(COLUMNS, collection, limit, space, ids, place, raw=RAW)
        return WaitingRow.of(rows)

    def claim(
        self, collection: str, limit: int, *, space: str, seconds: float, after: Any = None
    ) -> list[WaitingRow]:
        using = self._writes()
        check_identifier("collection", collection)
        key, now = collection_key(collection), timezone.now()
        place = None if after is None else after.place

        def take() -> list[tuple[Any, ...]]:
            with write_transaction(using):
                taken = select_waiting(
                    using, COLUMNS, key, limit, space=space, after=place, due=now, raw=RAW
                )
                for ids in id_batches(using, [pk for pk, *_ in taken]):
                    mine = Memory.objects.using(using).filter(pk__in=ids)
                    mine.update(not_before=now + timedelta(seconds=seconds))
            return taken

        return WaitingRow.of(repeated(using, take))

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
        waiting = self._rows(self._writes(), collection).live().unembedded(space)
        return waiting.filter(failure="").exists()

    def postpone(
        self, collection: str, failures: Mapping[str, str], *, texts: Mapping[str, str]
    ) -> None:
        using = self._writes()
        keys = sorted(record_key(collection, record_id) for record_id in failures)
        repeated(using, lambda: _postpone(using, keys, failures, texts))

    def _waiting(
        self,
        names: Sequence[str],
        collection: str,
        limit: int | None,
        space: str | None,
        ids: Iterable[str] | None,
        after: Place | None,
        *,
        raw: Container[str] = (),
    ) -> list[tuple[Any, ...]]:
        check_identifier("collection", collection)
        # Asked for in order to write: a replica would name rows that are long embedded.
        using, key = self._writes(), collection_key(collection)
        if ids is None:
            return select_waiting(using, names, key, limit, space=space, after=after, raw=raw)
        keys = sorted({record_key(collection, record_id) for record_id in ids})
        rows = [
            row
            for batch in id_batches(using, keys)
            for row in select_waiting(
                using, names, key, None, space=space, after=after, keys=batch, raw=raw
            )
        ]
        rows.sort(key=itemgetter(names.index("occurred_at"), names.index("pk")))
        return rows[:limit]

    def _place(self, record: VectorRecord) -> Place:
        assert record.occurred_at is not None  # noqa: S101 - it was read from a row
        using, key = self._writes(), record_key(record.collection, record.id)
        moment = parameter(using, Memory, "occurred_at", to_database(record.occurred_at))
        found = Memory.objects.using(using).filter(key=key).values_list("pk", flat=True)
        # After one that is gone, those of the same moment are met again.
        return moment, next(iter(found), 0)

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
            rows = memories.filter(key__in=batch).order_by(*LOCK_ORDER)
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


def _as_record(row: Sequence[Any]) -> VectorRecord:
    collection, id, content, metadata, occurred_at, expires_at, role, name, kind, _ = row
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
