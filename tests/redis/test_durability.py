"""A store over Redis that tells truly whether anything is kept."""

from __future__ import annotations

import pytest
import redis

from prism_memory.exceptions import VolatileStore
from prism_memory.stores import Durability, VectorStore, stores

from .servers import RedisServer


class RedisStore(VectorStore):
    def __init__(self, url: str) -> None:
        self.redis = redis.Redis.from_url(url, decode_responses=True)

    @property
    def durability(self):
        kept = self.redis.config_get("save", "appendonly")
        survives = kept["appendonly"] == "yes" or kept["save"] != ""
        return Durability.DURABLE if survives else Durability.VOLATILE


@pytest.fixture
def server(tmp_path):
    server = RedisServer(tmp_path)
    stores.register("redis", RedisStore(server.url))
    yield server
    stores.unregister("redis")
    server.stop()


def test_one_that_keeps_nothing_is_refused_until_it_does(server):
    with pytest.raises(VolatileStore):
        stores["redis"]
    with redis.Redis.from_url(server.url) as connection:
        connection.config_set("appendonly", "yes")
    assert stores["redis"].durability is Durability.DURABLE


def test_one_that_is_not_there_is_an_error_of_its_own(server):
    server.stop()
    with pytest.raises(redis.ConnectionError):
        stores["redis"]
