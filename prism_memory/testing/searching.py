"""What a search finds, and what it never does."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from ..exceptions import InvalidVector
from ..stores import Matches
from .cases import StoreCase
from .records import NOON, at, ids, query, random_vectors, record

__all__ = ["SearchTests"]

PAST = datetime(2001, 1, 1, tzinfo=UTC)
FUTURE = datetime(2999, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
#: More than a collection holds, a 32-bit and a 64-bit number takes.
HUGE = [10**4, 2**31, 2**63, 10**30]


class SearchTests(StoreCase):
    def test_a_match_has_all_of_its_record(self) -> None:
        moment = datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)
        metadata = {"k": None, "n": 1.0, "yes": True, "😀": "né", "source_page": None, "": ""}
        fields = {"role": "user", "name": "Ana 😀", "kind": "passage", "content": " a\nb😀 "}
        self.write(record("r", at(1), metadata=metadata, occurred_at=moment, **fields))
        [match] = self.search()
        self.assertEqual(match.address, ("c", "r"))
        self.assertEqual({name: getattr(match, name) for name in fields}, fields)
        self.assertEqual(match.occurred_at, moment)
        self.assertEqual(match.metadata, metadata)
        types = {key: type(value) for key, value in match.metadata.items()}
        self.assertEqual(types, {key: type(value) for key, value in metadata.items()})

    def test_several_collections_are_one_search(self) -> None:
        for n, name in enumerate(["a", "b", "other"]):
            self.write(*(record(f"{m}", at(0.9 - m / 10 - n / 100), name) for m in range(4)))
        found = self.search(collections=["a", "b", "a", "missing"], limit=5)
        expected = [("a", "0"), ("b", "0"), ("a", "1"), ("b", "1"), ("a", "2")]
        self.assertEqual([match.address for match in found], expected)

    def test_a_limit_of_zero_finds_nothing(self) -> None:
        self.write(record("r", at(1)))
        found = self.search(limit=0)
        self.assertEqual((list(found), found.vectors_scored), ([], 0))

    def test_no_limit_is_the_default_one(self) -> None:
        self.write(*(record(f"r{n:02}", row) for n, row in enumerate(random_vectors(20))))
        self.assertEqual(len(self.search(limit=None)), 8)

    def test_a_huge_limit_finds_all_there_is(self) -> None:
        self.write(*(record(f"r{n:02}", row) for n, row in enumerate(random_vectors(20))))
        for limit in HUGE:
            self.assertEqual(len(self.search(limit=limit)), 20)

    def test_empty_is_just_empty(self) -> None:
        self.assertEqual(self.found(), [])
        self.assertEqual(self.found(collections=[]), [])
        self.write(record("unembedded"))
        self.assertEqual(self.found(), [])
        self.assertIsInstance(self.store.search(query()), Matches)

    def test_min_similarity_is_a_floor(self) -> None:
        self.write(record("a", at(0.9)), record("b", at(0.2)), record("c", at(-0.9)))
        self.assertEqual(self.found(min_similarity=0.5), ["a"])
        second = self.search()[1].similarity
        self.assertEqual(self.found(min_similarity=second), ["a", "b"])
        self.assertEqual(self.found(min_similarity=-1), ["a", "b", "c"])
        self.assertEqual(self.found(min_similarity=1), [])

    def test_what_happened_at_a_moment_or_before_is_left_out(self) -> None:
        self.write(*(record(f"{n}", at(1), occurred_at=NOON + n * MICROSECOND) for n in (-1, 0, 1)))
        self.assertEqual(self.found(occurred_since=NOON), ["1"])

    def test_unembedded_records_never_come_back(self) -> None:
        self.write(record("has", at(0.1)), record("lacks"))
        self.assertEqual(self.found(), ["has"])
        self.writes.attach("c", {"lacks": at(1)}, "test@8")
        self.assertEqual(self.found(), ["lacks", "has"])

    def test_expired_records_never_come_back(self) -> None:
        self.write(record("gone", at(1), expires_at=PAST), record("here", at(0.1)))
        self.write(record("later", at(0), expires_at=FUTURE))
        self.assertEqual(self.found(), ["here", "later"])
        self.write(record("later", expires_at=PAST))
        self.assertEqual(self.found(), ["here"])

    def test_forgotten_records_never_come_back(self) -> None:
        self.write(*(record(f"r{n}", at(1 - n / 10)) for n in range(6)))
        self.assertEqual(len(self.found()), 6)
        self.assertEqual(self.writes.forget("c", ["r0", "r2"]), 2)
        self.assertEqual(self.found(), ["r1", "r3", "r4", "r5"])
        self.write(record("r0"))  # the same text, but its vector was forgotten
        self.assertEqual(self.found(), ["r1", "r3", "r4", "r5"])
        self.assertEqual(self.writes.purge("c"), 5)
        self.assertEqual(self.found(), [])

    def test_expired_and_forgotten_records_leave_the_limit_filled(self) -> None:
        """Many of them, and all nearer than what is left."""
        near = 0.01 * random_vectors(600) + at(1)
        self.write(*(record(f"x{n}", row, expires_at=PAST) for n, row in enumerate(near[:300])))
        self.write(*(record(f"y{n}", row) for n, row in enumerate(near[300:])))
        self.write(*(record(f"live{n:02}", at(-n / 100)) for n in range(40)))
        self.writes.forget("c", [f"y{n}" for n in range(300)])
        self.assertEqual(ids(self.search(limit=20)), [f"live{n:02}" for n in range(20)])

    def test_a_query_has_a_usable_vector(self) -> None:
        self.write(record("r", at(1)))
        unusable: list[Any] = [[], [0.0] * 8, [math.nan] * 8, "12", [[1.0] * 8]]
        for vector in unusable:
            with self.assertRaises(InvalidVector):
                self.store.search(query(vector))
