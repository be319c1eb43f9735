"""Any sequence of calls, against a model made of dicts; and after each, the tables agree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import numpy as np
from django.test import TransactionTestCase
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from prism_memory import pages
from prism_memory.exceptions import SpaceMismatch
from prism_memory.models import Memory
from prism_memory.stores import DatabaseStore, VectorRecord
from prism_memory.stores.keys import record_key
from prism_memory.vectors import Vector, cosines
from tests.invariants import check_tables
from tests.searching import EXACT, at, query

START = datetime(2026, 1, 1, tzinfo=UTC)
PAST, FUTURE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)

collections = st.sampled_from(["c", "c", "c", "C"])
names = st.sampled_from([f"r{n}" for n in range(5)])
spaces = st.sampled_from(["one", "one", "one", "two"])
vectors = st.integers(-9, 9).map(lambda n: tuple(at(n / 10)))
contents = st.sampled_from(["some text", "another text"])
metadata = st.sampled_from([None, {}, {"k": 1}, {"k": True}, {"k": None, "l": "x"}])
hours = st.integers(0, 5)
moments = hours.map(lambda n: START + timedelta(hours=n))
expiries = st.sampled_from([None, None, PAST, FUTURE])


@dataclass
class Row:
    content: str
    metadata: dict[str, Any]
    occurred_at: datetime
    expires_at: datetime | None
    vectors: dict[str, tuple[float, ...]]

    @property
    def live(self) -> bool:
        return self.expires_at != PAST


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        Memory.objects.all().delete()
        self.store = DatabaseStore(candidates=4)
        self.rows: dict[tuple[str, str], Row] = {}

    def of(self, collection: str) -> dict[str, Row]:
        return {name: row for (held, name), row in self.rows.items() if held == collection}

    def drop(self, keys: list[tuple[str, str]]) -> int:
        for key in keys:
            del self.rows[key]
        return len(keys)

    @rule(
        collection=collections, name=names, content=contents, metadata=metadata,
        occurred_at=moments, expires_at=expiries, vector=vectors | st.none(), space=spaces,
    )  # fmt: skip
    def upsert(self, collection: str, name: str, **given: Any) -> None:
        vector, space = given.pop("vector"), given.pop("space")
        record = VectorRecord(collection=collection, id=name, **given)
        if vector is not None:
            record = replace(record, vector=vector, space=space)
        self.store.upsert([record])
        row = self.rows.setdefault(
            (collection, name), Row(given["content"], {}, given["occurred_at"], None, {})
        )
        if not row.live and given["expires_at"] != PAST:  # it was gone, so this is a new one
            row.metadata, row.occurred_at, row.expires_at = {}, given["occurred_at"], None
        if row.content != given["content"]:
            row.content, row.vectors = given["content"], {}
        if given["metadata"] is not None:
            row.metadata = given["metadata"]
        row.occurred_at = max(row.occurred_at, given["occurred_at"])
        row.expires_at = given["expires_at"] or row.expires_at
        if vector is not None:
            row.vectors[space] = vector

    @rule(collection=collections, given=st.dictionaries(names, vectors, max_size=5), space=spaces)
    def attach(self, collection: str, given: dict[str, tuple[float, ...]], space: str) -> None:
        held = self.of(collection)
        assert self.store.attach(collection, given, space) == len(held.keys() & given)
        for name in held.keys() & given:
            held[name].vectors[space] = given[name]

    @rule(
        collection=collections, given=st.dictionaries(names, vectors, max_size=5),
        space=spaces, content=contents,
    )  # fmt: skip
    def compare_and_set(
        self, collection: str, given: dict[str, Any], space: str, content: str
    ) -> None:
        held = self.of(collection)
        wanting = [
            name
            for name in given
            if name in held and held[name].content == content and space not in held[name].vectors
        ]
        texts = dict.fromkeys(given, content)
        assert self.store.attach(collection, given, space, texts=texts) == len(wanting)
        for name in wanting:
            held[name].vectors[space] = given[name]

    @rule(collection=collections, given=st.lists(names, max_size=5))
    def forget(self, collection: str, given: list[str]) -> None:
        gone = [(collection, name) for name in self.of(collection) if name in given]
        assert self.store.forget(collection, given) == self.drop(gone)

    @rule(collection=collections)
    def purge(self, collection: str) -> None:
        gone = [(collection, name) for name in self.of(collection)]
        assert self.store.purge(collection) == self.drop(gone)

    @rule(collection=collections, when=moments)
    def purge_occurred_before(self, collection: str, when: datetime) -> None:
        held = self.of(collection).items()
        gone = [(collection, name) for name, row in held if row.occurred_at < when]
        assert self.store.purge_occurred_before(collection, when) == self.drop(gone)

    @rule(collection=st.none() | collections)
    def purge_expired(self, collection: str | None) -> None:
        gone = [
            key for key, row in self.rows.items() if not row.live and collection in (None, key[0])
        ]
        assert self.store.purge_expired(collection) == self.drop(gone)

    @rule(
        chosen=st.sampled_from([["c"], ["C"], ["c", "C"]]), vector=vectors,
        space=spaces, limit=st.integers(1, 6),
        filter=st.sampled_from([{}, {}, {"k": 1}, {"k": [True, None]}]),
    )  # fmt: skip
    def search(self, chosen: list[str], vector: Any, space: str, limit: int, filter: Any) -> None:
        asked = query(vector, chosen, space=space, limit=limit, filter=filter)
        live = [(key, row) for key, row in self.rows.items() if row.live and key[0] in chosen]
        if any(row.vectors and space not in row.vectors for _, row in live):
            for store in (self.store, EXACT):
                try:
                    store.search(asked)
                except SpaceMismatch:
                    continue
                raise AssertionError("a search left out what another space holds")
            return
        wanted = filter.get("k", ...)
        wanted = wanted if isinstance(wanted, list) else [wanted]
        scores = []
        for (collection, name), row in live:
            value = row.metadata.get("k", "absent")
            if space in row.vectors and (not filter or any(value is each for each in wanted)):
                matrix = Vector.of(row.vectors[space]).values[np.newaxis]
                scores.append(
                    (-float(cosines(Vector.of(vector).values, matrix)[0]), name, collection)
                )
        expected = [
            (collection, name, -score) for score, name, collection in sorted(scores)[:limit]
        ]
        exact = EXACT.search(asked)
        assert [(each.collection, each.id, each.similarity) for each in exact] == expected
        # With more rows than candidates the ranking may miss some, but it invents nothing.
        found = self.store.search(asked)
        assert len(found) == len(expected)
        assert found.vectors_scored <= max(self.store.candidates, limit)
        if found.rows_ranked <= max(self.store.candidates, limit):
            assert list(found) == list(exact)

    @invariant()
    def counts(self) -> None:
        for collection in ("c", "C"):
            held = self.of(collection)
            assert self.store.count(collection) == len(held)
            embedded = sum(bool(row.vectors) for row in held.values())
            assert self.store.count(collection, embedded_only=True) == embedded
            for space in (None, "one"):
                waiting = [
                    (row.occurred_at, record_key(collection, name), name)
                    for name, row in held.items()
                    if row.live and not (row.vectors if space is None else space in row.vectors)
                ]
                found = self.store.unembedded(collection, space=space)
                assert [each.id for each in found] == [name for *_, name in sorted(waiting)]

    @invariant()
    def tables(self) -> None:
        check_tables()


class TestAnySequence(TransactionTestCase):
    # Small pages, so that they are merged, split and emptied within a run.
    @mock.patch.multiple(pages, PAGE_SIZE=4, SMALL_PAGES=2)
    def test_of_calls(self) -> None:
        run_state_machine_as_test(
            StoreMachine,
            settings=settings(
                max_examples=20, stateful_step_count=40, deadline=None, derandomize=True
            ),
        )
