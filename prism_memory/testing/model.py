"""A store made of dicts: what every sequence of calls must come to, told without a database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..metadata import Scalar
from ..stores import VectorQuery, VectorRecord
from ..vectors import Vector

__all__ = ["Model", "Row"]

Key = tuple[str, str]
Numbers = tuple[float, ...]


@dataclass
class Row:
    content: str
    occurred_at: datetime
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    expires_at: datetime | None = None
    vectors: dict[str, Numbers] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        return _live(self.expires_at)


class Model:
    """Rows by collection and id."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}

    def of(self, collection: str) -> dict[str, Row]:
        return {name: row for (held, name), row in self.rows.items() if held == collection}

    def upsert(self, record: VectorRecord) -> None:
        """Take in a record that has a time."""
        assert record.occurred_at is not None
        new = Row(record.content, record.occurred_at)
        row = self.rows.setdefault((record.collection, record.id), new)
        if not row.live and _live(record.expires_at):  # it was gone, so this is a new one
            row.metadata, row.occurred_at, row.expires_at = {}, record.occurred_at, None
        if row.content != record.content:
            row.content, row.vectors = record.content, {}
        if record.metadata is not None:
            row.metadata = record.metadata
        row.occurred_at = max(row.occurred_at, record.occurred_at)
        row.expires_at = record.expires_at or row.expires_at
        if record.space is not None:
            row.vectors[record.space] = record.vector

    def attach(
        self, collection: str, given: Mapping[str, Numbers], space: str, text: str | None = None
    ) -> int:
        held = self.of(collection)
        wanting = [
            name
            for name in given
            if name in held
            and (text is None or (held[name].content == text and space not in held[name].vectors))
        ]
        for name in wanting:
            held[name].vectors[space] = given[name]
        return len(wanting)

    def drop(self, collection: str, condition: Callable[[str, Row], bool]) -> int:
        """Erase the rows of a collection of whose ids and selves the condition holds."""
        gone = [name for name, row in self.of(collection).items() if condition(name, row)]
        for name in gone:
            del self.rows[collection, name]
        return len(gone)

    def mismatch(self, query: VectorQuery) -> bool:
        """Whether a search must be refused."""
        return any(
            row.vectors and query.space not in row.vectors for _, row in self._searched(query)
        )

    def search(self, query: VectorQuery) -> list[tuple[str, str, str]]:
        """What an exact search finds: collections, ids and scores in hexadecimal."""
        wanted: Any = query.filter
        asked = Vector.of(query.vector)
        scores = []
        for (collection, name), row in self._searched(query):
            if query.space in row.vectors and all(
                key in row.metadata and any(row.metadata[key] is value for value in values)
                for key, values in wanted.items()
            ):
                score = asked.cosine(Vector.of(row.vectors[query.space]))
                scores.append((-score, name, collection))
        best = sorted(scores)[: query.limit]
        return [(collection, name, (-score).hex()) for score, name, collection in best]

    def unembedded(self, collection: str, space: str | None) -> list[tuple[datetime, str]]:
        """The times and ids of what waits, oldest first."""
        return sorted(
            (row.occurred_at, name)
            for name, row in self.of(collection).items()
            if row.live and not (row.vectors if space is None else space in row.vectors)
        )

    def _searched(self, query: VectorQuery) -> Iterable[tuple[Key, Row]]:
        for key, row in self.rows.items():
            if row.live and key[0] in query.collections:
                yield key, row


def _live(expires_at: datetime | None) -> bool:
    return expires_at is None or expires_at > datetime.now(UTC)
