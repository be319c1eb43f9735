"""Ranking signatures in two steps: Hamming distance to thousands, then the finer estimate.

Both steps read the same bits. Hamming distance is fast; the estimate, the dot product of the
*unquantised* projected query with a signature's bits as +1 and -1, is better: on 400,000 sentences
with 256 bits and 256 candidates, recall@8 is 92.2 % by Hamming distance and 98.9 % by both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..signatures import estimates, hamming, project, signature

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: Keys (n,) and signatures (n, bits // 8) of some rows.
    Block = tuple[NDArray[np.int64], NDArray[np.uint8]]

__all__ = ["SignatureRanking"]

#: Rows that the estimate looks at, of those nearest by Hamming distance.
ESTIMATED = 4_096
#: Rows whose distances are collected before the far ones are dropped: bounds the memory.
COLLECTED = 65_536


class SignatureRanking:
    """Ranks blocks of signatures against a vector.

    ``blocks`` is called for every pass; a second pass is needed only when thousands of nominated
    rows turned out to be unusable.
    """

    def __init__(
        self, blocks: Callable[[], Iterable[Block]], vector: NDArray[np.float64], wanted: int
    ) -> None:
        self.blocks = blocks
        self.vector = vector
        self.keep = max(ESTIMATED, wanted)
        self.count, self.first = self._nearest(self.keep)

    def ids(self) -> Iterator[int]:
        """Yield the keys of all rows, nearest first."""
        seen = self._estimated(*self.first)
        yield from seen.tolist()
        keep = self.keep
        while len(seen) < self.count:
            keep *= 4
            _, nearest = self._nearest(keep)
            ranked = self._estimated(*nearest)
            fresh = ranked[~np.isin(ranked, seen)]
            if not len(fresh):  # rows went while we ranked
                return
            yield from fresh.tolist()
            seen = np.concatenate([seen, fresh])

    def _nearest(self, keep: int) -> tuple[int, Block]:
        """Count all rows, and return the ``keep`` nearest by Hamming distance, in no order."""
        count = 0
        collected: list[Block] = []
        size = 0
        for block in self.blocks():
            count += len(block[0])
            size += len(block[0])
            collected.append(block)
            if size >= max(COLLECTED, 2 * keep):
                collected = [self._cut(collected, keep)]
                size = len(collected[0][0])
        return count, self._cut(collected, keep)

    def _cut(self, blocks: list[Block], keep: int) -> Block:
        if not blocks:
            return np.empty(0, np.int64), np.empty((0, 8), np.uint8)
        ids = np.concatenate([block[0] for block in blocks])
        signs = np.concatenate([block[1] for block in blocks])
        if len(ids) <= keep:
            return ids, signs
        distances = hamming(self._signature(signs), signs)
        # The distance within which the nearest lie; of those just at it, the oldest rows.
        totals = np.cumsum(np.bincount(distances))
        edge = int(np.searchsorted(totals, keep))
        within = distances < edge
        at_edge = np.flatnonzero(distances == edge)
        missing = keep - int(within.sum())
        within[at_edge[np.argsort(ids[at_edge], kind="stable")[:missing]]] = True
        return ids[within], signs[within]

    def _signature(self, signs: NDArray[np.uint8]) -> bytes:
        return signature(self.vector, 8 * signs.shape[1])

    def _estimated(self, ids: NDArray[np.int64], signs: NDArray[np.uint8]) -> NDArray[np.int64]:
        if not len(ids):
            return ids
        estimated = estimates(project(self.vector, 8 * signs.shape[1]), signs)
        return ids[np.lexsort((ids, -estimated))]
