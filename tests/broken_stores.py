"""Stores and drivers that each break the contract in one way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from prism_memory.models import Memory
from prism_memory.stores import (
    DatabaseStore,
    Durability,
    Matches,
    Nominations,
    TableStore,
    VectorStore,
)
from prism_memory.testing.records import record

from .dict_store import DictStore, Row
from .remote_index import RemoteIndex


class SinglePrecision(DictStore):
    def scores(self, asked, vectors):
        return [float(np.float32(score)) for score in super().scores(asked, vectors)]


class AboveOne(DictStore):
    def scores(self, asked, vectors):
        return [score * (1 + 1e-15) for score in super().scores(asked, vectors)]


class DotProduct(DictStore):
    def scores(self, asked, vectors):
        return [float(asked.values @ vector.values) for vector in vectors]


class TiesAsTheyCome(DictStore):
    def search(self, query):
        found = super().search(query)[::-1]
        return Matches(sorted(found, key=lambda match: match.similarity, reverse=True))


class NoFilter(DictStore):
    def passes(self, row, conditions):
        return True


class LooseFilter(DictStore):
    """Compares by ==, as Python does, and as JSON does in some database or other."""

    def search(self, query):
        found = super().search(replace(query, filter=None, limit=10**6))
        wanted = query.filter or {}
        kept = [m for m in found if all(m.metadata.get(k) == v for k, v in wanted.items())]
        return Matches(kept[: 8 if query.limit is None else query.limit])


class FilterAfterTheLimit(DictStore):
    """Looks at no more than the nearest, and drops those that may not be returned."""

    def searched(self, row, query):
        return row.record.collection in query.collections

    def search(self, query):
        found = super().search(query)
        return Matches(m for m in found if self.rows[m.address].live)


class Remembers(DictStore):
    """Forgets the record, and not the copy in its index."""

    def drop(self, condition, collection):
        before = dict(self.rows)
        gone = super().drop(condition, collection)
        self.kept = {**getattr(self, "kept", {}), **before}
        return gone

    def search(self, query):
        rows, self.rows = self.rows, {**getattr(self, "kept", {}), **self.rows}
        try:
            return super().search(query)
        finally:
            self.rows = rows


class TruncatesIds(DictStore):
    def write(self, record, moment):
        super().write(replace(record, id=record.id[:250]), moment)


class FoldsCase(DictStore):
    def write(self, record, moment):
        super().write(replace(record, collection=record.collection.casefold()), moment)


class WholeSeconds(DictStore):
    def write(self, record, moment):
        moment = (record.occurred_at or moment).replace(microsecond=0)
        super().write(replace(record, occurred_at=moment), moment)


class DropsNulls(DictStore):
    def write(self, record, moment):
        kept = {k: v for k, v in (record.metadata or {}).items() if v is not None}
        super().write(replace(record, metadata=kept), moment)


class AttachCreates(DictStore):
    def attach(self, collection, vectors, space, *, texts=None):
        for name in vectors:
            new = Row(record(name, collection=collection))
            self.rows.setdefault((collection, name), new)
        return super().attach(collection, vectors, space, texts=texts)


class AttachComparesNothing(DictStore):
    def attach(self, collection, vectors, space, *, texts=None):
        return super().attach(collection, vectors, space)


class KeepsVectors(DictStore):
    """Of a text that was changed."""

    def merge(self, row, record):
        vectors = row.vectors
        super().merge(row, record)
        row.vectors = vectors


class OneByOne(DictStore):
    """Writes what came before the record that is refused."""

    def upsert(self, records):
        for each in records:
            super().upsert([each])


class AnySpace(DictStore):
    def search(self, query):
        held = {name for row in self.rows.values() for name in row.vectors}
        if query.space not in held:
            return Matches()
        rows = self.rows
        self.rows = {k: row for k, row in rows.items() if query.space in row.vectors}
        try:
            return super().search(query)
        finally:
            self.rows = rows


class CountsTheLiving(DictStore):
    def count(self, collection, embedded_only=False):
        rows = [row for key, row in self.rows.items() if key[0] == collection and row.live]
        return sum(bool(row.vectors) or not embedded_only for row in rows)


class PurgesTheMomentToo(DictStore):
    def purge_occurred_before(self, collection, when):
        return self.drop(lambda row: row.record.occurred_at <= when, collection)


class LatestFirst(DictStore):
    def unembedded(self, collection, limit=100, **given):
        return super().unembedded(collection, None, **given)[::-1][:limit]


class SaysItIsDurable(DictStore):
    durability = Durability.DURABLE


class ClaimsForNobody(DatabaseStore):
    claim = VectorStore.claim


class NoNeighbours(DatabaseStore):
    neighbours = VectorStore.neighbours
    look_up = VectorStore.look_up


class NewestFirst(TableStore):
    """Nominates by date, and says that nothing else could be found."""

    def nominate(self, search):
        rows = Memory.objects.using(search.using).filter(search.live)
        keys = list(rows.order_by("-occurred_at").values_list("pk", flat=True)[: search.wanted])
        return Nominations(len(keys), keys, complete=True)


class NotSoExact(DatabaseStore):
    """Under "exact", it misses the best."""

    def nominate(self, search):
        found = super().nominate(search)
        return replace(found, ids=list(found.ids)[self.strategy == "exact" :])


# Indexes


class NeverWithdraws(RemoteIndex):
    def withdraw(self, space, ids):
        pass


class LosesSome(RemoteIndex):
    def send(self, space, entries):
        super().send(space, [entry for entry in entries if entry.id % 7])


class AllCollections(RemoteIndex):
    def nearest(self, search, count):
        entries = self.server.entries(search.space).values()
        return [entry.memory_id for entry in entries][:count]


class TellsTwice(RemoteIndex):
    def nearest(self, search, count):
        found = super().nearest(search, count)
        return [pk for pk in found for _ in range(2)][:count]


class TooMany(RemoteIndex):
    def nearest(self, search, count):
        return super().nearest(search, 2 * count)


class ShortAnswers(RemoteIndex):
    def nearest(self, search, count):
        return super().nearest(search, min(count, 20))


class FilterlessIndex(RemoteIndex):
    def nearest(self, search, count):
        return super().nearest(replace(search, filter=type(search.filter)()), count)


class HoldsToTheEnd(RemoteIndex):
    def held(self, using, space, low, high):
        return super().held(using, space, low, None)


class NeverFresh(RemoteIndex):
    def prepare(self, using, space, *, fresh):
        super().prepare(using, space, fresh=False)

    def drop(self, using, space):
        pass


class AlwaysFresh(RemoteIndex):
    def prepare(self, using, space, *, fresh):
        super().prepare(using, space, fresh=True)
