"""At 10,000 rows: what is found, measured against reading every vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from ..stores import Matches, VectorQuery, VectorStore
from .cases import StoreCase, exactly
from .clustered import clustered
from .records import record

__all__ = ["NearestTests"]

ROWS = 10_000
QUERIES = 60
#: One of so many rows has what the rare filter asks for.
RARE = 1_000
#: What the found sets must have in common with the exact ones, on average.
OVERLAP = 0.99


class NearestTests(StoreCase):
    def test_ten_thousand_rows(self) -> None:
        """The sets overlap the exact ones, scores are the exact ones, rare filters are filled."""
        matrix, vectors = clustered(ROWS, 128, queries=QUERIES)
        self.write(
            *(
                record(f"r{n:05}", row, "big", space="big@128", metadata={"rare": n % RARE == 0})
                for n, row in enumerate(matrix)
            )
        )
        self.settle()
        asked = [VectorQuery(["big"], vector, "big@128") for vector in vectors]
        exact = [self.exact.search(each) for each in asked]
        with self.subTest("overlap"):
            self.assert_overlap(self.store, asked, exact)
        with self.subTest("the exact strategy"):
            if hasattr(self.store, "strategy") and not self.reads_all:
                thorough = self.make_exact_store()
                self.assertIsNotNone(thorough, "a store with strategies has make_exact_store()")
                self.assert_overlap(cast("VectorStore", thorough), asked, exact)
        with self.subTest("a filter that takes one in a thousand"):
            for vector in vectors[:5]:
                rare = {"collections": ["big"], "space": "big@128", "filter": {"rare": True}}
                self.assertEqual(len(self.search(vector, limit=8, **rare)), 8)
                self.assertEqual(len(self.search(vector, limit=50, **rare)), ROWS // RARE)
        self.at_ten_thousand(asked, exact)

    def at_ten_thousand(self, asked: Sequence[VectorQuery], exact: Sequence[Matches]) -> None:
        """Called while the rows are there, for more tests of them."""

    def assert_overlap(
        self, store: VectorStore, asked: Sequence[VectorQuery], exact: Sequence[Matches]
    ) -> None:
        """Assert that a store finds what the exact store does, or nearly so if it need not."""
        thorough = self.reads_all or store is not self.store
        shares = []
        for each, expected in zip(asked, exact, strict=True):
            found = store.search(each)
            self.assertEqual(len(found), len(expected), "the limit is not filled")
            self.check_order(found)
            if not thorough:
                self.assertLessEqual(found.vectors_scored, max(store.candidates, len(expected)))
            scores = {match.address: exactly(match) for match in expected}
            common = [match for match in found if match.address in scores]
            for match in common:
                self.assertEqual(exactly(match), scores[match.address])
            shares.append(len(common) / len(expected))
        self.assertGreaterEqual(float(np.mean(shares)), 1 if thorough else OVERLAP)
