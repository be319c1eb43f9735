"""How signatures are ranked: what their bits count for, and in which order rows are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prism_memory.signatures import (
    RIDGE,
    bit_weights,
    estimates,
    hamming,
    project,
    signature,
    signatures,
)
from prism_memory.stores import ranking
from prism_memory.stores.ranking import SignatureRanking

Block = tuple[Any, Any]


def weights_of(vector: Any, bits: int = 256) -> Any:
    return bit_weights(project(vector, bits), len(vector))


def blocks_of(ids: Any, signs: Any, size: int = 100) -> list[Block]:
    starts = range(0, len(ids), size)
    return [(ids[start : start + size], signs[start : start + size]) for start in starts]


def by_hand(ids: Any, signs: Any, vector: Any, keep: int) -> list[int]:
    """The nearest by Hamming distance, the lowest ids of those at the edge; then the estimate."""
    nearest = np.lexsort((ids, hamming(signature(vector), signs)))[:keep]
    estimated = estimates(weights_of(vector), signs[nearest])
    ordered: list[int] = ids[nearest][np.lexsort((ids[nearest], -estimated))].tolist()
    return ordered


@pytest.fixture(scope="module")
def stored() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(7)
    # Whole numbers: many rows are the same, so that ties are everywhere.
    rows = random.integers(-1, 2, (6_000, 4)).astype(np.float64)
    rows = np.hstack([rows, np.ones((6_000, 1))])
    return random.permutation(6_000), signatures(rows), random.standard_normal(5)


class TestTheOrder:
    @pytest.mark.parametrize("wanted", [1, 8, 256, 4_096, 5_000, 6_000, 9_000])
    def test_is_that_of_the_estimate_and_of_equals_that_of_the_ids(self, stored, wanted) -> None:
        ids, signs, vector = stored
        found = SignatureRanking(lambda: blocks_of(ids, signs), vector, wanted)
        assert found.count == 6_000
        first = by_hand(ids, signs, vector, max(wanted, ranking.ESTIMATED))
        named = list(found.ids())
        assert named[: len(first)] == first
        assert sorted(named) == list(range(6_000))

    def test_does_not_depend_on_the_pages(self, stored) -> None:
        ids, signs, vector = stored
        orders = []
        for shuffle in (np.arange(6_000), np.random.default_rng(1).permutation(6_000)):
            blocks = blocks_of(ids[shuffle], signs[shuffle], size=37)
            orders.append(list(SignatureRanking(lambda blocks=blocks: blocks, vector, 8).ids()))
        assert orders[0] == orders[1]

    def test_does_not_depend_on_how_much_is_collected_at_a_time(self, stored, monkeypatch) -> None:
        ids, signs, vector = stored
        first = list(SignatureRanking(lambda: blocks_of(ids, signs), vector, 8).ids())
        monkeypatch.setattr(ranking, "ESTIMATED", 64)
        found = list(SignatureRanking(lambda: blocks_of(ids, signs), vector, 8).ids())
        assert found[:64] == by_hand(ids, signs, vector, 64)
        assert sorted(found) == sorted(first)

    def test_of_nothing_is_empty(self) -> None:
        found = SignatureRanking(list, np.ones(5), 8)
        assert (found.count, list(found.ids())) == (0, [])


class TestTheWeightsOfBits:
    @pytest.mark.parametrize(
        ("dimensions", "bits"), [(256, 256), (1_024, 256), (100, 256), (8, 64)]
    )
    def test_are_the_projections_on_rows_at_right_angles_and_on_too_many(
        self, dimensions, bits
    ) -> None:
        vector = np.random.default_rng(2).standard_normal(dimensions)
        assert weights_of(vector, bits).tolist() == project(vector, bits).tolist()

    @pytest.mark.parametrize(("dimensions", "bits"), [(300, 256), (384, 256), (768, 256), (65, 64)])
    def test_undo_what_the_bits_of_padded_vectors_have_in_common(self, dimensions, bits) -> None:
        vector = np.random.default_rng(3).standard_normal(dimensions)
        rows = np.array([project(unit, bits) for unit in np.eye(dimensions)]).T
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        correlations = 2 / np.pi * np.arcsin(np.clip(rows @ rows.T, -1, 1))
        weights = weights_of(vector, bits)
        correlations += RIDGE * np.eye(bits)
        assert correlations @ weights == pytest.approx(project(vector, bits), abs=1e-12)

    def test_find_more_than_the_projections_alone(self) -> None:
        """Of the best 8, among 32 candidates, where few dimensions hold most of the length."""
        random = np.random.default_rng(0)
        turned = np.linalg.qr(random.standard_normal((300, 300)))[0]
        rows = (random.standard_normal((5_200, 300)) / np.sqrt(np.arange(1, 301))) @ turned
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        matrix, queries = rows[:5_000], rows[5_000:]
        signs = np.ascontiguousarray(signatures(matrix))

        def recall(weigh: Any) -> float:
            shares = []
            for query in queries:
                nearest = np.argsort(-estimates(weigh(query), signs))[:32]
                shares.append(np.isin(np.argsort(-(matrix @ query))[:8], nearest).mean())
            return float(np.mean(shares))

        assert recall(weights_of) > recall(project) + 0.005
