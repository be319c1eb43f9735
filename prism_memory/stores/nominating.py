"""The two ways to nominate from the tables alone: by all signatures, and by all vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..filters import attributes
from ..models import Memory, SignaturePage
from ..pages import ID, Page
from ..selecting import columns, places, stream, table
from ..vectors import cosines
from .ranking import SignatureRanking
from .spaces import matrix_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .searches import Search

__all__ = ["Nominations", "by_signature", "by_vector", "completed"]

#: Vectors that are held in memory at a time.
CHUNK = 1_000
#: Pages that are read and ranked at a time, some 8,000 rows: little enough to stay in the caches.
STREAMED = 16


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
    names = ["pk", "record_id", "embeddings__vector"]
    if search.filter:
        names += ["metadata", "role", "kind", "name"]
    ids: list[int] = []
    record_ids: list[str] = []
    found: list[NDArray[np.float64]] = []
    for chunk in _chunks(rows.values_list(*names).iterator(chunk_size=CHUNK)):
        kept = [row for row in chunk if not search.filter or search.filter.matches(_seen(row))]
        names_kept = [row[1] for row in kept]
        ids += [row[0] for row in kept]
        record_ids += names_kept
        matrix = matrix_of(search.space, [row[2] for row in kept], names_kept.__getitem__)
        found.append(cosines(search.vector, matrix))
    similarities = np.concatenate(found) if found else np.empty(0)
    order = sorted(range(len(ids)), key=lambda row: (-similarities[row], record_ids[row]))
    return Nominations(len(ids), (ids[row] for row in order), scored=len(ids), complete=True)


def completed(search: Search, nominations: Nominations) -> Iterator[int]:
    """Return what is nominated and then, unless that was complete, the other rows by signature.

    An index may hold fewer rows than it should: a graph of millions is left before a small
    collection or a rare filter is found in it, and what was written just now may not be there yet.
    """
    if nominations.complete:
        return iter(nominations.ids)
    return _with_the_others(search, nominations)


def _with_the_others(search: Search, nominations: Nominations) -> Iterator[int]:
    seen = set()
    for pk in nominations.ids:
        seen.add(pk)
        yield pk
    yield from (pk for pk in by_signature(search).ids if pk not in seen)


def _blocks(search: Search) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
    if not search.filter:
        for pages in _pages(search, ["ids", "signatures"]):
            joined, signs = map(b"".join, zip(*pages, strict=True))
            ids = np.frombuffer(joined, ID)
            yield ids, np.frombuffer(signs, np.uint8).reshape(len(ids), -1)
        return
    wanted = {key: search.filter.tokens(name) for key, name in search.collections.items()}
    names = ["size", "ids", "signatures", "tokens", "token_counts"]
    for pages in _pages(search, ["collection_key", *names]):
        for key, group in groupby(sorted(pages, key=itemgetter(0)), itemgetter(0)):
            _, sizes, *packed = zip(*group, strict=True)
            page = Page.unpacked(sum(sizes), *map(b"".join, packed))
            matching = page.matching(wanted[key])
            yield page.ids[matching], page.signatures[matching]


def _pages(search: Search, names: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield columns of the pages of the collections searched, some megabytes at a time."""
    using, keys = search.using, list(search.collections)
    key, space = (columns(using, SignaturePage, [name]) for name in ("collection_key", "space"))
    sql = (
        f"SELECT {columns(using, SignaturePage, names)} "  # noqa: S608 - names
        f"FROM {table(using, SignaturePage)} WHERE {key} IN ({places(keys)}) AND {space} = %s"
    )
    return stream(using, sql, [*keys, search.space.pk], size=STREAMED)


def _seen(row: tuple[Any, ...]) -> dict[str, Any]:
    return attributes(*row[3:])


def _chunks(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk
