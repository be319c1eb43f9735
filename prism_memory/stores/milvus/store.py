"""MilvusStore: an index in Milvus, one Milvus collection a space."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...exceptions import ConfigurationError, IndexUnavailable
from ..options import seconds, text, whole_number
from ..outbox import OutboxStore
from .connection import Connection, NotAnswered, NotFound, NotLoaded, imported, is_file, missing
from .rows import MOST_TOKENS, batches, dimensions, expression, unit, within

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

    from ...models import Space
    from ..entries import Entry
    from ..searches import Search

__all__ = ["MilvusStore"]

#: Seconds for which building an index may go without progress.
PATIENCE = 600.0
#: Seconds between looks at an index that is being built.
LOOK = 0.5
#: Ids in one call that deletes.
IDS = 10_000


class MilvusStore(OutboxStore):
    """Nearest by an HNSW index in Milvus, which hears of changes after the commit.

    ``uri``: of a server, such as "http://milvus:19530", or the path of a Milvus Lite file, which
    ends with ".db". ``token``: "user:password" or an API key. ``db_name``: a database of that
    server. ``prefix``: what the names of the Milvus collections begin with; every database of the
    application needs its own. ``timeout``: seconds that a call may take. ``m``,
    ``ef_construction``: of HNSW; and ``partitions`` of a Milvus collection; they count when
    ``memory_rebuild --fresh`` makes it. ``strategy``, ``bits``, ``candidates``: as of IndexedStore.
    """

    def __init__(
        self,
        *,
        uri: str = "http://127.0.0.1:19530",
        token: str = "",
        db_name: str = "",
        prefix: str = "prism_memory",
        timeout: float = 10.0,
        m: int = 16,
        ef_construction: int = 200,
        partitions: int = 16,
        strategy: str = "index",
        bits: int = 256,
        candidates: int = 256,
    ) -> None:
        super().__init__(strategy=strategy, bits=bits, candidates=candidates)
        self.uri = _uri(uri)
        self.db_name = text("db_name", db_name)
        self.prefix = _prefix(prefix)
        self.timeout = seconds("timeout", timeout)
        self.m = whole_number("m", m)
        self.ef_construction = whole_number("ef_construction", ef_construction)
        self.partitions = whole_number("partitions", partitions)
        self._connection = Connection(
            self.uri, text("token", token, secret=True), self.db_name, self.timeout
        )

    @property
    def place(self) -> str:
        return f"milvus:{self.uri}/{self.db_name or 'default'}/{self.prefix}"

    def check(self, setting: str) -> list[CheckMessage]:
        """Return an error when the client, or Milvus Lite, is missing; import neither."""
        from django.core.checks import Error

        error = missing(self.uri)
        if error is None:
            return []
        return [Error(f"{setting}: {error.message}", hint=error.hint, id=error.id)]

    # Reading

    def nearest(self, search: Search, count: int) -> list[int]:
        hits = self._ask(
            search.space,
            "search",
            data=[unit(search.vector)],
            filter=expression(search),
            limit=count,
            output_fields=["memory"],
            search_params={"metric_type": "COSINE", "params": {"ef": count}},
            consistency_level="Session",
        )
        # An entry that was sent twice at the same moment may be there twice.
        return list(dict.fromkeys(hit["entity"]["memory"] for hit in hits[0]))

    def held(self, using: str, space: Space, low: int, high: int | None) -> set[int]:
        rows = self._ask(
            space,
            "query",
            filter=within(low, high),
            output_fields=["id"],
            limit=self.most,
            consistency_level="Strong",
        )
        ids = {row["id"] for row in rows}
        if len(rows) < self.most or len(ids) < 2:
            return ids
        # Some of more, in no order: look at both halves.
        middle = sorted(ids)[len(ids) // 2]
        return self.held(using, space, low, middle) | self.held(using, space, middle, high)

    # Writing

    def send(self, space: Space, entries: Sequence[Entry]) -> None:
        for rows in batches(entries):
            # No upsert: Milvus 2.3 files its rows in other partitions than those it searches.
            self._ask(space, "delete", ids=[row["id"] for row in rows])
            self._ask(space, "insert", data=rows)

    def withdraw(self, space: Space, ids: Sequence[int]) -> None:
        for start in range(0, len(ids), IDS):
            self._ask(space, "delete", ids=list(ids[start : start + IDS]))

    # Building

    def prepare(self, using: str, space: Space, *, fresh: bool) -> None:
        name = self.collection(space)
        if fresh:
            self._call("drop_collection", name)
        if not self._call("has_collection", name):
            self._create(name, space)
        elif not self._call("list_indexes", name):
            # Whoever created it was killed on the way.
            self._call("create_index", name, self._index())
        self._call("load_collection", name)

    def finish(self, using: str, space: Space) -> None:
        """Have what was sent filed, and wait until the graph over it is built and in use."""
        name = self.collection(space)
        self._call("flush", name, timeout=PATIENCE)
        built, until = -1, time.monotonic() + PATIENCE
        while True:
            state = self._call("describe_index", name, "vector")
            if state["indexed_rows"] >= state["total_rows"] and not state["pending_index_rows"]:
                break
            if state["indexed_rows"] > built:
                built, until = state["indexed_rows"], time.monotonic() + PATIENCE
            if time.monotonic() > until:
                raise self._unavailable(f"indexed nothing more for {PATIENCE:.0f} s")
            time.sleep(LOOK)
        # Else searches go on, for ten seconds or so, with what stood in for the graph. Milvus Lite
        # has nothing to load, and would have this wait for it.
        if not is_file(self.uri):
            self._call("refresh_load", name, timeout=PATIENCE)

    def drop(self, using: str, space: Space) -> None:
        self._call("drop_collection", self.collection(space))

    # Asking the server

    def collection(self, space: Space) -> str:
        """The name of the Milvus collection that holds the entries of a space."""
        return f"{self.prefix}_{space.key}"

    def _create(self, name: str, space: Space) -> None:
        pymilvus = imported()
        kind = pymilvus.DataType
        schema = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", kind.INT64, is_primary=True)
        schema.add_field("memory", kind.INT64)
        schema.add_field("collection_key", kind.VARCHAR, max_length=64, is_partition_key=True)
        schema.add_field("tokens", kind.ARRAY, element_type=kind.INT64, max_capacity=MOST_TOKENS)
        schema.add_field("vector", kind.FLOAT_VECTOR, dim=dimensions(space.width))
        self._call(
            "create_collection",
            name,
            schema=schema,
            index_params=self._index(),
            num_partitions=self.partitions,
            consistency_level="Session",
        )

    def _index(self) -> Any:
        params = imported().MilvusClient.prepare_index_params()
        params.add_index(
            "vector",
            index_type="HNSW",
            metric_type="COSINE",
            params={"M": self.m, "efConstruction": self.ef_construction},
        )
        return params

    def _ask(self, space: Space, method: str, **kwargs: Any) -> Any:
        """Call a method about the collection of a space, which is never made in passing."""
        name = self.collection(space)
        loaded = self._connection.loaded
        if name in loaded:
            try:
                return self._call(method, name, **kwargs)
            except Unloaded:
                loaded.discard(name)
        # A server that was restarted, or a file that was opened, may not have it in memory yet.
        self._call("load_collection", name)
        loaded.add(name)
        return self._call(method, name, **kwargs)

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._connection.call(method, *args, **kwargs)
        except NotFound:
            raise IndexUnavailable(
                f"The store {self.alias!r} at {self.place} has no collection {args[0]}: its server "
                "lost it, or is another one than before. Fill it from the tables with manage.py "
                f"memory_rebuild --store {self.alias}; until then set "
                'PRISM_MEMORY["STORE"] to another store.'
            ) from None
        except NotLoaded as error:
            raise Unloaded(self._words(f"did not {method}: {error}")) from None
        except NotAnswered as error:
            raise self._unavailable(f"did not {method}: {error}") from None

    def _unavailable(self, what: str) -> IndexUnavailable:
        return IndexUnavailable(self._words(what))

    def _words(self, what: str) -> str:
        return (
            f"The store {self.alias!r} at {self.place} {what}. See that Milvus runs, and that the "
            'options uri, token, db_name and timeout in PRISM_MEMORY["STORES"] are right. Nothing '
            "is lost: what Milvus was not told is told later."
        )


class Unloaded(IndexUnavailable):
    """The collection is there, but not in the memory of the server."""


def _uri(value: object) -> str:
    uri = text("uri", value)
    if is_file(uri):
        return os.path.abspath(uri)
    if "@" in uri:
        raise ConfigurationError(
            "uri holds a user or a password, which errors would show. Give them as the option "
            'token: "user:password".'
        )
    if not re.fullmatch(r"(https?|tcp)://[^\s/?#]+/?", uri):
        raise ConfigurationError(
            f"uri is {uri!r:.80}. Give an address such as 'http://127.0.0.1:19530', or the path "
            "of a Milvus Lite file that ends with '.db'. A database is the option db_name."
        )
    return uri.rstrip("/")


def _prefix(value: object) -> str:
    prefix = text("prefix", value)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", prefix):
        raise ConfigurationError(
            f"prefix is {prefix!r:.80}. Give at most 100 letters, digits and underscores, not a "
            "digit first."
        )
    return prefix
