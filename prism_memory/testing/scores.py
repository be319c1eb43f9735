"""Every score is a cosine, and the same cosine on every store."""

from __future__ import annotations

from .cases import StoreCase
from .records import at, random_vectors, record

__all__ = ["ScoreTests"]

#: What rounding may add to a cosine.
ROUNDING = 1e-12


class ScoreTests(StoreCase):
    def test_an_exact_match_scores_one_and_never_more(self) -> None:
        vectors = [*random_vectors(12, 67), *(1e150 * random_vectors(4, 67, 1))]
        vectors += [*(1e-150 * random_vectors(4, 67, 2))]
        self.write(*(record(f"r{n:02}", row, space="odd") for n, row in enumerate(vectors)))
        for n, vector in enumerate(vectors):
            best = self.search(vector, space="odd")[0]
            self.assertEqual(best.id, f"r{n:02}")
            self.assertLessEqual(best.similarity, 1.0)
            self.assertAlmostEqual(best.similarity, 1.0, delta=ROUNDING)

    def test_orthogonal_is_zero_and_opposite_minus_one(self) -> None:
        vector = random_vectors(1, 67)[0]
        across = vector.copy()
        across[::2], across[1::2] = 0, 0
        across[0], across[1] = vector[1], -vector[0]
        self.write(
            record("long", 1e9 * vector, space="odd"),
            record("across", across, space="odd"),
            record("opposite", -vector, space="odd"),
        )
        found = {match.id: match.similarity for match in self.search(vector, space="odd")}
        self.assertAlmostEqual(found["long"], 1.0, delta=ROUNDING)
        self.assertAlmostEqual(found["across"], 0.0, delta=ROUNDING)
        self.assertAlmostEqual(found["opposite"], -1.0, delta=ROUNDING)
        self.assertGreaterEqual(found["opposite"], -1.0)

    def test_every_score_is_the_exact_one_to_the_last_bit(self) -> None:
        self.write(*(record(f"r{n:03}", row) for n, row in enumerate(random_vectors(300))))
        for vector in random_vectors(6, seed=1):
            for limit in (4, 300):  # search() compares
                self.assertEqual(len(self.search(vector, limit=limit)), limit)

    def test_a_score_does_not_depend_on_what_else_is_stored(self) -> None:
        vectors, asked = random_vectors(200, 96), random_vectors(1, 96, seed=3)[0]
        self.write(record("me", vectors[0], space="wide"))
        [before] = self.search(asked, space="wide")
        self.write(*(record(f"r{n}", row, space="wide") for n, row in enumerate(vectors[1:])))
        after = {match.id: match for match in self.search(asked, space="wide", limit=200)}
        self.assertEqual(after["me"].similarity.hex(), before.similarity.hex())

    def test_the_nearest_come_first_and_ties_by_id(self) -> None:
        names = ["b", "c", "a", "B", "é", "10", "9"]
        self.write(record("far", at(-0.5)), record("near", at(0.9)))
        self.write(*(record(name, at(0.5)) for name in names))
        self.assertEqual(self.found(), ["near", *sorted(names), "far"])
