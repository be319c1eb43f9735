"""Several writers at once: threads with connections of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connections, transaction

from prism_memory import pages
from prism_memory.models import Embedding, Memory, SignaturePage
from prism_memory.stores import DatabaseStore
from tests.invariants import check_tables
from tests.searching import SPACE, at, ids, query, record

pytestmark = pytest.mark.django_db(transaction=True)
STORE = DatabaseStore(candidates=8)


@pytest.fixture(autouse=True)
def sound_tables(transactional_db: None) -> Iterator[None]:
    yield
    check_tables()


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run calls in threads that start at the same moment; return what they returned or raised."""
    barrier = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def run(position: int, call: Callable[[], Any]) -> None:
        try:
            barrier.wait(10)
            results[position] = call()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results[position] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    return results


def unraised(results: list[Any]) -> list[Any]:
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_upserts_of_one_record_give_one_row() -> None:
    for turn in range(5):
        one = record(f"r{turn}", at(0.5), metadata={"turn": turn})
        unraised(together(*[lambda one=one: STORE.upsert([one])] * 6))
        assert STORE.count("c") == turn + 1
    assert len(STORE.search(query())) == 5


def test_the_latest_time_wins_whoever_is_first() -> None:
    times = [datetime(2026, 1, day, tzinfo=UTC) for day in (3, 1, 4, 2)]
    unraised(together(*[lambda at=at: STORE.upsert([record("r", occurred_at=at)]) for at in times]))
    assert Memory.objects.get().occurred_at.day == 4


def test_attaching_races_forgetting() -> None:
    names = [f"r{n}" for n in range(30)]
    for _ in range(5):
        STORE.upsert(record(name) for name in names)
        attached, forgotten = unraised(
            together(
                lambda: STORE.attach("c", {name: at(0.5) for name in names}, SPACE),
                lambda: STORE.forget("c", names[::-1]),
            )
        )
        assert forgotten == 30
        assert attached in (0, 30)
        assert not Embedding.objects.exists()
        assert not SignaturePage.objects.exists()


def test_opposite_orders_do_not_deadlock() -> None:
    names = [f"r{n}" for n in range(40)]

    def write(order: list[str], k: int) -> None:
        for turn in range(4):
            STORE.upsert(record(name, at(0.5), metadata={"k": k, "t": turn}) for name in order)

    unraised(together(lambda: write(names, 1), lambda: write(names[::-1], 2)))
    assert STORE.count("c") == len(STORE.search(query(limit=99))) == 40


def test_many_kinds_of_writers_do_not_deadlock() -> None:
    names = [f"r{n}" for n in range(24)]
    collections = ["c", "d"]

    def upsert(step: int) -> None:
        for turn in range(4):
            STORE.upsert(
                record(name, at(0.5), collection, metadata={"t": turn})
                for collection in collections[::step]
                for name in names[::step]
            )

    def attach() -> None:
        for turn in range(4):
            for collection in collections:
                STORE.attach(collection, {name: at(turn / 10) for name in names}, SPACE)

    def forget() -> None:
        for turn in range(6):
            STORE.forget(collections[turn % 2], names[turn::3])

    def prune() -> None:
        for _ in range(4):
            Memory.objects.filter(record_id__in=names[::5]).delete()

    unraised(together(lambda: upsert(1), lambda: upsert(-1), attach, forget, prune))


def test_merging_pages_races_forgetting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE_SIZE", 8)
    monkeypatch.setattr(pages, "SMALL_PAGES", 2)
    old = [f"old{n}" for n in range(20)]

    def add(prefix: str) -> None:
        for n in range(15):
            STORE.upsert([record(f"{prefix}{n}", at(0.1))])

    for name in old:
        STORE.upsert([record(name, at(0.9))])
    results = together(
        lambda: add("x"), lambda: add("y"), lambda: sum(STORE.forget("c", [name]) for name in old)
    )
    assert unraised(results)[2] == 20
    assert len(STORE.search(query(limit=99))) == 30


def test_a_search_sees_whole_commits_only() -> None:
    STORE.upsert(record(f"r{n}", at(0.5)) for n in range(6))
    done = threading.Event()

    def replace() -> None:
        try:
            for turn in range(8):
                with transaction.atomic():
                    STORE.purge("c")
                    STORE.upsert(record(f"t{turn}-{n}", at(0.5)) for n in range(6))
        finally:
            done.set()

    def search() -> list[int]:
        found = []
        while not done.is_set():
            found.append(len(STORE.search(query(limit=9))))
        return found

    _, found = unraised(together(replace, search))
    assert set(found) <= {0, 6}  # what was nominated may be gone when it is read
    assert len(STORE.search(query(limit=9))) == 6


def test_a_rolled_back_call_leaves_nothing() -> None:
    STORE.upsert([record("kept", at(0.5))])
    with transaction.atomic():
        STORE.upsert([record("new", at(1))])
        STORE.forget("c", ["kept"])
        assert ids(STORE.search(query())) == ["new"]
        transaction.set_rollback(True)
    assert ids(STORE.search(query())) == ["kept"]
