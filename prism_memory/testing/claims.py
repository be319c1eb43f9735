"""How workers share what waits for a vector."""

from __future__ import annotations

from collections.abc import Iterable

from ..stores.contract import VectorStore, Waiting
from ..vectors import Vector
from .cases import StoreCase
from .records import SPACE, at, record

__all__ = ["ClaimTests"]


class ClaimTests(StoreCase):
    """``claim()`` and its kin; without ``has_claims``, that a store keeps the defaults."""

    def setUp(self) -> None:
        super().setUp()
        if not self.has_claims:
            for name in ("claim", "release", "in_work", "postpone"):
                self.assertIs(getattr(type(self.store), name), getattr(VectorStore, name))

    def _claimed(self, limit: int = 9) -> list[str]:
        return _names(self.store.claim("c", limit, space=SPACE, seconds=600))

    def test_what_waits_has_an_id_and_the_text_to_embed(self) -> None:
        self.write(record("a"), record("b", name="Ana"), record("has", at(1)))
        for found in (
            self.store.waiting("c", 9, space=SPACE),
            self.store.claim("c", 9, space=SPACE, seconds=0),
        ):
            texts = {each.id: each.embedded_text for each in found}
            self.assertEqual(texts, {"a": "content of a", "b": "Ana: content of b"})
        self.assertEqual(_names(self.store.waiting("c", 9, space=SPACE, ids=["b"])), ["b"])

    def test_what_waited_gets_its_vector_unless_its_text_changed(self) -> None:
        self.write(*(record(name) for name in ("same", "changed", "gone", "has")))
        waiting = self.store.claim("c", 9, space=SPACE, seconds=600)
        self.assertEqual(_names(waiting), ["changed", "gone", "has", "same"])
        self.write(record("changed", content="another text"), record("has", at(0.1)))
        self.writes.forget("c", ["gone"])
        pairs = [(each, Vector.of(at(1))) for each in waiting]
        self.assertEqual(self.store.attach_waiting("c", pairs, SPACE), 1)
        if self.keeps_records:  # the oracle claimed nothing
            self.exact.attach("c", {"same": at(1)}, SPACE)
        self.assertEqual(self.found(), ["same", "has"])

    def test_nothing_is_claimed_twice_until_it_is_given_back(self) -> None:
        self.write(*(record(f"r{n}") for n in range(5)))
        first = self._claimed(2)
        self.assertEqual(len(first), 2)
        rest = sorted({f"r{n}" for n in range(5)} - set(first))
        self.assertEqual(self._claimed(), rest if self.has_claims else sorted([*first, *rest]))
        if self.has_claims:
            self.assertEqual(self._claimed(), [])
            self.assertTrue(self.store.in_work("c", space=SPACE))
            self.assertEqual(self.store.pending("c", SPACE), 5)
        self.store.release("c", first)
        self.assertEqual(self._claimed(2), first)

    def test_what_failed_is_left_for_later_and_not_in_work(self) -> None:
        self.write(record("good"), record("bad"), record("reworded"))
        texts = {"bad": "content of bad", "reworded": "content of reworded"}
        self.write(record("reworded", content="another text"))
        self.store.postpone("c", dict.fromkeys(texts, "too long"), texts=texts)
        due = ["good", "reworded"] if self.has_claims else ["bad", "good", "reworded"]
        self.assertEqual(self._claimed(), due)
        self.assertEqual(self.store.pending("c", SPACE), 3)
        self.store.attach("c", {"good": at(1), "reworded": at(1)}, SPACE)
        self.assertFalse(self.store.in_work("c", space=SPACE))
        self.write(record("bad", content="a shorter text"))  # has not failed yet
        self.assertEqual(self._claimed(), ["bad"])


def _names(waiting: Iterable[Waiting]) -> list[str]:
    return sorted(each.id for each in waiting)
