"""``USE_TZ = False``: columns hold local time, and calling code gets moments all the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from prism_memory import CONVERSATION
from prism_memory.models import Memory

pytestmark = pytest.mark.django_db

EMBEDDER = {"BACKEND": "prism_memory.testing.FakeEmbedder"}
SAID = datetime(2024, 3, 1, 23, 45, 0, 123456, tzinfo=UTC)
STEP = timedelta(microseconds=1)


@pytest.fixture(params=["Asia/Kathmandu", "America/New_York", "UTC"])
def zone(request):
    with override_settings(USE_TZ=False, TIME_ZONE=request.param):
        yield request.param


@pytest.fixture
def memory(zone, embedder):
    return Memory.objects.for_owner("ana").synchronously()


def contents(found) -> list[str]:
    return [each.content for each in found]


def test_a_moment_comes_back_to_the_microsecond(memory):
    memory.remember("a cat", occurred_at=SAID)
    [found] = memory.recall("cat")
    assert found.occurred_at == SAID
    assert found.occurred_at.tzinfo is UTC
    assert "2024-03-01" in memory.recall("cat", budget=200).as_context()


def test_what_is_said_without_a_time_happened_now(memory):
    memory.remember("a cat")
    [found] = memory.recall("cat")
    assert abs(found.occurred_at - datetime.now(UTC)) < timedelta(minutes=5)


def test_the_order_is_that_of_the_list(memory):
    memory.remember([f"cat {n}" for n in range(9)], occurred_at=SAID)
    found = sorted(memory.recall("cat", limit=9), key=lambda each: each.occurred_at)
    assert contents(found) == [f"cat {n}" for n in range(9)]
    assert len(memory.recall("cat", limit=1, weighting=CONVERSATION)) == 1


def test_forgetting_is_strict_to_the_microsecond(memory):
    memory.remember(["before", "at", "after"], occurred_at=[SAID - STEP, SAID, SAID + STEP])
    assert memory.forget_before(SAID) == 1
    # A time without a zone is one of the settings' zone.
    local = SAID.astimezone(timezone.get_default_timezone()).replace(tzinfo=None)
    assert memory.forget_before(local + STEP) == 1
    assert contents(memory.recall("after")) == ["after"]


def test_expiry(memory, zone):
    now = datetime.now(UTC)
    given = {"EMBEDDER": EMBEDDER, "RETENTION": 3600.0}
    with override_settings(PRISM_MEMORY=given):
        memory = Memory.objects.for_owner("ana").synchronously()
        memory.remember(["a cat", "an old cat"], occurred_at=[now, now - timedelta(minutes=61)])
        assert contents(memory.recall("cat")) == ["a cat"]
        # In Kathmandu half an hour before the calendar ends.
        memory.remember("a last cat", occurred_at="9999-12-31T17:45Z")
        assert len(memory.recall("cat")) == 2
        assert Memory.objects.expired().erase() == 1


def test_columns_hold_local_time(memory, zone):
    memory.remember("a cat", occurred_at=SAID)
    stored = Memory.objects.get().occurred_at
    assert stored == SAID.astimezone(timezone.get_default_timezone()).replace(tzinfo=None)
    assert connection.timezone is None
