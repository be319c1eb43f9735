"""Filling an index from the tables, and comparing the two, entry by entry and both ways.

No provider is called. What is there already is not written again, so a rebuild that was stopped
goes on where it was. Writers go on meanwhile: from the moment the state of the index says that a
rebuild is at work, they tell the index of what they write.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import router
from django.utils import timezone

from ..exceptions import IndexNotReady
from ..models import Embedding, IndexChange, IndexState
from ..transactions import write_transaction
from .entries import existing

if TYPE_CHECKING:
    from ..models import Space
    from .indexed import IndexedStore

__all__ = ["Difference", "compare", "rebuild"]

#: Embeddings that are compared at a time.
CHUNK = 1_000
#: Passes over all of a space. Each but the first mends what was written meanwhile.
PASSES = 10
#: Seconds between looks at what another process is telling the index.
LOOK = 0.25


@dataclass(frozen=True, slots=True)
class Difference:
    """Entries that an index lacked, and those whose embeddings are gone."""

    missing: int = 0
    surplus: int = 0

    def __bool__(self) -> bool:
        return bool(self.missing or self.surplus)

    def __add__(self, other: Difference) -> Difference:
        return Difference(self.missing + other.missing, self.surplus + other.surplus)


def rebuild(
    store: IndexedStore,
    space: Space,
    *,
    fresh: bool = False,
    progress: Callable[[int], object] = lambda count: None,
) -> Difference:
    """Fill the index of a space until it holds just what the table does, and declare it ready.

    ``fresh`` drops first what the index holds. ``progress`` is told after every chunk of the first
    pass how many embeddings were compared. Returns what was mended. Raises IndexUnavailable when
    the index's server does not answer, and IndexNotReady when the two never became equal: run it
    again.
    """
    using = router.db_for_write(Embedding)
    state, mark = _begun(using, store, space, fresh=fresh)
    _settle(store)
    mended = Difference()
    for _ in range(PASSES):
        found = compare(store, state, mend=True, progress=progress)
        _settle(store)
        if not found:
            break
        mended += found
        progress = _silent
    else:
        raise IndexNotReady(
            f"The index of the store {store.alias!r} for the space {space.name!r} still differed "
            f"from the table after {PASSES} passes. Run this again when fewer writes go on."
        )
    store.finish(using, space)
    mine = IndexState.objects.using(using).filter(pk=state.pk, rebuild=mark)
    if not mine.update(ready_at=timezone.now(), rebuild=""):
        raise IndexNotReady(
            f"While the index of the store {store.alias!r} was rebuilt, vectors were written by a "
            "process whose settings lack this store, or another rebuild was begun. Restart all "
            "processes with the same settings, and run this again."
        )
    return mended


def compare(
    store: IndexedStore,
    state: IndexState,
    *,
    mend: bool = False,
    progress: Callable[[int], object] = lambda count: None,
) -> Difference:
    """Compare the entries of an index with the embeddings of its space, both ways."""
    using = router.db_for_write(Embedding)
    embeddings = Embedding.objects.using(using).filter(space=state.space).order_by("pk")
    found = Difference()
    low: int | None = 0
    while low is not None:
        ids = list(embeddings.filter(pk__gte=low).values_list("pk", flat=True)[:CHUNK])
        high = ids[-1] + 1 if len(ids) == CHUNK else None
        # In this order: what is told between the two looks is seen by one of them.
        noted = store.noted(using, state, ids)
        held = store.held(using, state.space, low, high)
        missing = sorted(set(ids) - held - noted)
        # Some may have been written since we looked.
        strange = sorted(held - set(ids))
        surplus = sorted(
            set(strange) - existing(using, strange) - store.noted(using, state, strange)
        )
        if mend and missing:
            store.load(using, state, missing)
        if mend and surplus:
            store.remove(using, state, surplus)
        found += Difference(len(missing), len(surplus))
        progress(len(ids))
        low = high
    return found


def _begun(using: str, store: IndexedStore, space: Space, *, fresh: bool) -> tuple[IndexState, str]:
    """Have every writer tell the index from now on, and what is there already prepared for it."""
    mark = secrets.token_hex(16)
    with write_transaction(using):
        state, born = IndexState.objects.using(using).get_or_create(
            key=store.index_key,
            space=space,
            defaults={"alias": store.alias, "place": store.place},
        )
        state.rebuild = mark
        if fresh:
            state.ready_at = None
            IndexChange.objects.using(using).filter(index=state).delete()
        state.save(using=using, update_fields=["rebuild", "ready_at"])
        if born or fresh:
            store.begin(using, state)
    if not (born or fresh):
        store.prepare(using, space, fresh=False)
    return state, mark


def _settle(store: IndexedStore) -> None:
    while not store.settle():
        time.sleep(LOOK)  # another process is telling the rest


def _silent(count: int) -> None:
    """Progress of a pass that was not announced."""
