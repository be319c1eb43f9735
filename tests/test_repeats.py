"""A repeat is not an event: callers send the whole thread again with every turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_memory.models import Embedding, Memory, SignaturePage
from prism_memory.timestamps import from_database

pytestmark = pytest.mark.django_db

MARCH = datetime(2024, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
STEP = timedelta(microseconds=1)


def everything() -> dict[str, list[tuple]]:
    """All that is stored, to the byte."""
    return {
        model.__name__: [
            tuple(map(_plain, row)) for row in model.objects.order_by("pk").values_list()
        ]
        for model in (Memory, Embedding, SignaturePage)
    }


def _plain(value):
    return bytes(value) if isinstance(value, memoryview) else value


def row(memory) -> Memory:
    found = memory.records().get()
    found.occurred_at = from_database(found.occurred_at)
    return found


def times_of(memory) -> dict[str, datetime]:
    times = memory.records().values_list("content", "occurred_at")
    return {content: from_database(occurred_at) for content, occurred_at in times}


def order(memory) -> list[str]:
    return list(memory.records().order_by("occurred_at").values_list("content", flat=True))


def test_a_thread_that_grows_is_remembered_once(memory, embedder):
    thread: list[dict[str, str]] = []
    stored: dict[str, list[tuple]] = {"Memory": [], "Embedding": []}
    for turn in range(30):
        thread.append({"role": "user", "content": f"Question {turn}?"})
        thread.append({"role": "assistant", "content": f"Answer {turn}."})
        ids = memory.remember(thread)
        assert len(ids) == len(set(ids)) == len(thread)
        now = everything()
        for table, before in stored.items():
            assert now[table][: len(before)] == before
            assert len(now[table]) == len(thread)
            stored[table] = now[table]
    assert order(memory) == [message["content"] for message in thread]
    assert [text for call in embedder.calls for text in call] == order(memory)
    assert len(embedder.calls) == 30


def test_a_repeat_alone_changes_nothing_and_calls_nobody(memory, embedder):
    thread = ["one", "two", "one", {"role": "user", "content": "one"}]
    ids = memory.remember(thread, metadata={"k": 1}, occurred_at=MARCH)
    before = everything()
    embedder.calls.clear()
    assert memory.remember(thread) == ids
    assert memory.remember(thread[::-1]) == ids[::-1]
    assert everything() == before
    assert embedder.calls == []


def test_a_repeat_in_another_scope_is_a_memory_of_its_own(memory, user, embedder):
    other = Memory.objects.for_owner(user, "other").synchronously()
    memory.remember("one", occurred_at=MARCH)
    other.remember("one")
    assert row(memory).occurred_at == MARCH
    assert row(other).occurred_at > MARCH


class TestOccurredAt:
    def test_is_now_when_nothing_was_said_of_it(self, memory):
        before = datetime.now(UTC)
        memory.remember("one")
        assert before <= row(memory).occurred_at <= datetime.now(UTC)

    def test_of_the_messages_of_one_call_is_a_microsecond_apart(self, memory):
        memory.remember([f"message {number}" for number in range(20)])
        rows = list(memory.records().order_by("occurred_at"))
        assert [r.content for r in rows] == [f"message {number}" for number in range(20)]
        assert {b.occurred_at - a.occurred_at for a, b in pairwise(rows)} == {STEP}

    def test_as_given_counts_skipped_messages_in(self, memory):
        memory.remember(["one", {"role": "system", "content": "x"}, "two"], occurred_at=MARCH)
        times = times_of(memory)
        assert times == {"one": MARCH, "two": MARCH + 2 * STEP}

    def test_may_be_one_a_message(self, memory):
        when = [MARCH, None, MARCH - SECOND, "2024-03-01T13:00:00+01:00"]
        memory.remember(["one", "two", "three", "four"], occurred_at=when)
        times = times_of(memory)
        assert times["one"] == times["four"] == MARCH
        assert times["three"] == MARCH - SECOND
        assert datetime.now(UTC) - times["two"] < timedelta(minutes=5)

    def test_moves_forward_only(self, memory):
        memory.remember("one", occurred_at=MARCH)
        for when, expected in [
            (None, MARCH),
            (MARCH - SECOND, MARCH),
            (MARCH, MARCH),
            (MARCH + STEP, MARCH + STEP),
            ([None], MARCH + STEP),
            ([MARCH + SECOND], MARCH + SECOND),
        ]:
            memory.remember("one", occurred_at=when)
            assert row(memory).occurred_at == expected

    def test_of_duplicates_in_one_call_is_the_latest_given(self, memory):
        memory.remember(["one", "one", "one"], occurred_at=[MARCH, MARCH + SECOND, MARCH - SECOND])
        assert row(memory).occurred_at == MARCH + SECOND
        memory.remember(["one"] * 3, occurred_at=[MARCH + 2 * SECOND, MARCH + 3 * SECOND, None])
        assert row(memory).occurred_at == MARCH + 3 * SECOND

    def test_of_duplicates_without_one_is_that_of_the_first(self, memory):
        memory.remember(["one", "two", "one", "three"])
        assert order(memory) == ["one", "two", "three"]

    @given(times=st.lists(st.none() | st.integers(-(10**6), 10**6), min_size=1, max_size=6))
    def test_ends_as_the_latest_that_was_given_whatever_the_calls(self, times):
        memory = Memory.objects.for_owner("ana")
        memory.forget()
        moments = [None if time is None else MARCH + time * STEP for time in times]
        memory.remember("one", occurred_at=MARCH)
        memory.remember(["one"] * len(moments), occurred_at=moments)
        assert row(memory).occurred_at == max([MARCH, *(m for m in moments if m is not None)])

    def test_moving_leaves_all_else(self, memory, embedder):
        memory.remember("one", metadata={"k": 1}, occurred_at=MARCH)
        before, vectors = row(memory), everything()["Embedding"]
        memory.remember("one", occurred_at=MARCH + SECOND)
        after = row(memory)
        assert after.occurred_at == MARCH + SECOND
        assert (after.pk, after.created_at, after.metadata) == (
            *(before.pk, before.created_at, before.metadata),
        )
        assert everything()["Embedding"] == vectors
        assert len(embedder.calls) == 1


class TestMetadata:
    def test_that_is_given_replaces(self, memory):
        memory.remember("one", metadata={"k": 1, "l": 2})
        memory.remember("one", metadata=None)
        assert row(memory).metadata == {"k": 1, "l": 2}
        memory.remember("one", metadata={"m": 3})
        assert row(memory).metadata == {"m": 3}
        memory.remember("one", metadata={})
        assert row(memory).metadata == {}

    @pytest.mark.parametrize("first", [1, True, 1.0, "1", None])
    @pytest.mark.parametrize("second", [1, True, 1.0, "1", None])
    def test_that_python_takes_for_equal_replaces_too(self, memory, first, second):
        memory.remember("one", metadata={"k": first})
        memory.remember("one", metadata={"k": second})
        stored = row(memory).metadata["k"]
        assert (type(stored), stored) == (type(second), second)
        assert len(memory.recall("one", filter={"k": second})) == 1

    def test_that_replaces_is_what_filters_see(self, memory, embedder):
        memory.remember(["one", "two"], metadata={"k": "old"}, occurred_at=MARCH)
        vectors = Embedding.objects.order_by("memory").values_list("memory", "vector")
        before = list(vectors)
        memory.remember("one", metadata={"k": "new"})
        assert [m.content for m in memory.recall("one", filter={"k": "new"})] == ["one"]
        assert [m.content for m in memory.recall("one", filter={"k": "old"})] == ["two"]
        assert len(memory.recall("one")) == 2
        assert list(vectors.all()) == before
        assert len(embedder.calls) == 1
        assert times_of(memory)["one"] == MARCH

    def test_of_duplicates_in_one_call_is_the_same(self, memory):
        memory.remember(["one", "one"], metadata={"k": 1})
        assert row(memory).metadata == {"k": 1}
