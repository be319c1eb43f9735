"""Filters in a search: by type and to the letter, whatever the database thinks is equal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from prism_memory.exceptions import InvalidFilter
from prism_memory.filters import Filter
from prism_memory.models import Memory
from prism_memory.stores import DatabaseStore, Matches
from prism_memory.stores.table import Nominations, Search
from tests.searching import EXACT, at, ids, query, random_vectors, record, vectors_read

pytestmark = pytest.mark.django_db
STORE = DatabaseStore(candidates=16)

VALUES: list[Any] = [
    1, 1.5, True, False, 0, "1", "1.0", "True", "", "null", None, "alice", "Alice", "álice",
    "alice ", "😀", "🚀", "it's", 'a "b"', "100%", "a_b", "2026-01-01", 2**53, 2**53 + 1, 1e300, -7,
]  # fmt: skip
KEYS = [
    "k", "K", "", "a.b", "a__b", "a__contains", "contains", "exact", "isnull", "0", "a[0]", "$",
    "'", 'quo"te', "back\\slash", "%s", "{}", "é", "😀", "🚀", "pk", "id", "collection", "null",
    " k", "k ",
]  # fmt: skip


def found(**fields: Any) -> list[str]:
    """The ids that both strategies find, which have to be the same."""
    asked = query(limit=100, **fields)
    matches = STORE.search(asked)
    assert list(matches) == list(EXACT.search(asked))
    return sorted(ids(matches))


def equal(one: Any, other: Any) -> bool:
    """The rule of filters, said another way than the code says it."""
    numbers = [type(each) in (int, float) for each in (one, other)]
    return one == other if all(numbers) else type(one) is type(other) and one == other


def test_values_are_equal_by_type() -> None:
    STORE.upsert(record(f"{n:02}", at(0.5), metadata={"k": v}) for n, v in enumerate(VALUES))
    for wanted in [*VALUES, 1.0, 0.0, -0.0, float(2**53), 2.5, "alic"]:
        expected = [f"{n:02}" for n, held in enumerate(VALUES) if equal(wanted, held)]
        assert found(filter={"k": wanted}) == expected, wanted


def test_any_string_is_a_key_and_none_is_a_lookup() -> None:
    STORE.upsert(record(f"{n:02}", at(0.5), metadata={key: 1}) for n, key in enumerate(KEYS))
    for n, key in enumerate(KEYS):
        assert found(filter={key: 1}) == [f"{n:02}"], key
    assert found(filter={"k__in": [1]}) == []
    assert found(filter={"metadata": 1}) == []


def test_null_and_absent_stay_apart() -> None:
    STORE.upsert([record("null", at(1), metadata={"k": None, "source_page": None})])
    STORE.upsert([record("absent", at(1)), record("value", at(1), metadata={"k": 0})])
    assert found(filter={"k": None}) == ["null"]
    assert found(filter={"source_page": None}) == ["null"]
    assert found(filter={"k": [None, 0]}) == ["null", "value"]


def test_role_kind_and_name() -> None:
    STORE.upsert([record("u", at(1), role="user", kind="observation", name="Ana")])
    STORE.upsert([record("a", at(1), role="assistant", kind="summary", metadata={"k": 1})])
    STORE.upsert([record("none", at(1))])
    assert found(filter={"role": "user"}) == ["u"]
    assert found(filter={"role": ["user", "assistant"]}) == ["a", "u"]
    assert found(filter={"kind": "summary"}) == ["a"]
    assert found(filter={"name": "Ana"}) == ["u"]
    assert found(filter={"name": "ana"}) == []
    assert found(filter={"role": "assistant", "k": 1.0}) == ["a"]
    assert found(filter={"role": "user", "k": 1}) == []
    assert found(filter={"role": ""}) == found(filter={"role": None}) == []


def test_any_of_a_list_and_every_key() -> None:
    STORE.upsert(
        record(f"{a}{b}", at(0.5), metadata={"a": a, "b": b}) for a in range(3) for b in range(3)
    )
    assert found(filter={"a": [0, 2], "b": (1, 2)}) == ["01", "02", "21", "22"]
    assert found(filter={"a": {1}, "b": 1}) == ["11"]
    assert found(filter={"a": []}) == []
    assert len(found(filter={})) == len(found(filter=None)) == 9
    assert found(filter=Filter.of({"a": 0, "b": 0})) == ["00"]


def test_several_collections_share_a_filter() -> None:
    for name in ("a", "b"):
        STORE.upsert(record(f"{name}{n}", at(1), name, metadata={"n": n}) for n in range(3))
    assert found(collections=["a", "b"], filter={"n": 1}) == ["a1", "b1"]


def test_changed_attributes_are_found_at_once() -> None:
    STORE.upsert([record("r", at(1), metadata={"k": 1}), record("s", at(1), metadata={"k": 1})])
    STORE.upsert([record("r", metadata={"k": 2}, role="user")])
    assert found(filter={"k": 1}) == ["s"]
    assert found(filter={"k": 2, "role": "user"}) == ["r"]
    STORE.upsert([record("r", metadata={"k": True}, role="user")])
    assert found(filter={"k": 1}) == ["s"]
    assert found(filter={"k": True}) == ["r"]


def test_a_rare_value_among_many_fills_the_limit() -> None:
    """10 of 10,000 rows, and none of them near: both strategies find them all."""
    vectors = random_vectors(10_000)
    vectors[::1000] -= 5 * vectors[::1000, :1] * [1, *([0] * 7)]
    STORE.upsert(
        record(f"{n:05}", row, metadata={"rare": n % 1000 == 0}) for n, row in enumerate(vectors)
    )
    expected = [f"{n:05}" for n in range(0, 10_000, 1000)]
    assert found(filter={"rare": True}) == expected
    with vectors_read() as read:
        matches = STORE.search(query(limit=8, filter={"rare": True}))
    assert len(matches) == 8
    assert matches.rows_ranked == matches.vectors_scored == len(read) == 10
    assert len(STORE.search(query(limit=8, filter={"rare": False}))) == 8


@pytest.mark.parametrize("filter", [[], "k", {1: 1}, {"k": {}}, {"k": [[1]]}, {"k": float("nan")}])
def test_an_unusable_filter_is_refused_at_once(filter: object) -> None:
    for store in (STORE, EXACT):
        with pytest.raises(InvalidFilter):
            store.search(query(filter=filter))
        with pytest.raises(InvalidFilter):
            store.search(query(filter=filter, limit=0))


def test_a_driver_that_knows_no_filters_is_corrected() -> None:
    class Careless(DatabaseStore):
        def nominate(self, search: Search) -> Nominations:
            ranked = STORE.search(query(collections=[*search.collections.values(), "b"], limit=999))
            rows = dict(Memory.objects.values_list("record_id", "pk"))
            return Nominations(len(rows), [rows[each.id] for each in ranked] + [10**9])

    STORE.upsert(record(f"{n:02}", at(0.9 - n / 100), metadata={"n": n % 9}) for n in range(80))
    STORE.upsert([record("elsewhere", at(1), "b", metadata={"n": 4})])
    matches: Matches = Careless(candidates=4).search(query(limit=6, filter={"n": 4}))
    assert ids(matches) == ["04", "13", "22", "31", "40", "49"]


keys = st.sampled_from(["a", "b", "role", "name"])
scalars = st.sampled_from([None, True, 1, 1.0, "1", "user", ""])


class TestAgainstTheRule(TestCase):
    @given(
        st.lists(st.dictionaries(st.sampled_from("ab"), scalars), max_size=6),
        st.lists(st.sampled_from(["", "user", "1"]), min_size=6, max_size=6),
        st.dictionaries(keys, scalars | st.lists(scalars, max_size=3), max_size=2),
    )
    @settings(deadline=None, max_examples=40)
    def test_any_filter(self, rows: list[Any], roles: list[str], wanted: dict[str, Any]) -> None:
        STORE.upsert(
            record(f"{n}", at(0.5), metadata=row, role=roles[n]) for n, row in enumerate(rows)
        )
        expected = []
        for n, row in enumerate(rows):
            held = {**row, **({"role": roles[n]} if roles[n] else {})}
            for key, value in wanted.items():
                values = value if isinstance(value, list) else [value]
                if key not in held or not any(equal(each, held[key]) for each in values):
                    break
            else:
                expected.append(f"{n}")
        assert found(filter=wanted) == expected
