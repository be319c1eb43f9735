"""Filters: by type and to the letter, whatever a store's backend thinks is equal."""

from __future__ import annotations

from typing import Any

from ..exceptions import InvalidFilter
from ..filters import Filter
from .cases import StoreCase
from .records import at, query, record

__all__ = ["FilterTests"]

VALUES: list[Any] = [
    1, 1.5, True, False, 0, "1", "1.0", "True", "", "null", None, "alice", "Alice", "álice",
    "alice ", "😀", "🚀", "it's", 'a "b"', "100%", "a_b", "2026-01-01", 2**53, 2**53 + 1, 1e300, -7,
]  # fmt: skip
KEYS = [
    "k", "K", "", "a.b", "a__b", "a__contains", "contains", "exact", "isnull", "0", "a[0]", "$",
    "'", 'quo"te', "back\\slash", "%s", "{}", "é", "😀", "🚀", "pk", "id", "collection", "null",
    " k", "k ",
]  # fmt: skip


def equal(one: Any, other: Any) -> bool:
    """The rule of filters, said another way than the code says it."""
    numbers = [type(each) in (int, float) for each in (one, other)]
    return bool(one == other if all(numbers) else type(one) is type(other) and one == other)


class FilterTests(StoreCase):
    def test_values_are_equal_by_type(self) -> None:
        """``True``, 1 and "1" are three; 1 and 1.0 are one."""
        self.write(*(record(f"{n:02}", at(0.5), metadata={"k": v}) for n, v in enumerate(VALUES)))
        for wanted in [*VALUES, 1.0, 0.0, -0.0, float(2**53), 2.5, "alic"]:
            expected = [f"{n:02}" for n, held in enumerate(VALUES) if equal(wanted, held)]
            self.assertEqual(self.found(filter={"k": wanted}), expected, repr(wanted))

    def test_any_string_is_a_key_and_none_is_a_lookup(self) -> None:
        self.write(*(record(f"{n:02}", at(0.5), metadata={key: 1}) for n, key in enumerate(KEYS)))
        for n, key in enumerate(KEYS):
            self.assertEqual(self.found(filter={key: 1}), [f"{n:02}"], repr(key))
        self.assertEqual(self.found(filter={"k__in": [1]}), [])
        self.assertEqual(self.found(filter={"metadata": 1}), [])

    def test_null_and_absent_stay_apart(self) -> None:
        self.write(record("null", at(1), metadata={"k": None, "source_page": None}))
        self.write(record("absent", at(0.9)), record("value", at(0.8), metadata={"k": 0}))
        self.assertEqual(self.found(filter={"k": None}), ["null"])
        self.assertEqual(self.found(filter={"source_page": None}), ["null"])
        self.assertEqual(self.found(filter={"k": [None, 0]}), ["null", "value"])

    def test_role_kind_and_name_are_attributes_too(self) -> None:
        self.write(record("u", at(1), role="user", kind="observation", name="Ana"))
        self.write(record("a", at(0.9), role="assistant", kind="summary", metadata={"k": 1}))
        self.write(record("none", at(0.8)))
        for filter, expected in [
            ({"role": "user"}, ["u"]),
            ({"role": ["user", "assistant"]}, ["u", "a"]),
            ({"kind": "summary"}, ["a"]),
            ({"name": "Ana"}, ["u"]),
            ({"name": "ana"}, []),
            ({"role": "assistant", "k": 1.0}, ["a"]),
            ({"role": "user", "k": 1}, []),
            ({"role": ""}, []),
            ({"role": None}, []),
        ]:
            self.assertEqual(self.found(filter=filter), expected, filter)

    def test_any_of_a_list_and_every_key(self) -> None:
        pairs = [(a, b) for a in range(3) for b in range(3)]
        self.write(*(record(f"{a}{b}", at(0.5), metadata={"a": a, "b": b}) for a, b in pairs))
        for filter, expected in [
            ({"a": [0, 2], "b": (1, 2)}, ["01", "02", "21", "22"]),
            ({"a": {1}, "b": 1}, ["11"]),
            ({"a": []}, []),
            (Filter.of({"a": 0, "b": 0}), ["00"]),
        ]:
            self.assertEqual(self.found(filter=filter), expected, filter)
        self.assertEqual(len(self.found(filter={})), 9)
        self.assertEqual(len(self.found(filter=None)), 9)

    def test_several_collections_share_a_filter(self) -> None:
        for name in ("a", "b"):
            self.write(*(record(f"{name}{n}", at(1), name, metadata={"n": n}) for n in range(3)))
        self.assertEqual(self.found(collections=["a", "b"], filter={"n": 1}), ["a1", "b1"])

    def test_changed_attributes_are_seen_at_once(self) -> None:
        self.write(record("r", at(1), metadata={"k": 1}), record("s", at(1), metadata={"k": 1}))
        self.assertEqual(self.found(filter={"k": 1}), ["r", "s"])
        self.write(record("r", metadata={"k": 2}, role="user"))
        self.assertEqual(self.found(filter={"k": 1}), ["s"])
        self.assertEqual(self.found(filter={"k": 2, "role": "user"}), ["r"])
        self.write(record("r", metadata={"k": True}, role="user"))
        self.assertEqual(self.found(filter={"k": 1}), ["s"])
        self.assertEqual(self.found(filter={"k": True}), ["r"])

    def test_a_filter_counts_beside_a_floor_and_a_moment(self) -> None:
        for n in range(6):
            self.write(record(f"{n}", at(1 - n / 10), metadata={"even": n % 2 == 0}))
        self.assertEqual(self.found(filter={"even": True}, min_similarity=0.7), ["0", "2"])

    def test_an_unusable_filter_is_refused(self) -> None:
        self.write(record("r", at(1)))
        unusable: list[Any] = [[], "k", {1: 1}, {"k": {}}, {"k": [[1]]}, {"k": float("nan")}]
        for filter in unusable:
            for limit in (8, 0):
                with self.assertRaises(InvalidFilter, msg=repr(filter)):
                    self.store.search(query(filter=filter, limit=limit))
