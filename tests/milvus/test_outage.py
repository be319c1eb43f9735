"""A Milvus that is down, or says nothing: writes go on, searches say so, and all is told later."""

from __future__ import annotations

import time

import pytest

from prism_memory.exceptions import IndexUnavailable
from prism_memory.models import Embedding, IndexChange, Memory, Space
from tests.searching import SPACE, at, ids, query, record

pytestmark = pytest.mark.django_db(transaction=True)


def settled(store):
    """Tell what waits, without the seconds for which a failure keeps others off."""
    IndexChange.objects.update(claimed_until=None)
    assert store.settle()
    space = Space.objects.get(name=SPACE)
    assert store.held("default", space, 0, None) == set(
        Embedding.objects.values_list("pk", flat=True)
    )


@pytest.mark.parametrize("how", ["cut", "silence"])
def test_writes_succeed_and_searches_say_that_it_is_down(behind, proxy, how):
    behind.upsert([record("a", at(0.9)), record("b", at(0.5))])
    assert ids(behind.search(query())) == ["a", "b"]
    behind.timeout = behind._connection.timeout = 2
    getattr(proxy, how)()

    started = time.monotonic()
    with pytest.raises(IndexUnavailable, match=r"milvus:http://127\.0\.0\.1:") as caught:
        behind.search(query())
    # Two seconds were asked for; a busy machine gets more.
    assert time.monotonic() - started < 10
    assert "PRISM_MEMORY" in str(caught.value)
    behind.upsert([record("new", at(1))])
    behind.forget("c", ["a"])
    assert behind.untold() == (1, 1)

    proxy.mend()
    behind.timeout = behind._connection.timeout = 60
    behind._connection._silent_until = 0
    time.sleep(1.5)  # the longest that gRPC waits before it looks again
    settled(behind)
    assert ids(behind.search(query())) == ["new", "b"]


def test_a_server_that_says_nothing_holds_up_one_search_and_not_the_next(behind, proxy):
    behind.upsert([record("a", at(0.9))])
    behind.timeout = behind._connection.timeout = 2
    proxy.silence()
    with pytest.raises(IndexUnavailable, match="DEADLINE_EXCEEDED"):
        behind.search(query())
    started = time.monotonic()
    for _ in range(10):
        with pytest.raises(IndexUnavailable, match="a moment ago"):
            behind.search(query())
    assert time.monotonic() - started < 10  # and not 20


def test_a_space_that_is_born_while_it_is_down(behind, proxy):
    proxy.cut()
    behind.upsert([record("a", at(0.9)), record("b", at(0.5))])
    behind.forget("c", ["b"])
    with pytest.raises(IndexUnavailable):
        behind.search(query())
    assert behind.untold() == (2, 1)
    proxy.mend()
    time.sleep(1.5)
    settled(behind)
    assert ids(behind.search(query())) == ["a"]


def test_a_handle_remembers_and_forgets_while_it_is_down(behind, proxy, memory, caplog):
    (first,) = memory.remember(["the mill at Wapping"])
    proxy.cut()
    memory.remember(["the quay at Deptford"])
    assert memory.forget([first]) == 1
    assert memory.count() == 1
    assert "An index was not told of all changes" in caplog.text
    assert "Deptford" not in caplog.text
    assert Memory.objects.count() == 1
