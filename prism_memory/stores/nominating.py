"""The two ways to nominate from the tables alone: by all signatures, and by all vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ..filters import attributes
from ..models import Memory, SignaturePage
from ..pages import Page
from ..vectors import cosines
from .ranking import SignatureRanking
from .spaces import matrix_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .searches import Search

__all__ = ["Nominations", "by_signature", "by_vector", "completed"]

#: Vectors that are held in memory at a time.
CHUNK = 1_000


@dataclass(frozen=True)
class Nominations:
    """Rows that may be near, best first, without repeats, and how many they were chosen from."""

    ranked: int
    ids: Iterable[int]
    #: Vectors that the driver itself read in full.
    scored: int = 0
    #: Whether the ids are all rows that could be found. If not, and they turn out to be too few,
    #: a search goes on with the signatures of the others.
    complete: bool = False


def by_signature(search: Search) -> Nominations:
    """Rank the packed signatures of all rows that may match the filter."""
    ranking = SignatureRanking(lambda: _blocks(search), search.vector, search.wanted)
    return Nominations(ranking.count, ranking.ids(), complete=True)


def by_vector(search: Search) -> Nominations:
    """Rank by the exact cosines, and by the rows alone: no page and no token is looked at."""
    rows = Memory.objects.using(search.using).filter(search.live, embeddings__space=search.space)
    columns = ["pk", "record_id", "embeddings__vector"]
    if search.filter:
        columns += ["metadata", "role", "kind", "name"]
    ids: list[int] = []
    names: list[str] = []
    found: list[NDArray[np.float64]] = []
    for chunk in _chunks(rows.values_list(*columns).iterator(chunk_size=CHUNK)):
        kept = [row for row in chunk if not search.filter or search.filter.matches(_seen(row))]
        ids += [row[0] for row in kept]
        names += [row[1] for row in kept]
        matrix = matrix_of(search.space, [(row[1], row[2]) for row in kept])
        found.append(cosines(search.vector, matrix))
    similarities = np.concatenate(found) if found else np.empty(0)
    order = sorted(range(len(ids)), key=lambda row: (-similarities[row], names[row]))
    return Nominations(len(ids), (ids[row] for row in order), scored=len(ids), complete=True)


def completed(search: Search, nominations: Nominations) -> Iterator[int]:
    """Yield what is nominated and then, unless that was complete, the other rows by signature.

    An index may hold fewer rows than it should: a graph of millions is left before a small
    collection or a rare filter is found in it, and what was written just now may not be there yet.
    """
    if nominations.complete:
        yield from nominations.ids
        return
    seen = set()
    for pk in nominations.ids:
        seen.add(pk)
        yield pk
    yield from (pk for pk in by_signature(search).ids if pk not in seen)


def _blocks(search: Search) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
    pages = SignaturePage.objects.using(search.using).filter(
        collection_key__in=list(search.collections), space=search.space
    )
    columns = ["collection_key", "size", "ids", "signatures"]
    if not search.filter:
        for _, size, ids, signs in pages.values_list(*columns).iterator(chunk_size=64):
            yield np.frombuffer(ids, "<i8"), np.frombuffer(signs, np.uint8).reshape(size, -1)
        return
    wanted = {key: search.filter.tokens(name) for key, name in search.collections.items()}
    for row in pages.iterator(chunk_size=64):
        page = Page.read(row)
        matching = page.matching(wanted[row.collection_key])
        if matching.any():
            yield page.ids[matching], page.signatures[matching]


def _seen(row: tuple[Any, ...]) -> dict[str, Any]:
    return attributes(*row[3:])


def _chunks(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk
