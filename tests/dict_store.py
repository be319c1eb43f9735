"""A store that implements the whole contract and keeps its records in a dict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import numpy as np

from prism_memory.exceptions import InvalidIdentifier, SpaceMismatch
from prism_memory.filters import Filter, attributes
from prism_memory.metadata import normalise_metadata
from prism_memory.stores import Matches, VectorMatch, VectorRecord, VectorStore
from prism_memory.vectors import Vector, cosines

COPIED = ("collection", "id", "content", "role", "name", "kind")


@dataclass
class Row:
    record: VectorRecord
    vectors: dict[str, Vector] = field(default_factory=dict)

    @property
    def live(self):
        return self.record.expires_at is None or self.record.expires_at > datetime.now(UTC)


class DictStore(VectorStore):
    """Nearest by every vector. All is lost with the process, so it says that it is volatile."""

    def __init__(self):
        self.rows: dict[tuple[str, str], Row] = {}
        self.widths: dict[str, int] = {}

    # Writing

    def upsert(self, records):
        now, checked = datetime.now(UTC), []
        widths = dict(self.widths)
        for n, record in enumerate(records):
            vector = record.vector
            if record.space is not None:
                vector = self.usable(record.id, vector, record.space, widths)
            metadata = normalise_metadata(record.metadata)
            moment = now + timedelta(microseconds=n)
            checked.append((replace(record, vector=vector, metadata=metadata), moment))
        self.widths = widths
        for record, moment in checked:
            self.write(record, moment)

    def usable(self, name, numbers, space, widths):
        vector = Vector.of(numbers)
        if widths.setdefault(space, len(vector)) != len(vector):
            raise SpaceMismatch(f"The width of the vector of {name!r} is {len(vector)}.")
        return vector

    def write(self, record, moment):
        row = self.rows.get((record.collection, record.id))
        if row is None or not (row.live or self.expired(record)):
            moment = record.occurred_at or moment
            expires_at = self.expiry(record, moment)
            new = replace(
                record, metadata=record.metadata or {}, occurred_at=moment, expires_at=expires_at,
                vector=None, space=None, retention=None,
            )  # fmt: skip
            same = row is not None and row.record.embedded_text == record.embedded_text
            row = Row(new, row.vectors if same else {})
            self.rows[record.collection, record.id] = row
        else:
            self.merge(row, record)
        if record.space is not None:
            row.vectors[record.space] = record.vector

    def expired(self, record):
        return record.expires_at is not None and record.expires_at <= datetime.now(UTC)

    def expiry(self, record, moment):
        if record.expires_at is None and record.retention is not None:
            return moment + record.retention
        return record.expires_at

    def merge(self, row, record):
        old, expires_at = row.record, record.expires_at
        if record.embedded_text != old.embedded_text:
            row.vectors = {}
        moment = old.occurred_at
        if record.occurred_at is not None and record.occurred_at > moment:
            moment = record.occurred_at
            expires_at = self.expiry(record, moment)
        row.record = replace(
            old,
            **{name: getattr(record, name) for name in COPIED},
            metadata=old.metadata if record.metadata is None else record.metadata,
            occurred_at=moment,
            expires_at=expires_at or old.expires_at,
        )

    def attach(self, collection, vectors, space, *, texts=None):
        widths = dict(self.widths)
        given = {
            name: self.usable(name, numbers, space, widths) for name, numbers in vectors.items()
        }
        attached = 0
        for name, vector in given.items():
            row = self.rows.get((collection, name))
            if row is None:
                continue
            if texts is not None and (
                row.record.embedded_text != texts[name] or space in row.vectors
            ):
                continue
            self.widths = widths
            row.vectors[space] = vector
            attached += 1
        return attached

    # Erasing

    def forget(self, collection, ids):
        if isinstance(ids, str) or not hasattr(ids, "__iter__"):
            raise InvalidIdentifier("ids is no list.")
        names = list(ids)
        if not all(isinstance(name, str) for name in names):
            raise InvalidIdentifier("ids holds what is no string.")
        return self.drop(lambda row: row.record.id in names, collection)

    def purge(self, collection):
        return self.drop(lambda row: True, collection)

    def purge_occurred_before(self, collection, when):
        return self.drop(lambda row: row.record.occurred_at < when, collection)

    def purge_expired(self, collection=None):
        return self.drop(lambda row: not row.live, collection)

    def drop(self, condition, collection):
        gone = [
            key for key, row in self.rows.items() if collection in (None, key[0]) and condition(row)
        ]
        for key in gone:
            del self.rows[key]
        return len(gone)

    # Reading

    def search(self, query):
        asked, conditions = Vector.of(query.vector), Filter.of(query.filter)
        limit = 8 if query.limit is None else query.limit
        if limit == 0:
            return Matches()
        rows = [row for row in self.rows.values() if self.searched(row, query)]
        if any(row.vectors and query.space not in row.vectors for row in rows):
            raise SpaceMismatch(f"Some records have no vector in the space {query.space!r}.")
        if self.widths.get(query.space, len(asked)) != len(asked):
            raise SpaceMismatch(f"The width of the query is {len(asked)}.")
        rows = [row for row in rows if query.space in row.vectors and self.passes(row, conditions)]
        scores = self.scores(asked, [row.vectors[query.space] for row in rows])
        floor = -1 if query.min_similarity is None else query.min_similarity
        ranked = sorted(
            (-score, row.record.id, row.record.collection)
            for row, score in zip(rows, scores, strict=True)
            if score >= floor
        )
        found = [
            self.match(self.rows[collection, name].record, -score)
            for score, name, collection in ranked[:limit]
        ]
        return Matches(found, rows_ranked=len(rows), vectors_scored=len(rows))

    def searched(self, row, query):
        since = query.occurred_since
        return (
            row.live
            and row.record.collection in query.collections
            and (since is None or row.record.occurred_at > since)
        )

    def passes(self, row, conditions):
        record = row.record
        return conditions.matches(
            attributes(record.metadata, record.role, record.kind, record.name)
        )

    def scores(self, asked, vectors):
        if not vectors:
            return []
        return cosines(asked.values, np.stack([vector.values for vector in vectors])).tolist()

    def match(self, record, similarity):
        return VectorMatch(
            **{name: getattr(record, name) for name in COPIED},
            metadata=dict(record.metadata),
            similarity=similarity,
            occurred_at=record.occurred_at,
        )

    def count(self, collection, embedded_only=False):
        rows = [row for key, row in self.rows.items() if key[0] == collection]
        return sum(bool(row.vectors) or not embedded_only for row in rows)

    def unembedded(self, collection, limit=100, *, space=None, ids=None, after=None):
        order = attrgetter("occurred_at", "id")
        waiting = [
            row.record
            for key, row in self.rows.items()
            if key[0] == collection
            and row.live
            and not (row.vectors if space is None else space in row.vectors)
            and (ids is None or key[1] in ids)
            and (after is None or order(row.record) > order(after))
        ]
        return sorted(waiting, key=order)[:limit]
