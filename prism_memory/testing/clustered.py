"""A data set on which ranking is hard: clusters whose members are all about equally near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# The expected cosine of two members of a cluster. The best eight of about sixty are nearer than
# that: a query's true neighbours come to lie near .61.
WITHIN = 0.57
MEMBERS = 64


def clustered(
    count: int = 1000, dimensions: int = 384, seed: int = 0, queries: int = 100
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Unit vectors of shape (count, dimensions) and queries of shape (queries, dimensions).

    Nine tenths of the vectors belong to clusters of about sixty, the rest to none. Queries belong
    to the clusters, in turn, but are not among the vectors.
    """
    rng = np.random.default_rng(seed)

    def directions(number: int) -> NDArray[np.float64]:
        rows = rng.standard_normal((number, dimensions))
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def members(centres: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.sqrt(WITHIN) * centres + np.sqrt(1 - WITHIN) * directions(len(centres))
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    clusters = max(1, count * 9 // 10 // MEMBERS)
    centres = directions(clusters)
    inside = members(centres[np.arange(count * 9 // 10) % clusters])
    matrix = np.concatenate([inside, directions(count - len(inside))])
    return matrix, members(centres[np.arange(queries) % clusters])
