"""Signature pages: what a search ranks, packed some hundreds of memories to a row.

Fetching 100,000 signatures from their own rows takes SQLite some 80 to 190 ms; packed, 2 ms. Pages
are changed in the very transaction that attaches or erases, so that a search reads what its own
snapshot holds and there is no cache to go stale.

Writers don't queue up for pages: attaching only inserts new, small ones. Small pages are merged
when there are many, skipping those that somebody else holds. Erasing locks just the pages that hold
the erased rows, always after the memories themselves and in the order of their keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from django.db import connections

from .inserting import insert
from .models import Embedding, SignaturePage
from .selecting import columns, table
from .transactions import id_batches

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from numpy.typing import NDArray

__all__ = ["ID", "Page", "add", "remove"]

#: Entries of a full page: 4 kB of keys and 16 kB of 256-bit signatures.
PAGE_SIZE = 512
#: So many small pages of a collection are merged into one.
SMALL_PAGES = 16
#: Looks for the entries to remove; each but the first means that another merge has just committed.
ATTEMPTS = 10

#: The columns that Page.columns() fills.
COLUMNS = ("size", "first_id", "last_id", "ids", "signatures", "tokens", "token_counts")

#: What drivers give of a BinaryField.
Blob: TypeAlias = "bytes | memoryview[int]"

ID = np.dtype("<i8")
TOKEN = np.dtype("<i8")
COUNT = np.dtype("<u4")


@dataclass(frozen=True)
class Page:
    """The columns of a page. ``token_counts[i]`` of the ``tokens`` belong to row ``i``.

    Shapes: ids (n,) int64; signatures (n, bytes of a signature) uint8; tokens (m,) int64;
    token_counts (n,) uint32, their sum m.
    """

    ids: NDArray[np.int64]
    signatures: NDArray[np.uint8]
    tokens: NDArray[np.int64]
    token_counts: NDArray[np.uint32]

    @classmethod
    def of(
        cls, ids: Sequence[int], signatures: NDArray[np.uint8], tokens: Sequence[Sequence[int]]
    ) -> Page:
        """Pack memories' keys, their signatures and the tokens of each."""
        return cls(
            np.array(ids, ID),
            signatures,
            np.fromiter(chain.from_iterable(tokens), TOKEN),
            np.fromiter(map(len, tokens), COUNT, len(tokens)),
        )

    @classmethod
    def joined(cls, pages: Sequence[Page]) -> Page:
        return cls(
            *(
                np.concatenate([getattr(page, column) for page in pages])
                for column in ("ids", "signatures", "tokens", "token_counts")
            )
        )

    @classmethod
    def read(cls, row: SignaturePage) -> Page:
        return cls.unpacked(row.size, row.ids, row.signatures, row.tokens, row.token_counts)

    @classmethod
    def unpacked(
        cls, size: int, ids: Blob, signatures: Blob, tokens: Blob, token_counts: Blob
    ) -> Page:
        """The page of these values of a row."""
        return cls(
            np.frombuffer(ids, ID),
            np.frombuffer(signatures, np.uint8).reshape(size, -1),
            np.frombuffer(tokens, TOKEN),
            np.frombuffer(token_counts, COUNT),
        )

    def columns(self) -> dict[str, Any]:
        """The field values of the row that holds this page."""
        return {
            "size": len(self.ids),
            "first_id": int(self.ids.min()),
            "last_id": int(self.ids.max()),
            "ids": self.ids.tobytes(),
            "signatures": self.signatures.tobytes(),
            "tokens": self.tokens.tobytes(),
            "token_counts": self.token_counts.tobytes(),
        }

    def only(self, keep: NDArray[np.bool_]) -> Page:
        """The rows where ``keep``, a (n,) mask, is true."""
        return Page(
            self.ids[keep],
            self.signatures[keep],
            self.tokens[np.repeat(keep, self.token_counts)],
            self.token_counts[keep],
        )

    def taken(self, rows: NDArray[np.intp]) -> Page:
        """The rows of these positions, in this order."""
        counts = self.token_counts[rows].astype(np.int64)
        # From where a row's tokens lie to where they go to, once for each of them.
        moves = (np.cumsum(self.token_counts, dtype=np.int64) - self.token_counts)[rows]
        moves -= np.cumsum(counts) - counts
        tokens = self.tokens[np.repeat(moves, counts) + np.arange(counts.sum())]
        return Page(self.ids[rows], self.signatures[rows], tokens, self.token_counts[rows])

    def matching(self, wanted: Iterable[Iterable[int]]) -> NDArray[np.bool_]:
        """A (n,) mask of the rows that have, of every set of tokens, at least one."""
        rows = np.repeat(np.arange(len(self.ids)), self.token_counts)
        matches = np.ones(len(self.ids), bool)
        for tokens in wanted:
            having = np.zeros(len(self.ids), bool)
            having[rows[np.isin(self.tokens, np.fromiter(tokens, TOKEN))]] = True
            matches &= having
        return matches


def add(
    using: str,
    collection_key: str,
    space_id: int,
    ids: Sequence[int],
    signatures: NDArray[np.uint8],
    tokens: Sequence[Sequence[int]],
) -> None:
    """Add memories, by their keys, with signatures of shape (n, bits // 8) and the tokens of each.

    No page of the space holds them yet. Call it in the transaction that writes the embeddings.
    """
    _insert(using, collection_key, space_id, Page.of(ids, signatures, tokens))
    small = collection_key, space_id, PAGE_SIZE // 2
    names = ("collection_key", "space", "size")
    key, space, size = (columns(using, SignaturePage, [name]) for name in names)
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"SELECT COUNT(*) FROM {table(using, SignaturePage)} "  # noqa: S608 - names
            f"WHERE {key} = %s AND {space} = %s AND {size} < %s",
            small,
        )
        [count] = cursor.fetchone()
    if count > SMALL_PAGES:
        _merge(using, *small)


def _insert(using: str, collection_key: str, space_id: int, whole: Page) -> None:
    """Insert a page of any size as pages of at most PAGE_SIZE, in the order of the keys."""
    order = np.argsort(whole.ids, kind="stable")
    parts = [
        whole.taken(order[start : start + PAGE_SIZE]).columns()
        for start in range(0, len(order), PAGE_SIZE)
    ]
    given = {name: [part[name] for part in parts] for name in COLUMNS}
    insert(using, SignaturePage, given, {"collection_key": collection_key, "space": space_id})


def _merge(using: str, collection_key: str, space_id: int, smaller_than: int) -> None:
    skip = connections[using].features.has_select_for_update_skip_locked
    pages = SignaturePage.objects.using(using)
    small = pages.filter(
        collection_key=collection_key, space_id=space_id, size__lt=smaller_than
    ).order_by("pk")
    rows = list(small.select_for_update(skip_locked=skip))
    if len(rows) < 2:
        return
    pages.filter(pk__in=[row.pk for row in rows]).delete()
    _insert(using, collection_key, space_id, Page.joined([Page.read(row) for row in rows]))


def remove(using: str, collection_keys: Mapping[int, str], space_id: int | None = None) -> None:
    """Take memories, given with their collection's key, out of the pages of one space or of all.

    Call it after locking the memories and before deleting their embeddings.
    """
    embeddings, pages = Embedding.objects.using(using), SignaturePage.objects.using(using)
    if space_id is not None:
        embeddings, pages = embeddings.filter(space=space_id), pages.filter(space=space_id)
    expected = sum(
        embeddings.filter(memory_id__in=ids).count()
        for ids in id_batches(using, sorted(collection_keys))
    )
    by_collection = defaultdict(list)
    for pk, collection_key in collection_keys.items():
        by_collection[collection_key].append(pk)
    # A merge that commits while we wait for its pages moves entries to a page that the statement
    # could not see yet. Every embedding has one entry, so a short count shows it: look again.
    for attempt in range(ATTEMPTS):
        if expected <= 0:
            break
        for collection_key in sorted(by_collection):
            ids = np.array(sorted(by_collection[collection_key]), ID)
            near = pages.filter(
                collection_key=collection_key,
                first_id__lte=int(ids[-1]),
                last_id__gte=int(ids[0]),
            )
            # MariaDB waits for every page that it looks at, so at first only those are locked that
            # hold the entries. An old snapshot may not tell; what locks sees the latest.
            held = _holding(near, ids) if attempt == 0 else near
            expected -= _remove(held, ids)


def _holding(pages: QuerySet[SignaturePage], ids: NDArray[np.int64]) -> QuerySet[SignaturePage]:
    """Those of the pages that hold an entry, as they are now."""
    using = pages.db
    if not connections[using].features.has_select_for_update:
        return pages
    read = pages.values_list("pk", "ids")
    held = [pk for pk, packed in read if np.isin(np.frombuffer(packed, ID), ids).any()]
    return SignaturePage.objects.using(using).filter(pk__in=held)


def _remove(pages: QuerySet[SignaturePage], ids: NDArray[np.int64]) -> int:
    """Take entries out of some pages, which are locked; return how many were there."""
    every = SignaturePage.objects.using(pages.db)
    removed = 0
    emptied = []
    for row in list(pages.only("ids").order_by("pk").select_for_update()):
        held = np.frombuffer(row.ids, ID)
        keep = ~np.isin(held, ids)
        gone = len(held) - int(keep.sum())
        removed += gone
        if gone == len(held):
            emptied.append(row.pk)
        elif gone:
            rest = Page.read(every.select_for_update().get(pk=row.pk)).only(keep)
            every.filter(pk=row.pk).update(**rest.columns())
    every.filter(pk__in=emptied).delete()
    return removed
