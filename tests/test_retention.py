"""RETENTION: what happened that long ago is no longer recalled, and is pruned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import override_settings

from prism_memory.models import Memory
from prism_memory.timestamps import from_database, to_database

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def kept_for(seconds):
    return override_settings(
        PRISM_MEMORY={
            "EMBEDDER": {"BACKEND": "prism_memory.testing.FakeEmbedder"},
            "RETENTION": seconds,
        }
    )


@pytest.fixture
def memory():
    return Memory.objects.for_owner("ana").synchronously()


@pytest.fixture
def now():
    return datetime.now(UTC)


def expiry(memory) -> datetime | None:
    return from_database(memory.records().get().expires_at)


def recalled(memory) -> list[str]:
    return [found.content for found in memory.recall("one")]


def test_without_it_nothing_expires(memory):
    memory.remember("one", occurred_at="0001-01-02")
    assert expiry(memory) is None
    assert recalled(memory) == ["one"]


def test_counts_from_when_it_happened(memory, now):
    with kept_for(86400):
        memory.remember("one", occurred_at=now - DAY / 2)
        assert expiry(memory) == now + DAY / 2
        assert recalled(memory) == ["one"]


def test_of_a_fraction_of_a_second_is_exact(memory, now):
    with kept_for(0.25):
        memory.remember("one", occurred_at=now)
        assert expiry(memory) == now + timedelta(milliseconds=250)


def test_moves_with_a_later_time_and_with_nothing_else(memory, now):
    with kept_for(86400):
        memory.remember("one", occurred_at=now - DAY / 2)
        memory.remember("one")
        memory.remember("one", metadata={"k": 1}, occurred_at=now - DAY)
        assert expiry(memory) == now + DAY / 2
        memory.remember("one", occurred_at=now)
        assert expiry(memory) == now + DAY


def test_of_duplicates_in_one_call_counts_from_the_latest(memory, now):
    with kept_for(86400):
        memory.remember(["one"] * 3, occurred_at=[now - DAY / 2, now, now - DAY / 4])
        assert expiry(memory) == now + DAY


def test_what_is_too_old_already_is_stored_but_neither_embedded_nor_recalled(memory, now):
    with kept_for(86400):
        ids = memory.remember("one", occurred_at=now - 2 * DAY)
        assert len(ids) == 1
        assert (memory.count(), memory.pending()) == (1, 0)
        assert recalled(memory) == []
        assert not memory.records().embedded().exists()


def test_what_expired_is_no_longer_recalled(memory, now):
    with kept_for(86400):
        memory.remember(["one", "one more"], occurred_at=[now, now - DAY / 2])
        memory.records().filter(content="one").update(expires_at=to_database(now))
        assert recalled(memory) == ["one more"]
        assert memory.count() == 2


def test_holds_when_it_is_shortened_later(memory, now):
    memory.remember(["one", "one more"], occurred_at=[now, now - 2 * DAY])
    assert len(recalled(memory)) == 2
    with kept_for(86400):
        assert recalled(memory) == ["one"]
    with kept_for(3 * 86400):
        assert len(recalled(memory)) == 2


def test_leaves_expired_matches_out_of_the_limit(memory, now):
    memory.remember("one", occurred_at=now - DAY / 2)
    with kept_for(86400):
        memory.remember([f"one {n}" for n in range(20)], occurred_at=now - 2 * DAY)
        assert [found.content for found in memory.recall("one 7", limit=1)] == ["one"]


@pytest.mark.parametrize("seconds", [9_000_000_000, 10**9])
def test_of_centuries_is_no_problem(memory, now, seconds):
    with kept_for(seconds):
        memory.remember("one", occurred_at=now)
        assert recalled(memory) == ["one"]
        memory.remember("two", occurred_at="9999-12-30")  # would expire after the year 9999
        assert memory.records().get(content="two").expires_at is None
        assert sorted(recalled(memory)) == ["one", "two"]


@pytest.mark.parametrize("pruned", [True, False], ids=["pruned", "not pruned"])
def test_what_is_said_again_after_it_expired_is_new(memory, now, pruned):
    """Whether the expired row was pruned in between must make no difference."""
    with kept_for(86400):
        memory.remember("one", metadata={"k": 1}, occurred_at=now - 2 * DAY)
        if pruned:
            memory.records().expired().erase()
        memory.remember("one")
        assert recalled(memory) == ["one"]
        row = memory.records().get()
        assert row.metadata == {}
        assert from_database(row.occurred_at) >= now
        assert row.expires_at == row.occurred_at + DAY
        assert not memory.recall("one", filter={"k": 1})


def test_what_is_said_again_as_of_long_ago_stays_expired(memory, now):
    with kept_for(86400):
        memory.remember("one", occurred_at=now - 2 * DAY)
        before = memory.records().values().get()
        memory.remember("one", occurred_at=now - 2 * DAY)
        assert memory.records().values().get() == before
        assert recalled(memory) == []
