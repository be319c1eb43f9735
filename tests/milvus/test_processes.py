"""A client that was made before a fork, and threads that make one at the same time."""

from __future__ import annotations

import os
import threading
import traceback

import pytest
from django.db import connections

from tests.searching import at, ids, query, record

from .conftest import milvus

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_forked_process_makes_its_own_connection(store):
    store.upsert([record("a", at(0.9)), record("b", at(0.5))])
    client = store._connection._client
    connections.close_all()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert ids(store.search(query())) == ["a", "b"]
            assert store._connection._client is not client
            status = 0
        except BaseException:  # noqa: BLE001 - of a child, which must not go on
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ids(store.search(query())) == ["a", "b"]
    assert store._connection._client is client


def test_threads_share_one_client(store):
    store.upsert([record("a", at(0.9))])
    other = milvus(prefix=store.prefix)
    found, clients = [], []

    def ask():
        found.append(other._connection.call("has_collection", "nothing"))
        clients.append(other._connection._client)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [False] * 8
    assert len({id(client) for client in clients}) == 1
