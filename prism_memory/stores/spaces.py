"""Guards: vectors are only compared within one space, and a space is searched as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from django.db import connections
from django.db.models import Count

from ..exceptions import ConfigurationError, SpaceMismatch
from ..models import Embedding, Memory, SignaturePage, Space
from ..selecting import columns, parameter, places, table
from ..timestamps import to_database
from ..transactions import id_batches
from .keys import space_key

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from numpy.typing import NDArray

    from .table import Search

__all__ = [
    "Present",
    "matrix_of",
    "present",
    "refuse_other_bits",
    "refuse_other_spaces",
    "refuse_other_width",
]

NAMES = ["id", "key", "name", "width", "bits"]
# A space is looked for in the index of the pages, one step each: there are few spaces.
PRESENT = """
SELECT {columns}, (SELECT MIN({expires_at}) FROM {memories}) <= %s
FROM {spaces} s WHERE s.{key} = %s OR EXISTS (
    SELECT 1 FROM {pages} p WHERE p.{space} = s.{id} AND p.{collection_key} IN ({places})
)
"""


class Present(NamedTuple):
    """What a search has to know of the database before it ranks anything."""

    #: The space of the query, if any vector was ever stored in it.
    space: Space | None
    #: The primary keys of other spaces in which the collections have vectors.
    others: frozenset[int]
    #: Whether any memory at all has expired and is not purged. If not, no row needs a look.
    some_expired: bool


def present(using: str, space: str, collection_keys: Sequence[str], now: datetime) -> Present:
    """Look the space up, and which others the collections are in: one statement."""
    moment = parameter(using, Memory, "expires_at", to_database(now))
    key = space_key(space)
    with connections[using].cursor() as cursor:
        cursor.execute(_worded(using, len(collection_keys)), [moment, key, *collection_keys])
        rows = cursor.fetchall()
    found = [Space.from_db(using, NAMES, row[:-1]) for row in rows]
    return Present(
        next((each for each in found if each.key == key), None),
        frozenset(each.pk for each in found if each.key != key),
        any(row[-1] for row in rows),
    )


@cache
def _worded(using: str, collections: int) -> str:
    return PRESENT.format(
        columns=", ".join(f"s.{columns(using, Space, [name])}" for name in NAMES),
        expires_at=columns(using, Memory, ["expires_at"]),
        memories=table(using, Memory),
        spaces=table(using, Space),
        pages=table(using, SignaturePage),
        id=columns(using, Space, ["id"]),
        key=columns(using, Space, ["key"]),
        space=columns(using, SignaturePage, ["space"]),
        collection_key=columns(using, SignaturePage, ["collection_key"]),
        places=places(range(collections)),
    )


def refuse_other_spaces(search: Search, others: Collection[int]) -> None:
    """Raise SpaceMismatch when live memories have a vector, but none in the query's space.

    Searching the rest would be recall that silently got worse. ``others``: the other spaces that
    the collections have vectors in; usually there are none.
    """
    if not others:
        return
    pages = SignaturePage.objects.using(search.using).filter(
        collection_key__in=list(search.collections)
    )
    ours = _ids(pages.filter(space_id=search.space.pk))
    theirs = np.unique(_ids(pages.filter(space_id__in=others)))
    lacking = theirs[~np.isin(theirs, ours)].tolist()
    counts: dict[str, int] = {}
    for ids in id_batches(search.using, lacking):
        live = Memory.objects.using(search.using).filter(search.live, pk__in=ids)
        found = Embedding.objects.using(search.using).filter(memory__in=live)
        for name, count in found.values_list("space__name").annotate(Count("pk")):
            counts[name] = counts.get(name, 0) + count
    if counts:
        held = ", ".join(f"{count} in {name!r}" for name, count in sorted(counts.items()))
        raise SpaceMismatch(
            f"The query is in the space {search.space.name!r}, in which some memories have no "
            f"vector: {held}. A search would silently miss them. Embed them in the new space: "
            "embed_pending() on the handle, or manage.py memory_pending --embed for all."
        )


def refuse_other_width(space: Space, what: str, width: int) -> None:
    """Raise SpaceMismatch when ``what`` has another width than the vectors of its space."""
    if width != space.width:
        raise SpaceMismatch(
            f"The width of {what} is {width}, but vectors of the space {space.name!r} have "
            f"{space.width} numbers. Another model or width is another space: give the embedder "
            "another name for it."
        )


def refuse_other_bits(space: Space, bits: int) -> None:
    """Raise ConfigurationError when the signatures of a space have another size."""
    if bits != space.bits:
        raise ConfigurationError(
            f"The store's option bits is {bits}, but the signatures of the space {space.name!r} "
            f"were written with {space.bits}. Set bits to {space.bits}."
        )


def matrix_of(
    space: Space, vectors: Sequence[bytes], record_id: Callable[[int], str]
) -> NDArray[np.float64]:
    """Return stored vectors as rows: shape (n, width).

    Raises SpaceMismatch for a vector of another width; ``record_id`` names it by its position.
    """
    if not {8 * space.width}.issuperset(map(len, vectors)):
        for at, vector in enumerate(vectors):
            if len(vector) != 8 * space.width:
                named = f"the stored vector of {record_id(at)!r:.80}"
                refuse_other_width(space, named, len(vector) // 8)
    return np.frombuffer(b"".join(vectors), "<f8").reshape(len(vectors), space.width)


def _ids(pages: QuerySet[SignaturePage]) -> NDArray[np.int64]:
    blobs = [bytes(ids) for ids in pages.values_list("ids", flat=True)]
    return np.frombuffer(b"".join(blobs), "<i8")
