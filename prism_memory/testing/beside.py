"""What stands beside a match in time, and finding records again by their keys."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from ..digests import digest
from ..stores import Matches, Neighbours, VectorMatch, VectorStore
from .cases import StoreCase, exactly
from .records import NOON, at, ids, query, record

__all__ = ["BesideTests", "LookUpTests"]

MINUTE = timedelta(minutes=1)
PAST = datetime(2001, 1, 1, tzinfo=UTC)


class BesideTests(StoreCase):
    """``neighbours()``; without ``has_neighbours``, that a store has none."""

    def _talk(self) -> dict[str, VectorMatch]:
        """Write seven records, a minute apart, and one elsewhere; return their matches by id."""
        for n in range(7):
            moment = NOON + n * MINUTE
            self.write(record(f"r{n}", at(0.9 - n / 10), occurred_at=moment, metadata={"n": n}))
        self.write(record("intruder", at(1), "d", occurred_at=NOON + 3 * MINUTE))
        return {match.id: match for match in self.search(limit=20)}

    def _beside(
        self,
        match: VectorMatch,
        known: Iterable[VectorMatch] = (),
        *,
        steps: int = 2,
        minutes: int = 30,
        most: int = 9,
        **asked: Any,
    ) -> list[tuple[str, int]]:
        """Return (id, step) of what stands beside, after checking all of the answer."""
        self.settle()
        known = list(known)
        found = self.store.neighbours(
            query(**asked),
            [match],
            known=known,
            steps=steps,
            within=minutes * MINUTE,
            most=most,
        )
        self.assertIsInstance(found, Neighbours)
        if not self.has_neighbours:
            self.assertIs(type(self.store).neighbours, VectorStore.neighbours)
            self.assertEqual(found, Neighbours())
            return []
        seen = {each.address for each in [*known, *found.found]}
        scores = {each.address: exactly(each) for each in self.search(limit=1000, **asked)}
        for each in found.found:
            self.assertEqual(exactly(each), scores[each.address])
        for one, other, _ in found.pairs:
            self.assertEqual(one, match.address)
            self.assertIn(other, seen)
        self.assertLessEqual(len(found.found), most)
        return sorted((other[1], step) for _, other, step in found.pairs)

    def _expect_beside(self, found: list[tuple[str, int]], **steps: int) -> None:
        self.assertEqual(found, sorted(steps.items()) if self.has_neighbours else [])

    def test_what_stands_up_to_some_steps_before_and_after(self) -> None:
        matches = self._talk()
        self._expect_beside(self._beside(matches["r3"]), r1=2, r2=1, r4=1, r5=2)
        self._expect_beside(self._beside(matches["r3"], steps=1), r2=1, r4=1)
        self._expect_beside(self._beside(matches["r0"]), r1=1, r2=2)
        self._expect_beside(self._beside(matches["r3"], minutes=1), r2=1, r4=1)

    def test_what_is_known_is_not_read_again_and_the_rest_is_bounded(self) -> None:
        matches = self._talk()
        known = [matches["r2"], matches["r4"]]
        self._expect_beside(self._beside(matches["r3"], known), r1=2, r2=1, r4=1, r5=2)
        self._expect_beside(self._beside(matches["r3"], known, most=0), r2=1, r4=1)
        nearest = [step for _, step in self._beside(matches["r3"], most=1)]
        self.assertEqual(nearest, [1] if self.has_neighbours else [])

    def test_of_one_moment_the_order_is_that_of_writing(self) -> None:
        for name in "ebdac":
            self.write(record(name, at(0.5)))
        matches = {match.id: match for match in self.search()}
        self._expect_beside(self._beside(matches["d"]), e=2, b=1, a=1, c=2)

    def test_all_that_binds_a_search_binds_neighbours(self) -> None:
        matches = self._talk()
        self._expect_beside(self._beside(matches["r3"], filter={"n": [1, 2]}), r1=2, r2=1)
        self._expect_beside(
            self._beside(matches["r3"], occurred_since=NOON + 2 * MINUTE), r4=1, r5=2
        )
        self.writes.forget("c", ["r2"])
        self.write(record("r4", expires_at=PAST))
        self._expect_beside(self._beside(matches["r3"]), r0=2, r1=1, r5=1, r6=2)
        elsewhere = query(space="empty@8")
        found = self.store.neighbours(
            elsewhere, [matches["r3"]], known=[], steps=2, within=MINUTE, most=9
        )
        self.assertEqual(found, Neighbours())


class LookUpTests(StoreCase):
    """``look_up()``; without ``has_look_up``, that nothing is ever found."""

    def _looked_up(self, *names: str, **asked: Any) -> list[str]:
        self.settle()
        found = self.store.look_up(query(**asked), [digest("record", "c", name) for name in names])
        self.assertIsInstance(found, Matches)
        if not self.has_look_up:
            self.assertIs(type(self.store).look_up, VectorStore.look_up)
        scores = {each.address: exactly(each) for each in self.search(limit=1000, **asked)}
        for match in found:
            self.assertEqual(exactly(match), scores[match.address])
        return sorted(ids(found))

    def _expect_looked_up(self, found: list[str], *names: str) -> None:
        self.assertEqual(found, list(names) if self.has_look_up else [])

    def test_records_are_found_again_by_their_keys(self) -> None:
        self.write(*(record(f"r{n}", at(n / 10)) for n in range(5)), record("a", at(1), "d"))
        self._expect_looked_up(self._looked_up("r3", "r1", "missing", "R1", "a"), "r1", "r3")
        self._expect_looked_up(self._looked_up(), *())

    def test_all_that_binds_a_search_binds_looking_up(self) -> None:
        self.write(*(record(f"r{n}", at(n / 10), metadata={"n": n}) for n in range(6)))
        self.write(record("r1", expires_at=PAST), record("r2", content="another text"))
        self.write(record("early", at(0.7), occurred_at=NOON - MINUTE, metadata={"n": 4}))
        self.writes.forget("c", ["r3"])
        names = ["r0", "r1", "r2", "r3", "r4", "early"]
        self._expect_looked_up(self._looked_up(*names), "early", "r0", "r4")
        self._expect_looked_up(self._looked_up(*names, filter={"n": 4}), "early", "r4")
        self._expect_looked_up(self._looked_up(*names, occurred_since=NOON - MINUTE), "r0", "r4")
