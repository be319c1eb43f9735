"""What a search reads of nominated rows: while nothing has expired, the vectors alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.utils import timezone

from prism_memory.models import Memory
from prism_memory.stores import DatabaseStore, spaces
from prism_memory.stores.nominating import Nominations
from tests.searching import EXACT, at, ids, query, record, vectors_read

pytestmark = pytest.mark.django_db
STORE = DatabaseStore(candidates=16)
TABLE = Memory._meta.db_table


@contextmanager
def statements() -> Iterator[list[str]]:
    """Note the statements that read nominated rows: they list primary keys."""
    noted: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        if " IN (" in sql and ".vector" in sql.replace('"', "").replace("`", ""):
            noted.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        yield noted


def fill(many: int = 40) -> None:
    STORE.upsert(record(f"r{n:02}", at(1 - n / 50)) for n in range(many))


def test_memories_are_looked_at_only_when_one_has_expired() -> None:
    fill()
    with statements() as noted:
        best = STORE.search(query(limit=4))
    assert [TABLE in sql for sql in noted] == [False]
    past = timezone.now() - timedelta(days=1)
    STORE.upsert([record("gone", at(1), "elsewhere", expires_at=past)])
    with statements() as noted:
        assert STORE.search(query(limit=4)) == best
    assert [TABLE in sql for sql in noted] == [True]
    STORE.purge_expired()
    with statements() as noted:
        assert STORE.search(query(limit=4)) == best
    assert [TABLE in sql for sql in noted] == [False]


def test_what_expires_later_is_no_reason_and_what_expires_now_is() -> None:
    fill()
    Memory.objects.update(expires_at=timezone.now() + timedelta(hours=1))
    with statements() as noted:
        assert ids(STORE.search(query(limit=2))) == ["r00", "r01"]
    assert [TABLE in sql for sql in noted] == [False]
    Memory.objects.filter(record_id="r00").update(expires_at=timezone.now())
    with statements() as noted, vectors_read() as read:
        assert ids(STORE.search(query(limit=2))) == ["r01", "r02"]
    assert all(TABLE in sql for sql in noted)
    assert len(read) <= 16


def test_a_limit_of_time_is_looked_up() -> None:
    fill()
    past = timezone.now() - timedelta(days=1)
    STORE.upsert([record("early", at(1), occurred_at=past)])
    found = STORE.search(query(limit=2, occurred_since=past + timedelta(hours=1)))
    assert ids(found) == ["r00", "r01"]


def test_what_expires_while_a_search_runs_is_not_returned(monkeypatch) -> None:
    fill()
    looked = spaces.present

    def and_then_it_expires(*given: Any) -> Any:
        found = looked(*given)
        past = timezone.now() - timedelta(minutes=1)
        Memory.objects.filter(record_id__in=["r00", "r02"]).update(expires_at=past)
        return found

    monkeypatch.setattr("prism_memory.stores.table.present", and_then_it_expires)
    with statements() as noted:
        assert ids(STORE.search(query(limit=4))) == ["r01", "r03", "r04", "r05"]
    assert [TABLE in sql for sql in noted] == [False]


def test_an_index_may_name_rows_of_other_collections() -> None:
    fill()
    STORE.upsert(record(f"x{n}", at(1), "elsewhere") for n in range(20))
    order = "-collection", "record_id"  # theirs first
    nominated = Nominations(60, [*Memory.objects.order_by(*order).values_list("pk", flat=True)])
    with mock.patch.object(STORE, "nominate", return_value=nominated):
        found = STORE.search(query(limit=4))
    assert ids(found) == ids(EXACT.search(query(limit=4))) == ["r00", "r01", "r02", "r03"]
    assert found.vectors_scored <= 16


def test_of_equals_at_the_edge_the_lowest_ids_are_returned() -> None:
    names = [f"r{n:02}" for n in range(12)]
    STORE.upsert([record("best", at(1))])
    for name in random.Random(5).sample(names, len(names)):
        STORE.upsert([record(name, at(0.5))])
    STORE.upsert([record("worst", at(0.1))])
    for limit in range(1, 6):
        assert ids(STORE.search(query(limit=limit))) == ["best", *names][:limit]
