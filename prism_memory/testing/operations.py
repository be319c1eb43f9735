"""A thousand random operations, against a model made of dicts and the exact store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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

#: Runs from an empty store, and operations of each: a thousand.
RUNS, STEPS = 25, 40
PAST, FUTURE = datetime(2001, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)
COLLECTIONS = ["c", "C"]

collections = st.sampled_from(["c", "c", "c", "C"])
names = st.sampled_from([f"r{n}" for n in range(5)])
spaces = st.sampled_from(["one", "one", "one", "two"])
vectors = st.integers(-9, 9).map(lambda n: tuple(at(n / 10)))
contents = st.sampled_from(["some text", "another text"])
metadata = st.sampled_from([None, {}, {"k": 1}, {"k": True}, {"k": None, "l": "x"}])
moments = st.integers(0, 5).map(lambda n: NOON + timedelta(hours=n))
expiries = st.sampled_from([None, None, PAST, FUTURE])
attached = st.dictionaries(names, vectors, max_size=5)


class Operations(RuleBasedStateMachine):
    """Calls of a store whose answers the model knows."""

    case: ClassVar[StoreCase]

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.writes, self.store, self.exact = self.case.writes, self.case.store, self.case.exact
        for collection in COLLECTIONS:
            self.writes.purge(collection)

    @rule(
        collection=collections, name=names, content=contents, metadata=metadata,
        occurred_at=moments, expires_at=expiries, vector=vectors | st.none(), space=spaces,
    )  # fmt: skip
    def upsert(self, collection: str, name: str, vector: Any, space: str, **given: Any) -> None:
        if vector is not None:
            given.update(vector=vector, space=space)
        record = VectorRecord(collection=collection, id=name, **given)
        self.writes.upsert([record])
        self.model.upsert(record)

    @rule(collection=collections, given=attached, space=spaces)
    def attach(self, collection: str, given: dict[str, Any], space: str) -> None:
        expected = self.model.attach(collection, given, space)
        assert self.writes.attach(collection, given, space) == expected

    @rule(collection=collections, given=attached, space=spaces, content=contents)
    def compare_and_set(
        self, collection: str, given: dict[str, Any], space: str, content: str
    ) -> None:
        expected = self.model.attach(collection, given, space, content)
        texts = dict.fromkeys(given, content)
        assert self.writes.attach(collection, given, space, texts=texts) == expected

    @rule(collection=collections, given=st.lists(names, max_size=5))
    def forget(self, collection: str, given: list[str]) -> None:
        expected = self.model.drop((collection, name) for name in given)
        assert self.writes.forget(collection, given) == expected

    @rule(collection=collections)
    def purge(self, collection: str) -> None:
        expected = self.model.drop((collection, name) for name in self.model.of(collection))
        assert self.writes.purge(collection) == expected

    @rule(collection=collections, when=moments)
    def purge_occurred_before(self, collection: str, when: datetime) -> None:
        rows = self.model.of(collection).items()
        expected = self.model.drop(
            (collection, name) for name, row in rows if row.occurred_at < when
        )
        assert self.writes.purge_occurred_before(collection, when) == expected

    @rule(collection=st.none() | collections)
    def purge_expired(self, collection: str | None) -> None:
        expected = self.model.drop(
            key
            for key, row in list(self.model.rows.items())
            if not row.live and collection in (None, key[0])
        )
        assert self.writes.purge_expired(collection) == expected

    @rule(
        chosen=st.sampled_from([["c"], ["C"], ["c", "C"]]), vector=vectors,
        space=spaces, limit=st.integers(1, 6),
        filter=st.sampled_from([{}, {}, {"k": [1]}, {"k": [True, None]}]),
    )  # fmt: skip
    def search(self, chosen: list[str], vector: Any, space: str, limit: int, filter: Any) -> None:
        asked = query(vector, chosen, space=space, limit=limit, filter=filter)
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

    @invariant()
    def counts(self) -> None:
        for collection in COLLECTIONS:
            rows = self.model.of(collection)
            assert self.store.count(collection) == len(rows)
            embedded = sum(bool(row.vectors) for row in rows.values())
            assert self.store.count(collection, embedded_only=True) == embedded
            for space in (None, "one"):
                found = self.store.unembedded(collection, space=space)
                shown: list[Any] = [(each.occurred_at, each.id) for each in found]
                assert [moment for moment, _ in shown] == sorted(moment for moment, _ in shown)
                assert sorted(shown) == self.model.unembedded(collection, space)

    @invariant()
    def more(self) -> None:
        self.case.after_operation()


class OperationTests(StoreCase):
    def test_a_thousand_random_operations(self) -> None:
        machine = type("Operations", (Operations,), {"case": self})
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
