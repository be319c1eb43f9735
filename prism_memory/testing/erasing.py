"""Erasing for good, counting, and what waits for a vector."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.checks import CheckMessage

from ..exceptions import InvalidIdentifier
from .cases import StoreCase
from .records import NOON, SPACE, at, ids, record

__all__ = ["CountingTests", "ErasingTests"]

PAST = datetime(2001, 1, 1, tzinfo=UTC)
FUTURE = datetime(2999, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class ErasingTests(StoreCase):
    def test_forget_counts_what_there_was(self) -> None:
        self.write(*(record(f"r{n}", at(0.5)) for n in range(4)), record("r0", at(0.5), "d"))
        self.assertEqual(self.writes.forget("c", []), 0)
        self.assertEqual(self.writes.forget("c", ["r0", "r0", "missing", "R1"]), 1)
        self.assertEqual(self.writes.forget("c", ["r0"]), 0)
        self.assertEqual(self.writes.forget("missing", ["r1"]), 0)
        self.assertEqual(self.writes.forget("c", (id for id in ("r1", "r2"))), 2)
        self.assertEqual((self.store.count("c"), self.store.count("d")), (1, 1))
        self.assertEqual(self.found(collections=["c", "d"]), ["r0", "r3"])

    def test_forget_takes_a_list_of_ids_and_nothing_else(self) -> None:
        self.write(record("r"))
        unusable: list[Any] = ["r", None, [1], [None]]
        for given in unusable:
            with self.assertRaises(InvalidIdentifier):
                self.store.forget("c", given)
        self.assertEqual(self.store.count("c"), 1)

    def test_purge_takes_the_whole_collection_and_no_other(self) -> None:
        self.write(record("a", at(1)), record("b"), record("x", at(1), expires_at=PAST))
        self.write(record("a", at(0.5), "C"))
        self.assertEqual(self.writes.purge("c"), 3)
        self.assertEqual(self.writes.purge("c"), 0)
        self.assertEqual(self.found(collections=["c", "C"]), ["a"])

    def test_what_happened_strictly_before_a_moment_is_erased(self) -> None:
        for n in (-1, 0, 1):
            self.write(record(f"{n}", at(0.5), occurred_at=NOON + n * MICROSECOND))
        self.write(record("other", at(0.1), "d", occurred_at=PAST))
        self.assertEqual(self.writes.purge_occurred_before("c", NOON), 1)
        self.assertEqual(self.found(collections=["c", "d"]), ["0", "1", "other"])
        self.assertEqual(self.writes.purge_occurred_before("c", PAST), 0)

    def test_what_expired_is_erased_in_one_collection_or_in_all(self) -> None:
        for name in ("c", "d"):
            self.write(record("x", at(1), name, expires_at=PAST), record("y", at(1), name))
            self.write(record("z", at(1), name, expires_at=FUTURE))
        self.assertEqual(self.writes.purge_expired("c"), 1)
        self.assertEqual((self.store.count("c"), self.store.count("d")), (2, 3))
        self.assertEqual(self.writes.purge_expired(), 1)
        self.assertEqual(self.writes.purge_expired(), 0)
        self.assertEqual(self.found(collections=["c", "d"]), ["y", "y", "z", "z"])


class CountingTests(StoreCase):
    def test_expired_records_count_until_they_are_purged(self) -> None:
        self.write(record("a", at(1)), record("b"), record("x", at(1), expires_at=PAST))
        self.settle()
        self.assertEqual(self.store.count("c"), 3)
        self.assertEqual(self.store.count("c", embedded_only=True), 2)
        self.assertEqual(self.store.count("missing"), 0)

    def test_pending_counts_the_live_records_that_lack_a_vector(self) -> None:
        self.write(record("a", at(1)), record("b"), record("x", expires_at=PAST))
        self.settle()
        self.assertEqual(self.store.pending("c", SPACE), 1)
        self.assertEqual(self.store.pending("c", "another"), 2)
        self.assertEqual(self.store.pending("missing", SPACE), 0)

    def test_what_waits_comes_oldest_first(self) -> None:
        moments = {"z": -1_000_000, "b": 0, "y": 1, "a": 1_000_000}
        for name, n in reversed(moments.items()):
            self.write(record(name, occurred_at=NOON + n * MICROSECOND))
        self.write(record("x", expires_at=PAST), record("other", None, "d"))
        self.writes.attach("c", {"b": at(1)}, SPACE)
        self.assertEqual(ids(self.store.unembedded("c")), ["z", "y", "a"])
        self.assertEqual(ids(self.store.unembedded("c", space=SPACE)), ["z", "y", "a"])
        self.assertEqual(ids(self.store.unembedded("c", space="another")), list(moments))
        self.assertEqual(ids(self.store.unembedded("c", 2)), ["z", "y"])
        self.assertEqual(ids(self.store.unembedded("c", None, ids=["a", "b", "z"])), ["z", "a"])
        self.assertEqual(self.store.unembedded("c", 0), [])

    def test_what_waits_is_walked_through_once(self) -> None:
        names = [f"r{n}" for n in range(7)]
        self.write(*(record(name) for name in names))  # of one moment
        seen, last = [], None
        while batch := self.store.unembedded("c", 2, after=last):
            self.assertLessEqual(len(batch), 2)
            seen += ids(batch)
            last = batch[-1]
        self.assertEqual(sorted(seen), names)

    def test_what_waits_has_all_of_its_record(self) -> None:
        given = record(
            "r", metadata={"k": None}, role="user", name="Ana", kind="note", expires_at=FUTURE
        )
        self.write(given)
        self.assertEqual(self.store.unembedded("c"), [given])

    def test_check_does_no_io(self) -> None:
        with self.assertNumQueries(0):
            messages = self.store.check('PRISM_MEMORY["STORES"]["default"]')
        for message in messages:
            self.assertIsInstance(message, CheckMessage)

    def test_durability_is_told_truly(self) -> None:
        self.assertIs(self.store.durability, self.durability)
