"""Transactions that start by writing, and lists of keys that every database takes."""

from __future__ import annotations

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from prism_memory.models import Memory
from prism_memory.transactions import BATCH, id_batches, write_transaction


@pytest.mark.django_db
def test_a_transaction_takes_the_write_lock_first_where_reading_first_would_fail():
    with CaptureQueriesContext(connection) as queries, write_transaction("default"):
        Memory.objects.exists()
    statements = [q["sql"].split()[0] for q in queries if "SAVEPOINT" not in q["sql"]]
    if connection.vendor == "sqlite":
        assert statements == ["UPDATE", "SELECT"]
    else:
        assert statements == ["SELECT"]


@pytest.mark.django_db(transaction=True)
def test_what_raises_inside_is_rolled_back():
    def fail():
        with write_transaction("default"):
            Memory.objects.create(collection="c", record_id="h", content="x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not Memory.objects.exists()
    assert not transaction.get_connection().in_atomic_block


@given(count=st.integers(0, 200), limit=st.none() | st.integers(1, 40))
def test_batches_are_all_keys_in_order(count, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(connections["default"].features), "max_query_params", limit)
        batches = list(id_batches("default", list(range(count))))
    assert [key for batch in batches for key in batch] == list(range(count))
    assert all(0 < len(batch) <= max(1, (limit or BATCH) - 16) for batch in batches)
