"""Fixtures of the tests against a real Milvus: a server, or a file of Milvus Lite."""

from __future__ import annotations

import os
import uuid

import pytest

from prism_memory.stores import MilvusStore, stores

from .proxy import Proxy

URI = os.environ["PRISM_TEST_MILVUS"]
LITE = URI.endswith(".db")

# A file of Milvus Lite is opened in this process: no network is between that could fail.
collect_ignore = ["test_outage.py", "test_processes.py"] if LITE else []


def milvus(made=MilvusStore, **options):
    """A store with Milvus collections of its own, which are small."""
    options.setdefault("uri", URI)
    options.setdefault("prefix", f"test_{uuid.uuid4().hex}")
    return made(**{"partitions": 2, "timeout": 60, **options})


def drop(store):
    """Take away what a test has put into Milvus."""
    for name in store._connection.call("list_collections"):
        if name.startswith(store.prefix):
            store._connection.call("drop_collection", name)


@pytest.fixture
def store():
    store = milvus()
    stores.register("milvus", store)
    yield store
    stores.unregister("milvus")
    drop(store)


@pytest.fixture
def proxy():
    host, _, port = URI.rpartition("/")[2].partition(":")
    with Proxy(host, int(port)) as proxy:
        yield proxy


@pytest.fixture
def behind(proxy):
    """A store that reaches the server through a proxy, which can cut the line."""
    store = milvus(uri=proxy.uri, timeout=10)
    stores.register("milvus", store)
    yield store
    stores.unregister("milvus")
    proxy.mend()
    drop(milvus(prefix=store.prefix))


@pytest.fixture
def chosen(settings, embedder):
    """STORE is a MilvusStore that the settings name."""
    prefix = f"test_{uuid.uuid4().hex}"
    entry = {
        "BACKEND": "prism_memory.stores.MilvusStore",
        "OPTIONS": {"uri": URI, "prefix": prefix, "partitions": 2, "timeout": 60},
    }
    settings.PRISM_MEMORY = {
        **settings.PRISM_MEMORY,
        "STORES": {"default": {"BACKEND": "prism_memory.stores.DatabaseStore"}, "milvus": entry},
        "STORE": "milvus",
    }
    yield stores["milvus"]
    drop(milvus(prefix=prefix))
