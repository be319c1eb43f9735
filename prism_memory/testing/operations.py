"""A thousand random operations, against a model made of dicts and the exact store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, ClassVar

from ..exceptions import SpaceMismatch
from ..stores import VectorRecord
from .cases import StoreCase, exactly
from .model import Model
from .records import NOON, at, query

try:
    from hypothesis import HealthCheck, settings
    from hypothesis import strategies as st
    from hypothesis.stateful import (
        RuleBasedStateMachine,
        invariant,
        rule,
        run_state_machine_as_test,
    )
except ImportError as error:
    raise ImportError(
        "The conformance suite needs hypothesis: pip install 'prism-memory-django[testing]'."
    ) from error

__all__ = ["OperationTests"]

#: Runs from empty collections, and operations of each: a thousand.
RUNS, STEPS = 25, 40
PAST, FUTURE = datetime(2001, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)

collections = st.sampled_from(["c", "c", "c", "C"])
names = st.sampled_from([f"r{n}" for n in range(5)])
spaces = st.sampled_from(["one", "one", "one", "two"])
vectors = st.integers(-9, 9).map(lambda n: tuple(at(n / 10)))
contents = st.sampled_from(["some text", "another text"])
metadata = st.sampled_from([None, {}, {"k": 1}, {"k": True}, {"k": None, "l": "x"}])
moments = st.integers(0, 5).map(lambda n: NOON + timedelta(hours=n))
expiries = st.sampled_from([None, None, PAST, FUTURE])
attached = st.dictionaries(names, vectors, max_size=5)
written = st.fixed_dictionaries(
    {
        "id": names, "content": contents, "metadata": metadata,
        "occurred_at": moments, "expires_at": expiries,
    }
)  # fmt: skip


class Operations(RuleBasedStateMachine):
    """Calls of a store whose answers the model knows."""

    case: ClassVar[StoreCase]
    #: Every run has collections of its own, so that what one leaves behind spoils no other.
    run: ClassVar[Iterator[int]]

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.writes, self.store, self.exact = self.case.writes, self.case.store, self.case.exact
        run = next(self.run)
        self.names = {"c": f"c{run}", "C": f"C{run}"}

    @rule(
        collection=collections, given=st.lists(written, min_size=1, max_size=3),
        vector=vectors | st.none(), space=spaces,
    )  # fmt: skip
    def upsert(self, collection: str, given: list[dict[str, Any]], vector: Any, space: str) -> None:
        embedded = {} if vector is None else {"vector": vector, "space": space}
        name = self.names[collection]
        records = [VectorRecord(collection=name, **each, **embedded) for each in given]
        self.writes.upsert(records)
        for record in records:
            self.model.upsert(record)

    @rule(collection=collections, given=attached, space=spaces)
    def attach(self, collection: str, given: dict[str, Any], space: str) -> None:
        name = self.names[collection]
        expected = self.model.attach(name, given, space)
        assert self.writes.attach(name, given, space) == expected

    @rule(collection=collections, given=attached, space=spaces, content=contents)
    def compare_and_set(
        self, collection: str, given: dict[str, Any], space: str, content: str
    ) -> None:
        name, texts = self.names[collection], dict.fromkeys(given, content)
        expected = self.model.attach(name, given, space, content)
        assert self.writes.attach(name, given, space, texts=texts) == expected

    @rule(collection=collections, given=st.lists(names, max_size=3))
    def forget(self, collection: str, given: list[str]) -> None:
        name = self.names[collection]
        expected = self.model.drop(name, lambda id, row: id in given)
        assert self.writes.forget(name, given) == expected

    @rule(way=st.sampled_from(["all", "before", "expired"]), collection=collections, when=moments)
    def purge(self, way: str, collection: str, when: datetime) -> None:
        name = self.names[collection]
        if way == "all":
            expected = self.model.drop(name, lambda id, row: True)
            assert self.writes.purge(name) == expected
        elif way == "before":
            expected = self.model.drop(name, lambda id, row: row.occurred_at < when)
            assert self.writes.purge_occurred_before(name, when) == expected
        else:
            expected = self.model.drop(name, lambda id, row: not row.live)
            assert self.writes.purge_expired(name) == expected

    @rule()
    def purge_expired_everywhere(self) -> None:
        drop = self.model.drop
        expected = sum(drop(name, lambda id, row: not row.live) for name in self.names.values())
        assert self.writes.purge_expired() == expected

    @rule(
        chosen=st.sampled_from(["c", "C", "cC"]), vector=vectors,
        space=spaces, limit=st.integers(1, 6),
    )  # fmt: skip
    def search(self, chosen: str, vector: Any, space: str, limit: int, filter: Any = None) -> None:
        searched = [self.names[each] for each in chosen]
        asked = query(vector, searched, space=space, limit=limit, filter=filter or {})
        self.case.settle()
        if self.model.mismatch(asked):
            for store in (self.store, self.exact):
                try:
                    store.search(asked)
                except SpaceMismatch:
                    continue
                raise AssertionError("a search left out what another space holds")
            return
        exact = self.exact.search(asked)
        shown = [(match.collection, match.id, match.similarity.hex()) for match in exact]
        assert shown == self.model.search(asked)
        # With more rows than candidates the ranking may miss some, but it invents nothing.
        found = self.case.searched(asked)
        assert len(found) == len(exact)
        if len(self.model.rows) <= max(self.store.candidates, limit):
            assert list(map(exactly, found)) == list(map(exactly, exact))

    @rule(
        vector=vectors, space=spaces,
        filter=st.sampled_from([{"k": [1]}, {"k": [True, None]}, {"k": [None], "l": ["x"]}]),
    )  # fmt: skip
    def search_with_filter(self, vector: Any, space: str, filter: Any) -> None:
        self.search("cC", vector, space, 10, filter)

    @invariant()
    def counts(self) -> None:
        for name in self.names.values():
            rows = self.model.of(name)
            assert self.store.count(name) == len(rows)
            embedded = sum(bool(row.vectors) for row in rows.values())
            assert self.store.count(name, embedded_only=True) == embedded
            for space in (None, "one"):
                found = self.store.unembedded(name, space=space)
                shown: list[Any] = [(each.occurred_at, each.id) for each in found]
                assert [moment for moment, _ in shown] == sorted(moment for moment, _ in shown)
                assert sorted(shown) == self.model.unembedded(name, space)

    @invariant()
    def more(self) -> None:
        self.case.after_operation()

    def teardown(self) -> None:
        for name in self.names.values():
            assert self.writes.purge(name) == len(self.model.of(name))


class OperationTests(StoreCase):
    def test_a_thousand_random_operations(self) -> None:
        machine = type("Operations", (Operations,), {"case": self, "run": count()})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=RUNS,
                stateful_step_count=STEPS,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
