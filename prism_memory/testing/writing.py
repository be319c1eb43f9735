"""Writing: idempotent, all or none, and to the letter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ..exceptions import InvalidMetadata, InvalidVector
from ..stores import VectorRecord
from .cases import StoreCase
from .records import NOON, SPACE, at, record

__all__ = ["WritingTests"]

PAST = datetime(2001, 1, 1, tzinfo=UTC)
FUTURE = datetime(2999, 1, 1, tzinfo=UTC)
#: Different to the letter, and the same to some database or other.
NAMES = [
    "alice",
    "Alice",
    "álice",
    "alice ",
    " alice",
    "a\u0301lice",
    "😀",
    "🚀",
    "h-1",
    "H-1",
    "1",
]
NAMES += ["x" * 254 + "a", "x" * 254 + "b"]


class WritingTests(StoreCase):
    def _metadata(self) -> dict[str, object]:
        """The metadata of all that is found, by id."""
        return {match.id: match.metadata for match in self.search(limit=100)}

    def test_a_repeat_changes_nothing(self) -> None:
        given = record("r", at(1), metadata={"k": 1}, role="user", name="Ana")
        self.write(given)
        before = list(self.search())
        self.write(given)
        self.write(replace(given, vector=None, space=None))
        self.write(VectorRecord(**{name: getattr(given, name) for name in TEXTS}))
        self.assertEqual(list(self.search()), before)
        self.assertEqual(self.store.count("c"), 1)

    def test_what_is_left_out_stays_and_what_is_given_replaces(self) -> None:
        self.write(record("r", at(1), metadata={"k": 1, "l": 2}))
        self.write(record("r", metadata=None, occurred_at=None))
        self.assertEqual(self._metadata(), {"r": {"k": 1, "l": 2}})
        self.write(record("r", metadata={"k": None}))
        self.assertEqual(self._metadata(), {"r": {"k": None}})
        self.write(record("r", metadata={}))
        self.assertEqual(self._metadata(), {"r": {}})

    def test_only_a_later_time_moves_a_record(self) -> None:
        step = timedelta(microseconds=1)
        self.write(record("r", at(1)))
        for given, expected in [(-1, 0), (1, 1), (0, 1)]:
            self.write(record("r", occurred_at=NOON + given * step))
            self.assertEqual(self.search()[0].occurred_at, NOON + expected * step)

    def test_a_record_without_a_time_happened_when_it_was_stored(self) -> None:
        before = datetime.now(UTC)
        self.store.upsert([record("r", at(1), occurred_at=None)])
        self.settle()
        [waiting] = self.store.unembedded("c", space="another")
        assert waiting.occurred_at is not None
        self.assertLessEqual(before, waiting.occurred_at)
        self.assertLessEqual(waiting.occurred_at, datetime.now(UTC) + timedelta(seconds=1))

    def test_a_changed_text_or_name_loses_its_vectors(self) -> None:
        self.write(record("text", at(1)), record("name", at(0.9)), record("role", at(0.8)))
        self.write(record("text", content="another text"), record("name", name="Ana"))
        self.write(record("role", role="user"))  # is no part of what is embedded
        self.assertEqual(self.found(), ["role"])
        self.assertEqual({each.id for each in self.store.unembedded("c")}, {"text", "name"})
        self.assertEqual(self.store.count("c", embedded_only=True), 1)
        self.write(record("text", at(0.5), content="a third text"))
        self.assertEqual(self.found(), ["role", "text"])

    def test_of_a_record_given_twice_the_last_text_is_stored(self) -> None:
        self.write(record("r", at(1), content="one"), record("r", content="two"))
        self.assertEqual(self.found(), [])
        self.assertEqual([each.content for each in self.store.unembedded("c")], ["two"])

    def test_all_is_written_or_none(self) -> None:
        self.write(record("old", at(1)))
        nested = record("bad", metadata={"k": {"nested": 1}})
        with self.assertRaises(InvalidMetadata):
            self.store.upsert([record("a", at(1)), nested, record("b")])
        with self.assertRaises(InvalidVector):
            self.store.upsert([record("a", at(1)), record("b", [float("nan")] * 8)])
        self.assertEqual(self.store.count("c"), 1)
        self.assertEqual(self.found(), ["old"])

    def test_any_iterable_of_records_is_taken(self) -> None:
        self.store.upsert(iter([]))
        self.writes.upsert(record(f"r{n}", at(0.5)) for n in range(3))
        self.assertEqual(self.found(), ["r0", "r1", "r2"])

    def test_ids_are_told_apart_to_the_letter(self) -> None:
        self.write(*(record(name, at(1 - n / 20)) for n, name in enumerate(NAMES)))
        self.assertEqual(self.found(), NAMES)
        for name in NAMES:
            self.assertEqual(self.writes.forget("c", [name]), 1)
            self.assertNotIn(name, self.found())

    def test_collections_are_told_apart_to_the_letter(self) -> None:
        self.write(*(record("r", at(1), name) for name in NAMES))
        for name in NAMES:
            self.assertEqual([m.collection for m in self.search(collections=[name])], [name])
            self.assertEqual(self.store.count(name), 1)
        self.assertEqual(len(self.search(collections=NAMES, limit=100)), len(NAMES))
        self.assertEqual(self.writes.purge("alice"), 1)
        self.assertEqual(len(self.search(collections=NAMES, limit=100)), len(NAMES) - 1)

    def test_said_again_after_it_expired_it_is_new(self) -> None:
        self.write(record("r", at(1), metadata={"k": 1}, expires_at=PAST))
        self.write(record("r", at(1), metadata=None, occurred_at=NOON - timedelta(hours=1)))
        [match] = self.search()
        self.assertEqual(match.metadata, {})
        self.assertEqual(match.occurred_at, NOON - timedelta(hours=1))

    def test_a_retention_counts_from_the_time_that_a_record_ends_up_with(self) -> None:
        hour = timedelta(hours=1)
        self.write(record("r", retention=hour), record("s", retention=hour, expires_at=FUTURE))

        def expiry() -> dict[str, datetime | None]:
            return {each.id: each.expires_at for each in self.store.unembedded("c", space="any")}

        self.assertEqual(expiry(), {"s": FUTURE}, "what is past its retention is live")
        later = FUTURE - 2 * hour
        self.write(record("r", occurred_at=later, retention=hour))
        self.assertEqual(expiry(), {"r": later + hour, "s": FUTURE})
        self.write(record("r", retention=hour), record("s", occurred_at=later, retention=hour))
        self.assertEqual(expiry(), {"r": later + hour, "s": later + hour})

    def test_attach_gives_existing_records_their_vectors_and_never_creates(self) -> None:
        self.write(record("a"), record("b"))
        given = {"a": at(1), "b": at(0.5), "missing": at(0)}
        for _ in range(2):
            self.assertEqual(self.writes.attach("c", given, SPACE), 2)
        self.assertEqual(self.writes.attach("d", given, SPACE), 0)
        self.assertEqual(self.writes.attach("c", {}, SPACE), 0)
        self.assertEqual((self.store.count("c"), self.store.count("d")), (2, 0))
        self.assertEqual(self.found(), ["a", "b"])

    def test_attach_replaces_a_vector(self) -> None:
        self.write(record("a", at(1)), record("b", at(0.5)))
        self.assertEqual(self.found(), ["a", "b"])
        self.writes.attach("c", {"a": at(0.1)}, SPACE)
        self.assertEqual(self.found(), ["b", "a"])

    def test_attach_compares_the_text_and_sets_only_what_lacks_a_vector(self) -> None:
        self.write(record("a", at(0.9)), record("b"), record("c", name="Ana"), record("gone"))
        self.writes.forget("c", ["gone"])
        texts = {"a": "content of a", "b": "outdated", "c": "Ana: content of c", "gone": "x"}
        given = dict.fromkeys(texts, at(0.5))
        self.assertEqual(self.writes.attach("c", given, SPACE, texts=texts), 1)
        self.assertEqual(self.found(), ["a", "c"])
        self.assertAlmostEqual(self.search()[0].similarity, 0.9)
        self.assertEqual(self.store.count("c"), 3)


TEXTS = ("collection", "id", "content", "role", "name")
