"""Ranking signatures in two steps: Hamming distance to thousands, then the finer estimate.

Both steps read the same bits. Hamming distance is fast; the estimate, the dot product of the
*unquantised* projected query with a signature's bits as +1 and -1, is better: on 400,000 sentences
with 256 bits and 256 candidates, recall@8 is 92.6 % by Hamming distance and 98.6 % by both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ..signatures import bit_weights, estimates, hamming, signature

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: Keys (n,) and signatures (n, bits // 8) of some rows.
    Block = tuple[NDArray[np.int64], NDArray[np.uint8]]
    #: The same, and their distances (n,).
    Measured = tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint16]]

__all__ = ["SignatureRanking"]

#: Rows that the estimate looks at, of those nearest by Hamming distance.
ESTIMATED = 4_096
#: No distance is larger.
FARTHEST = np.iinfo(np.uint16).max


class SignatureRanking:
    """Ranks blocks of signatures against a vector.

    ``blocks`` is called for every pass; a second pass is needed only when thousands of nominated
    rows turned out to be unusable. ``wanted``: how many rows are surely asked for.
    """

    def __init__(
        self, blocks: Callable[[], Iterable[Block]], vector: NDArray[np.float64], wanted: int
    ) -> None:
        self.blocks = blocks
        self.wanted = wanted
        self.keep = max(ESTIMATED, wanted)
        # All blocks have signatures of one size: computed once, when there are any.
        self._signature = cache(lambda size: signature(vector, 8 * size))
        self._weights = cache(lambda size: bit_weights(vector, 8 * size))
        self.count, self.first = self._nearest(self.keep)

    def ids(self) -> Iterator[int]:
        """Yield the keys of all rows, nearest first."""
        ids, estimated = self.first[0], self._estimated(self.first[1])
        best = _highest(estimated, self.wanted)
        yield from _ordered(ids[best], estimated[best])
        yield from _ordered(ids[~best], estimated[~best])
        seen, keep = ids, self.keep
        while len(seen) < self.count:
            keep *= 4
            _, (ids, signs) = self._nearest(keep)
            fresh = ~np.isin(ids, seen)
            if not fresh.any():  # rows went while we ranked
                return
            yield from _ordered(ids[fresh], self._estimated(signs[fresh]))
            seen = np.concatenate([seen, ids[fresh]])

    def _nearest(self, keep: int) -> tuple[int, Block]:
        """Count all rows, and return the ``keep`` nearest by Hamming distance, in no order.

        Only rows that may be among these are kept: so little memory does, however many there are.
        """
        count = size = 0
        edge = FARTHEST
        kept: list[Measured] = []
        for ids, signs in self.blocks():
            count += len(ids)
            distances = hamming(self._signature(signs.shape[1]), signs)
            near = np.flatnonzero(distances <= edge)
            kept.append((ids[near], signs.take(near, axis=0), distances[near]))
            size += len(near)
            if size >= 2 * keep:
                kept = [_cut(kept, keep)]
                size, edge = keep, kept[0][2].max()
        ids, signs, _ = _cut(kept, keep)
        return count, (ids, signs)

    def _estimated(self, signs: NDArray[np.uint8]) -> NDArray[np.float64]:
        return estimates(self._weights(signs.shape[1]), signs)


def _cut(blocks: list[Measured], keep: int) -> Measured:
    """The ``keep`` nearest of some rows; of those just at the edge, the oldest."""
    if not blocks:
        return np.empty(0, np.int64), np.empty((0, 8), np.uint8), np.empty(0, np.uint16)
    ids, signs, distances = map(np.concatenate, zip(*blocks, strict=True))
    if len(ids) <= keep:
        return ids, signs, distances
    edge = np.partition(distances, keep - 1)[keep - 1]
    within = np.flatnonzero(distances < edge)
    at_edge = np.flatnonzero(distances == edge)
    oldest = at_edge[np.argsort(ids[at_edge], kind="stable")[: keep - len(within)]]
    kept = np.concatenate([within, oldest])
    return ids[kept], signs.take(kept, axis=0), distances[kept]


def _highest(values: NDArray[np.float64], count: int) -> NDArray[np.bool_]:
    """A mask of the ``count`` highest values, and of those that equal the least of them.

    Only these are sorted, unless more are asked for: a sixteenth of the rows.
    """
    if count >= len(values):
        return np.ones(len(values), np.bool_)
    least = np.partition(values, -count)[-count]
    return np.asarray(values >= least)


def _ordered(ids: NDArray[np.int64], estimated: NDArray[np.float64]) -> list[int]:
    ordered: list[int] = ids[np.lexsort((ids, -estimated))].tolist()
    return ordered
