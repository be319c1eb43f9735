"""Fixtures that most tests share."""

from __future__ import annotations

import os

import pytest
from django.core.cache import cache
from hypothesis import settings

from prism_memory import backends
from prism_memory.models import Memory

# No test is timed: a busy machine is no defect. CI tries the same examples every time.
settings.register_profile("untimed", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("untimed")

#: Tests that need a service are there when a variable names it, and then they never skip.
SERVICES = {
    "milvus": "PRISM_TEST_MILVUS",
    "pgvector": "PRISM_TEST_PGVECTOR",
    "redis": "PRISM_TEST_REDIS",
}
collect_ignore = [folder for folder, name in SERVICES.items() if name not in os.environ]


@pytest.fixture
def embedder():
    """The process's FakeEmbedder, with nothing recorded and no query cached yet."""
    cache.clear()
    fake = backends.embedder()
    fake.calls.clear()
    fake.failure = None
    yield fake
    fake.failure = None


@pytest.fixture
def user(db, django_user_model):
    return django_user_model.objects.create_user("ana")


@pytest.fixture
def memory(user, embedder):
    """The handle of a user, embedding at once: what it remembers can be recalled."""
    return Memory.objects.for_owner(user).synchronously()
