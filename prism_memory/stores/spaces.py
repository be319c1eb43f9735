"""Guards: vectors are only compared within one space, and a space is searched as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from django.db.models import Count

from ..exceptions import ConfigurationError, SpaceMismatch
from ..models import Embedding, Memory, SignaturePage, Space
from ..selecting import columns, fetch, places, table
from ..transactions import id_batches

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from numpy.typing import NDArray

    from .table import Search

__all__ = ["matrix_of", "refuse_other_bits", "refuse_other_spaces", "refuse_other_width"]


def refuse_other_spaces(search: Search) -> None:
    """Raise SpaceMismatch when live memories have a vector, but none in the query's space.

    Searching the rest would be recall that silently got worse. Costs one look at an index while
    a collection has one space.
    """
    others = _present(search) - {search.space.pk}
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


def _present(search: Search) -> set[int]:
    """The keys of the spaces that the searched collections have vectors in."""
    using, keys = search.using, list(search.collections)
    space, key = (columns(using, SignaturePage, [name]) for name in ("space", "collection_key"))
    sql = (
        f"SELECT DISTINCT {space} FROM {table(using, SignaturePage)} "  # noqa: S608 - names
        f"WHERE {key} IN ({places(keys)})"
    )
    return {pk for (pk,) in fetch(using, SignaturePage, ["space"], sql, keys)}


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


def matrix_of(space: Space, vectors: Sequence[tuple[str, bytes]]) -> NDArray[np.float64]:
    """Return stored vectors, given with their record ids, as rows: shape (n, width).

    Raises SpaceMismatch, naming the record, for a vector of another width.
    """
    for record_id, vector in vectors:
        if len(vector) != 8 * space.width:
            refuse_other_width(space, f"the stored vector of {record_id!r:.80}", len(vector) // 8)
    joined = b"".join(vector for _, vector in vectors)
    return np.frombuffer(joined, "<f8").reshape(len(vectors), space.width)


def _ids(pages: QuerySet[SignaturePage]) -> NDArray[np.int64]:
    blobs = [bytes(ids) for ids in pages.values_list("ids", flat=True)]
    return np.frombuffer(b"".join(blobs), "<i8")
