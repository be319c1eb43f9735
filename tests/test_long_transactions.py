"""Writers of a collection while another's transaction is open wait for the same rows only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction

from prism_memory import pages
from prism_memory.models import Memory
from tests.invariants import check_tables

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # SQLite has one writer at a time, whatever it writes.
    pytest.mark.skipif("connection.vendor == 'sqlite'", reason="SQLite locks the whole database."),
]
OLD = [f"Old sentence {n}." for n in range(12)]


def handle() -> Any:
    return Memory.objects.for_owner("ada").synchronously()


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Twelve memories on three pages; their ids in the order of the pages."""
    monkeypatch.setattr(pages, "PAGE_SIZE", 4)
    handle().remember(OLD)
    ids = list(Memory.objects.order_by("pk").values_list("record_id", flat=True))
    # MariaDB reads, and locks, the whole of a table of a few rows.
    Memory.objects.for_owner("grace").remember([f"Another's sentence {n}." for n in range(400)])
    yield ids
    check_tables()


@contextmanager
def held(*calls: Callable[[], Any]) -> Iterator[None]:
    """Make calls in a transaction of another connection that stays open meanwhile."""
    ready, over = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def hold() -> None:
        try:
            with transaction.atomic():
                for call in calls:
                    call()
                ready.set()
                over.wait(60)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)
        finally:
            ready.set()
            connections.close_all()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    ready.wait(60)
    try:
        with impatient():
            yield
    finally:
        over.set()
        thread.join(60)
    for failure in failures:
        raise failure


@contextmanager
def impatient() -> Iterator[None]:
    """Whoever would wait for a lock fails after a second."""
    on, off = {
        "postgresql": ("SET lock_timeout = '1s'", "SET lock_timeout = 0"),
        "mysql": ("SET innodb_lock_wait_timeout = 1", "SET innodb_lock_wait_timeout = 50"),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(on)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(off)


def test_nobody_waits_for_other_rows_of_the_same_collection(stored: list[str]) -> None:
    memory = handle()
    with held(
        lambda: handle().remember(["New in a long transaction.", "And another."]),
        lambda: handle().forget(stored[:2]),
    ):
        new = memory.remember([f"New meanwhile {n}." for n in range(6)])
        assert memory.remember(OLD[-1:]) == memory.remember(OLD[-1:])
        assert memory.forget(stored[8:10]) == 2
        assert memory.forget(new[:1]) == 1
        assert len(memory.recall("sentence", limit=50)) == 12 - 2 + 5
        assert memory.pending() == 0
    assert memory.count() == 12 - 2 - 2 + 5 + 2


def test_nor_where_small_pages_are_merged(stored: list[str], monkeypatch) -> None:
    monkeypatch.setattr(pages, "SMALL_PAGES", 2)
    memory = handle()
    with held(*[lambda n=n: handle().remember(f"Held {n}.") for n in range(4)]):
        for n in range(5):
            memory.remember(f"Meanwhile {n}.")
        assert memory.forget(memory.remember("Meanwhile 4.")) == 1
    assert memory.count() == 12 + 4 + 4


def test_whoever_writes_the_same_rows_waits(stored: list[str]) -> None:
    memory = handle()
    with held(lambda: handle().forget(stored[:2])):
        for call in (
            lambda: memory.forget(stored[1:2]),
            lambda: memory.forget(stored[2:3]),  # on the same page
        ):
            with pytest.raises(DatabaseError), transaction.atomic():
                call()
    assert memory.count() == 10
