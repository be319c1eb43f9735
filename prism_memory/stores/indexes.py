"""Keeping the index of every configured store in step with the tables, whichever ``STORE`` is.

Called by all that writes or deletes vectors, in its transaction and after locking the memories.
Costs a look at one small table; more only where a store with an index is configured.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from django.db import connections, transaction
from django.db.models import Q
from django.utils import timezone

from ..exceptions import IndexUnavailable
from ..models import Embedding, IndexState, Memory
from ..selecting import table
from ..transactions import LOCK_ORDER, id_batches, repeated, write_transaction
from .entries import Entry, read_entries

if TYPE_CHECKING:
    import numpy as np
    from django.db.models import QuerySet
    from numpy.typing import NDArray

    from ..models import Space
    from .indexed import IndexedStore

__all__ = ["added", "begin", "kept", "put_to_sleep", "removing", "settle", "tell"]

#: Seconds for which an index whose server did not answer is left alone by callers.
REST = 5.0
#: The condition on states of indexes that must hear of every change.
AWAKE = Q(ready_at__isnull=False) | ~Q(rebuild="")


def kept() -> list[IndexedStore]:
    """The configured stores that have an index.

    Their content is in the tables, so nobody asks whether they are durable; nor those that keep no
    index, whose servers are no concern of a write to the tables.
    """
    from .registry import stores

    found = [stores.look_at(alias) for alias in stores]
    return [cast("IndexedStore", store) for store in found if store.keeps_index]


def begin(using: str, space: Space) -> None:
    """A space is born: every index knows all of it from the start."""
    for store in kept():
        state = IndexState.objects.using(using).create(
            alias=store.alias, place=store.place, space=space, ready_at=timezone.now()
        )
        store.begin(using, state)


def added(
    using: str,
    space: Space,
    collection: str,
    collection_key: str,
    vectors: Iterable[tuple[int, NDArray[np.float64], Sequence[int]]],
) -> None:
    """Tell the indexes of new (memory's key, vector, tokens) triples of one collection."""
    told = _told(using, {space.pk})
    stores = kept()
    if not stores:
        return
    new = {memory_id: (vector, tokens) for memory_id, vector, tokens in vectors}
    rows = [
        row
        for ids in id_batches(using, sorted(new))
        for row in Embedding.objects.using(using)
        .filter(space=space, memory_id__in=ids)
        .values_list("pk", "memory_id")
    ]
    entries = [Entry(pk, memory_id, collection_key, *new[memory_id]) for pk, memory_id in rows]
    for store in stores:
        if state := told.get((store.index_key, space.pk)):
            store.index(using, state, entries)
    _follow_up(using, collection, stores, told, {space.pk: [pk for pk, _ in rows]})


def removing(using: str, memory_ids: Iterable[int], space: Space | None = None) -> None:
    """Tell the indexes that the vectors of these memories, in one space or all, are about to go."""
    told = _told(using, None if space is None else {space.pk})
    stores = kept()
    if not stores:
        return
    vectors = Embedding.objects.using(using)
    if space is not None:
        vectors = vectors.filter(space=space)
    going: dict[tuple[int, str], list[int]] = defaultdict(list)
    collection = ""
    for ids in id_batches(using, sorted(memory_ids)):
        rows = vectors.filter(memory_id__in=ids).values_list(
            "pk", "space_id", "memory__collection_key", "memory__collection"
        )
        for pk, space_id, collection_key, collection in rows:  # noqa: B007 - any one of them
            going[space_id, collection_key].append(pk)
    by_space: dict[int, list[int]] = defaultdict(list)
    for (space_id, collection_key), ids in sorted(going.items()):
        by_space[space_id] += ids
        for store in stores:
            if state := told.get((store.index_key, space_id)):
                store.unindex(using, state, collection_key, ids)
    if going:
        _follow_up(using, collection, stores, told, by_space)


def settle(deadline: float | None = None, *, sparing: bool = False) -> bool:
    """Have every index told what it has still to be told; return whether all were.

    An index whose server does not answer holds up no other; ``sparing`` leaves it alone for some
    seconds. Raises IndexUnavailable at the end.
    """
    told, failure = True, None
    for store in kept():
        if sparing and time.monotonic() < store.resting_until:
            told = False
            continue
        try:
            told &= store.settle(deadline)
        except IndexUnavailable as error:
            store.resting_until = time.monotonic() + REST
            failure = error
    if failure is not None:
        raise failure
    return told


def _told(using: str, spaces: set[int] | None) -> dict[tuple[str, int], IndexState]:
    """The states of the indexes that must hear of a change, by index and space.

    What this process knows nothing of, because its settings are others, is put to sleep.
    """
    sql = f"SELECT 1 FROM {table(using, IndexState)}"  # noqa: S608 - a name
    with connections[using].cursor() as cursor:
        cursor.execute(sql)
        if cursor.fetchone() is None:
            return {}
    states = IndexState.objects.using(using).filter(AWAKE).select_related("space")
    if spaces is not None:
        states = states.filter(space__in=spaces)
    told = {(state.key, state.space_id): state for state in states}
    if told:
        known = {store.index_key for store in kept()}
        strays = [state.pk for (key, _), state in told.items() if key not in known]
        if strays:
            _put_to_sleep(IndexState.objects.using(using).filter(pk__in=strays))
    return told


def put_to_sleep(using: str, space_id: int) -> None:
    """Note that the indexes of a space may lack something, so that they are not searched."""
    _put_to_sleep(IndexState.objects.using(using).filter(AWAKE, space=space_id))


def _put_to_sleep(states: QuerySet[IndexState]) -> None:
    states.update(ready_at=None, rebuild="")


def _follow_up(
    using: str,
    collection: str,
    stores: Sequence[IndexedStore],
    told: Mapping[tuple[str, int], IndexState],
    changed: Mapping[int, Sequence[int]],
) -> None:
    """Have done after the commit what can't be done before."""
    from ..jobs import schedule

    if any(store.apart for store in stores):
        schedule(collection, (), using=using)
    untold = [
        (store, space_id)
        for store in stores
        for space_id in changed
        if (store.index_key, space_id) not in told
    ]
    if untold:
        late = Latecomers(using, {space_id: changed[space_id] for _, space_id in untold}, set(told))
        transaction.on_commit(late.tell, using=using, robust=True)


@dataclass(frozen=True)
class Latecomers:
    """Indexes whose rebuild began while a transaction was open that did not see it begin.

    The rebuild can't see the rows of that transaction either; so after its commit they are told.
    """

    using: str
    changed: Mapping[int, Sequence[int]]
    told: set[tuple[str, int]]

    def tell(self) -> None:
        states = IndexState.objects.using(self.using).filter(AWAKE, space__in=self.changed)
        stores = {store.index_key: store for store in kept()}
        for state in states.select_related("space"):
            if (state.key, state.space_id) not in self.told and state.key in stores:
                tell(self.using, stores[state.key], state, self.changed[state.space_id])


def tell(using: str, store: IndexedStore, state: IndexState, ids: Sequence[int]) -> None:
    """Bring an index up to date about some embeddings, which may exist or be gone."""

    def write() -> None:
        with write_transaction(using):
            memories = Memory.objects.using(using).order_by(*LOCK_ORDER)
            for batch in id_batches(using, list(ids)):
                # Locked, so that none is forgotten between this look and our commit.
                list(memories.filter(embeddings__in=batch).select_for_update().values_list("pk"))
                entries = read_entries(using, state.space, batch)
                store.index(using, state, entries)
                gone = sorted(set(batch) - {entry.id for entry in entries})
                store.remove(using, state, gone)

    repeated(using, write)
