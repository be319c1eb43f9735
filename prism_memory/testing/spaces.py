"""Vectors are only compared within one space, and a space is searched as a whole."""

from __future__ import annotations

from datetime import UTC, datetime

from ..exceptions import InvalidVector, SpaceMismatch
from .cases import StoreCase
from .records import NOON, SPACE, at, query, record

__all__ = ["SpaceTests"]

PAST = datetime(2001, 1, 1, tzinfo=UTC)


class SpaceTests(StoreCase):
    def _refused(self, **fields: object) -> None:
        self.settle()
        with self.assertRaises(SpaceMismatch):
            self.store.search(query(**fields))  # type: ignore[arg-type]

    def test_a_query_of_another_space_is_refused(self) -> None:
        self.write(record("ours", at(1)), record("theirs", at(1), space="old"))
        self._refused()
        self._refused(space="old")
        self._refused(space="never seen")

    def test_what_has_no_vector_at_all_is_no_reason(self) -> None:
        self.write(record("ours", at(1)), record("unembedded"))
        self.assertEqual(self.found(), ["ours"])

    def test_spaces_of_different_width_live_side_by_side(self) -> None:
        self.write(*(record(f"r{n}", at(n / 10)) for n in range(4)))
        narrow = {f"r{n}": at(-n / 10, 3) for n in range(4)}
        self.assertEqual(self.writes.attach("c", narrow, "narrow"), 4)
        self.assertEqual(self.found(), ["r3", "r2", "r1", "r0"])
        self.assertEqual(self.found(at(1, 3), space="narrow"), ["r0", "r1", "r2", "r3"])

    def test_one_of_several_collections_is_enough(self) -> None:
        self.write(record("a", at(1), "c"), record("b", at(1), "d", space="old"))
        self.assertEqual(self.found(collections=["c"]), ["a"])
        self._refused(collections=["c", "d"])

    def test_what_may_not_be_found_anyway_is_no_reason(self) -> None:
        self.write(record("expired", at(1), space="old", expires_at=PAST))
        self.write(record("early", at(1), space="old", occurred_at=PAST), record("ours", at(1)))
        self.assertEqual(self.found(occurred_since=PAST), ["ours"])
        self._refused()
        self.writes.forget("c", ["early"])
        self.assertEqual(self.found(), ["ours"])
        self.assertEqual(self.store.count("c"), 2)
        self.assertLess(PAST, NOON)

    def test_a_query_of_another_width_is_refused(self) -> None:
        self.write(record("r", at(1)))
        self._refused(vector=[1.0, 2.0, 3.0])

    def test_a_vector_of_another_width_is_refused_and_nothing_written(self) -> None:
        self.write(record("r", at(1)), record("s"))
        for call in (
            lambda: self.store.attach("c", {"s": [1, 2, 3]}, SPACE),
            lambda: self.store.upsert([record("new", at(1)), record("s", [1, 2, 3])]),
            lambda: self.store.attach("c", {"r": at(0.5), "s": [1.0] * 9}, SPACE),
            lambda: self.store.attach("c", {"r": at(0.5), "s": [1.0] * 9}, "fresh"),
        ):
            with self.assertRaises(SpaceMismatch):
                call()
        self.assertEqual(self.store.count("c"), 2)
        self.assertEqual(self.store.count("c", embedded_only=True), 1)
        self.assertEqual(self.found(), ["r"])

    def test_what_is_no_vector_is_refused_and_nothing_written(self) -> None:
        self.write(record("a"), record("b"))
        for vector in ([], [0.0] * 8, [float("nan")] * 8, None, "vector"):
            with self.assertRaises(InvalidVector):
                self.store.attach("c", {"a": at(1), "b": vector}, SPACE)
        self.assertEqual(self.store.count("c", embedded_only=True), 0)
