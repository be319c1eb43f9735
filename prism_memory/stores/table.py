"""A store over the app's own tables: drivers nominate candidates, this scores them.

The tables are the truth. A driver only names rows that may be near; whatever it names is read,
checked again (collection, space, expiry, filter) and scored with the exact cosine of the stored
doubles. So every score is a real cosine, the same on every driver, and what was forgotten can't
come back from an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np
from django.utils import timezone

from ..conf import settings
from ..exceptions import InvalidIdentifier
from ..filters import Filter, attributes
from ..models import Memory, Space
from ..timestamps import as_moment, from_database, to_database
from ..transactions import id_batches, repeated, write_transaction
from ..vectors import Vector, cosines
from .attaching import Given, Offers, write_vectors
from .backlog import Backlog
from .beside import beside
from .contract import (
    Durability,
    Matches,
    Neighbours,
    VectorMatch,
    VectorQuery,
    VectorRecord,
)
from .keys import collection_key, record_key
from .nominating import Nominations, completed
from .reading import Candidate, candidates, live_rows, record_id_of, winners
from .records import check_identifier
from .searches import Search
from .spaces import (
    matrix_of,
    present,
    refuse_other_bits,
    refuse_other_spaces,
    refuse_other_width,
)
from .writing import write_records

__all__ = ["Nominations", "Search", "TableStore"]

#: Once nominated rows turned out to be expired or gone, so many are looked at before any is read.
LOOK_AHEAD = 2_048
#: The columns that Search.takes() looks at.
LIVE = ("collection_key", "occurred_at", "expires_at")
#: A larger limit is not told apart: there are no more rows than keys.
MOST = 2**63 - 1


class TableStore(Backlog):
    """Owns rows, filters, expiry, spaces and scoring. Drivers override ``nominate``."""

    durability = Durability.DURABLE
    #: Bits of the signatures that are stored with the vectors.
    bits: int = 256

    def nominate(self, search: Search) -> Nominations:
        """Name rows of ``search.collections`` that are near ``search.vector``, best first.

        More than ``search.wanted`` may be asked for, until the nominations end.
        """
        raise NotImplementedError

    # Writing

    def upsert(self, records: Iterable[VectorRecord]) -> None:
        records = list(records)
        vectors: dict[tuple[str, str], dict[str, Vector]] = {}
        # Of a record that is given twice, the last text is stored: a vector of another is not its.
        texts = {(record.collection, record.id): record.embedded_text for record in records}
        for record in records:
            if record.space is not None:
                group = vectors.setdefault((record.collection, record.space), {})
                vector = Vector.of(record.vector)
                if record.embedded_text == texts[record.collection, record.id]:
                    group[record.id] = vector
        groups = sorted(vectors.items(), key=lambda item: (collection_key(item[0][0]), item[0][1]))
        using = self._writes()

        def write() -> None:
            with write_transaction(using):
                write_records(using, records)
                for (collection, space), group in groups:
                    self.attach(collection, group, space)

        repeated(using, write)

    def attach(
        self,
        collection: str,
        vectors: Any,
        space: str,
        *,
        texts: Any = None,
    ) -> int:
        check_identifier("collection", collection)
        offers = {
            record_key(collection, record_id): (
                Given(record_id, None if texts is None else texts[record_id]),
                Vector.of(vector),
            )
            for record_id, vector in vectors.items()
        }
        return self._attach(collection, offers, space)

    def attach_waiting(
        self, collection: str, vectors: Sequence[tuple[Any, Vector]], space: str
    ) -> int:
        offers = {pair[0].key: pair for pair in vectors}
        return self._attach(collection, offers, space, rows=[row.pk for row, _ in vectors])

    def _attach(
        self,
        collection: str,
        offers: Offers,
        space: str,
        rows: Sequence[int] | None = None,
    ) -> int:
        check_identifier("space", space)
        using = self._writes()
        return repeated(
            using,
            lambda: write_vectors(using, collection, offers, space, bits=self.bits, rows=rows),
        )

    # Erasing

    def forget(self, collection: str, ids: Iterable[str]) -> int:
        keys = [record_key(collection, record_id) for record_id in record_ids(ids)]
        using = self._writes()

        def erase() -> int:
            # One transaction, whatever the number of statements that the ids take.
            with write_transaction(using):
                return sum(
                    Memory.objects.using(using).filter(key__in=batch).erase()
                    for batch in id_batches(using, sorted(set(keys)))
                )

        return repeated(using, erase)

    def purge(self, collection: str) -> int:
        return self._rows(self._writes(), collection).erase()

    def purge_occurred_before(self, collection: str, when: datetime) -> int:
        moment = to_database(as_moment(when, "when"))
        return self._rows(self._writes(), collection).filter(occurred_at__lt=moment).erase()

    def purge_expired(self, collection: str | None = None) -> int:
        using = self._writes()
        if collection is None:
            return Memory.objects.using(using).expired().erase()
        return self._rows(using, collection).expired().erase()

    # Counting

    def count(self, collection: str, embedded_only: bool = False) -> int:
        rows = self._rows(self._reads(), collection)
        return (rows.embedded() if embedded_only else rows).count()

    # Searching

    def search(self, query: VectorQuery) -> Matches:
        limit = settings().recall["limit"] if query.limit is None else query.limit
        limit = min(limit, MOST)
        vector = Vector.of(query.vector)
        conditions = Filter.of(query.filter)
        if limit == 0 or not query.collections:
            return Matches()
        search = self._prepared(query, vector, conditions, limit)
        if search is None:
            return Matches()
        nominations = self.nominate(search)
        nominated = completed(search, nominations)
        if conditions or 2 * limit > search.wanted:
            matches, scored = self._scored(search, nominated)
        else:
            # What the tables nominate is of the collections; an index may be mistaken.
            live = nominations.complete and search.takes_all
            matches, scored = self._best(search, nominated, limit, live=live)
        if query.min_similarity is not None:
            matches = [match for match in matches if match.similarity >= query.min_similarity]
        matches.sort(key=lambda match: (-match.similarity, match.id, match.collection))
        return Matches(
            matches[:limit],
            rows_ranked=nominations.ranked,
            vectors_scored=nominations.scored + scored,
        )

    def neighbours(
        self,
        query: VectorQuery,
        matches: Sequence[VectorMatch],
        *,
        known: Iterable[VectorMatch],
        steps: int,
        within: timedelta,
        most: int,
    ) -> Neighbours:
        search = self._prepared(
            query, Vector.of(query.vector), Filter.of(query.filter), 0, guarded=False
        )
        if search is None or not matches:
            return Neighbours()
        seen = {record_key(*match.address): match.address for match in known}
        pairs = beside(search, matches, steps=steps, within=within)
        unread = dict.fromkeys(pk for _, pk, key, _ in pairs if key not in seen)
        found = self._by_primary_key(search, list(islice(unread, most)))
        seen.update((record_key(*match.address), match.address) for match in found)
        return Neighbours(
            [(match.address, seen[key], step) for match, _, key, step in pairs if key in seen],
            found,
        )

    def look_up(self, query: VectorQuery, keys: Iterable[str]) -> Matches:
        search = self._prepared(
            query, Vector.of(query.vector), Filter.of(query.filter), 0, guarded=False
        )
        if search is None:
            return Matches()
        using = search.using
        rows = [
            pk
            for batch in id_batches(using, sorted(set(keys)))
            for pk in Memory.objects.using(using).filter(key__in=batch).values_list("pk", flat=True)
        ]
        return self._by_primary_key(search, rows)

    def _prepared(
        self,
        query: VectorQuery,
        vector: Vector,
        conditions: Filter,
        limit: int,
        *,
        guarded: bool = True,
    ) -> Search | None:
        """Look at the space; None when nothing has a vector in it, and nothing in any other.

        Only what completes a search does so unguarded: the search itself has looked.
        """
        using = self._reads()
        collections = {collection_key(name): name for name in query.collections}
        now = from_database(timezone.now())
        space, others, some_expired = present(using, query.space, list(collections), now)
        search = Search(
            using,
            collections,
            space or Space(name=query.space, width=len(vector), bits=self.bits),
            vector.values,
            conditions,
            max(self.candidates - query.reserve, limit, 1),
            now,
            query.occurred_since,
            some_expired,
        )
        if guarded:
            refuse_other_spaces(search, others)
        if space is None:
            return None
        refuse_other_width(space, "the query", len(vector))
        refuse_other_bits(space, self.bits)
        return search

    def _by_primary_key(self, search: Search, ids: list[int]) -> Matches:
        batches = id_batches(search.using, ids)
        rows = [row for batch in batches for row in live_rows(search, batch)]
        return Matches(self._passing(search, rows), vectors_scored=len(rows))

    def _best(
        self, search: Search, nominated: Iterator[int], limit: int, *, live: bool
    ) -> tuple[list[VectorMatch], int]:
        """What ``_scored`` does, for a few of many: of those that lose, only the vector is read.

        ``live``: whether the nominated rows were all live, and in the collections, when the search
        began.
        """
        found: list[Candidate] = []
        batch = list(islice(nominated, search.wanted))
        usable = self._usable(search, nominated)
        while batch:
            found += candidates(search, batch, live=live)
            batch = list(islice(usable, search.wanted - len(found)))

        def named(at: int) -> str:
            return record_id_of(search, found[at][0])

        matrix = matrix_of(search.space, [vector for _, vector in found], named)
        similarities = cosines(search.vector, matrix)
        order = np.argsort(-similarities, kind="stable")
        scores = similarities[order].tolist()
        matches: list[VectorMatch] = []
        start = 0
        # Rows that went, or were given another vector, since their vectors were read are passed
        # over: a vector is never taken for that of another text.
        while start < len(scores) and len(matches) < limit:
            end = min(start + limit, len(scores))
            # Those as near as the last one, too: their ids decide.
            while end < len(scores) and scores[end] == scores[end - 1]:
                end += 1
            best = (found[at][0] for at in order[start:end].tolist())
            known = dict(zip(best, scores[start:end], strict=True))
            matches += [
                _match(search, row, known[embedding_id])
                for *row, embedding_id in winners(search, list(known))
                if search.takes(*row[:3])
            ]
            start = end
        return matches, len(found)

    def _scored(self, search: Search, nominated: Iterator[int]) -> tuple[list[VectorMatch], int]:
        """Read and score nominated rows until enough passed or no more are nominated.

        Returns what passed, and how many vectors were read for it.
        """
        matches: list[VectorMatch] = []
        read = 0
        batch = list(islice(nominated, search.wanted))
        # Once some were gone, look before reading, so that no vector is read in vain.
        usable = self._usable(search, nominated)
        while batch:
            for ids in id_batches(search.using, batch):
                rows = live_rows(search, ids)
                read += len(rows)
                matches.extend(self._passing(search, rows))
            batch = list(islice(usable, search.wanted - len(matches)))
        return matches, read

    def _usable(self, search: Search, nominated: Iterator[int]) -> Iterator[int]:
        """Yield those of the nominated rows that may be returned, best first."""
        columns = ["metadata", "role", "kind", "name"] if search.filter else []
        while ahead := list(islice(nominated, LOOK_AHEAD)):
            rows = Memory.objects.using(search.using).filter(pk__in=ahead)
            usable = {
                pk
                for pk, *row in rows.values_list("pk", *LIVE, *columns)
                if search.takes(*row[:3])
                and (not search.filter or search.filter.matches(attributes(*row[3:])))
            }
            yield from (pk for pk in ahead if pk in usable)

    def _passing(self, search: Search, rows: list[tuple[Any, ...]]) -> list[VectorMatch]:
        """Of the rows read, those that the filter takes, with their exact cosines."""
        if search.filter:
            # The last word: a driver may know the filter only roughly, or not at all.
            rows = [row for row in rows if search.filter.matches(attributes(*row[5:9]))]
        matrix = matrix_of(
            search.space, [row[-1] for row in rows], [row[3] for row in rows].__getitem__
        )
        similarities = cosines(search.vector, matrix)
        return [
            _match(search, row[:-1], similarity)
            for row, similarity in zip(rows, similarities.tolist(), strict=True)
        ]


def _match(search: Search, row: Sequence[Any], similarity: float) -> VectorMatch:
    key, occurred_at, _, record_id, content, metadata, role, kind, name = row
    return VectorMatch(
        search.collections[key], record_id, content, metadata, similarity,
        from_database(occurred_at), role, name, kind,
    )  # fmt: skip


def record_ids(ids: object) -> list[str]:
    """Return a list of record ids. Raises InvalidIdentifier for anything else than ids."""
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise InvalidIdentifier(
            f"ids is of type {type(ids).__name__}. Pass a list of ids, as remember() returned them."
        )
    found = list(ids)
    for record_id in found:
        if not isinstance(record_id, str):
            raise InvalidIdentifier(
                f"ids holds a {type(record_id).__name__}. Pass ids as remember() returned them."
            )
    return found
