"""The default store: ranks packed signatures in the application's own database."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import ConfigurationError
from ..filters import attributes
from ..models import Memory, SignaturePage
from ..pages import Page
from ..vectors import cosines
from .ranking import SignatureRanking
from .spaces import matrix_of
from .table import Nominations, Search, TableStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DatabaseStore"]

STRATEGIES = ("signature", "exact")
#: Vectors that the exact strategy holds in memory at a time.
CHUNK = 1_000


class DatabaseStore(TableStore):
    """Nearest by the signatures of all rows, or by all vectors.

    ``strategy``: "signature" ranks 32 bytes a row and reads ``candidates`` vectors in full;
    "exact" reads every vector, and is what the other is measured against. ``bits``: the size of a
    signature, a multiple of 64. ``candidates``: how many vectors are scored exactly.
    """

    def __init__(
        self, *, strategy: str = "signature", bits: int = 256, candidates: int = 256
    ) -> None:
        if strategy not in STRATEGIES:
            raise ConfigurationError(
                f"strategy is {strategy!r:.80}. Choose one of {', '.join(map(repr, STRATEGIES))}."
            )
        if not _whole(bits) or bits % 64:
            raise ConfigurationError(f"bits is {bits!r:.80}. Give a multiple of 64, such as 256.")
        if not _whole(candidates):
            raise ConfigurationError(
                f"candidates is {candidates!r:.80}. Give a whole number of at least 1."
            )
        self.strategy = strategy
        self.bits = bits
        self.candidates = candidates

    def nominate(self, search: Search) -> Nominations:
        return self._by_vector(search) if self.strategy == "exact" else self._by_signature(search)

    def _by_signature(self, search: Search) -> Nominations:
        ranking = SignatureRanking(lambda: self._blocks(search), search.vector, search.wanted)
        return Nominations(ranking.count, ranking.ids())

    def _blocks(self, search: Search) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
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

    def _by_vector(self, search: Search) -> Nominations:
        """Rank by the exact cosines, and by the rows alone: no page and no token is looked at."""
        rows = Memory.objects.using(search.using).filter(
            search.live, embeddings__space=search.space
        )
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
        return Nominations(len(ids), (ids[row] for row in order), scored=len(ids))


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _seen(row: tuple[Any, ...]) -> dict[str, Any]:
    return attributes(*row[3:])


def _chunks(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk
