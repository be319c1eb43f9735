"""Filters in a search: what they cost, and any of them against the rule.

What they mean is tested by the suite for all stores.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from prism_memory.models import Memory
from prism_memory.stores import DatabaseStore, Matches
from prism_memory.stores.table import Nominations, Search
from prism_memory.testing.filters import equal
from tests.searching import EXACT, at, ids, query, random_vectors, record, vectors_read

pytestmark = pytest.mark.django_db
STORE = DatabaseStore(candidates=16)


def found(**fields: Any) -> list[str]:
    """The ids that both strategies find, which have to be the same."""
    asked = query(limit=100, **fields)
    matches = STORE.search(asked)
    assert list(matches) == list(EXACT.search(asked))
    return sorted(ids(matches))


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
