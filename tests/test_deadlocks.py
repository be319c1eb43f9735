"""A transaction that met a deadlock is done anew, whichever driver says so."""

from __future__ import annotations

import re

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from prism_memory import transactions
from prism_memory.models import Memory
from prism_memory.transactions import repeated

pytestmark = pytest.mark.django_db(transaction=True)


class Cause(Exception):
    """What a database's driver raised."""


def failing(times, cause, *arguments):
    """Work that fails so many times before it succeeds, and how often it was begun."""
    begun = []

    def work():
        begun.append(1)
        if len(begun) <= times:
            raise OperationalError(*arguments) from cause
        return "done"

    return work, begun


def cause(**attributes):
    found = Cause()
    for name, value in attributes.items():
        setattr(found, name, value)
    return found


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    monkeypatch.setattr(transactions, "FIRST_WAIT", 0)


@pytest.mark.parametrize(
    ("raised", "arguments"),
    [
        (cause(sqlstate="40P01"), ["deadlock detected"]),  # psycopg
        (cause(pgcode="40P01"), ["deadlock detected"]),  # psycopg2
        (cause(), [1213, "Deadlock found"]),  # mysqlclient
    ],
    ids=["psycopg", "psycopg2", "mysqlclient"],
)
def test_a_victim_begins_anew(raised, arguments):
    work, begun = failing(3, raised, *arguments)
    assert repeated("default", work) == "done"
    assert len(begun) == 4


def test_another_error_is_raised_at_once():
    work, begun = failing(1, cause(sqlstate="57014"), "cancelled")
    with pytest.raises(OperationalError):
        repeated("default", work)
    assert len(begun) == 1


def test_in_a_transaction_of_the_caller_nothing_is_repeated():
    work, begun = failing(1, cause(sqlstate="40P01"), "deadlock detected")
    with transaction.atomic(), pytest.raises(OperationalError):
        repeated("default", work)
    assert len(begun) == 1


@pytest.mark.django_db
def test_memories_are_not_locked_in_the_order_of_an_index(memory):
    """Where statistics are stale, a database would read a whole collection to have that order."""
    with CaptureQueriesContext(connection) as queries:
        memory.remember(["one", "two"])
        memory.remember(["one", "three"], metadata={"k": 1})
        memory.records().filter(content="one").delete()
        memory.forget()
    locking = [query["sql"] for query in queries if "FOR UPDATE" in query["sql"]]
    ours = [sql for sql in locking if connection.ops.quote_name("collection_key") in sql]
    ordered = [sql for sql in ours if Memory._meta.db_table in sql.partition("WHERE")[0]]
    assert bool(ordered) == connection.features.has_select_for_update
    for sql in ordered:
        order = sql.partition("ORDER BY")[2]
        assert re.match(r"\s*\W?(CONCAT|\(?COALESCE)", order), order
