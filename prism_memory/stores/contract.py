"""The contract of a store: what every store can do."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from .records import Matches, Neighbours, VectorMatch, VectorQuery, VectorRecord, Waiting

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

    from ..vectors import Vector

__all__ = [
    "Durability",
    "Matches",
    "Neighbours",
    "VectorMatch",
    "VectorQuery",
    "VectorRecord",
    "VectorStore",
    "Waiting",
]


class Durability(enum.Enum):
    """Whether content survives what a store's machine does not."""

    DURABLE = "durable"
    VOLATILE = "volatile"


class VectorStore:
    """Holds records and finds the nearest. Constructors do no I/O.

    A store implements what raises NotImplementedError here; the rest has defaults that are slower
    or find less. One instance serves all threads. Names (collections, ids, spaces, keys of
    metadata) are compared to the letter, times to the microsecond, values by type. The suite
    ``prism_memory.testing.StoreConformance`` holds a store to what is said here.
    """

    #: Whether content can be lost. An index that can be rebuilt does not make a store volatile.
    #: A property may ask the backend, with a time-out of its own: it is asked when the store is
    #: resolved, once a process, and never by ``manage.py check``, which does no I/O. What it raises
    #: reaches the caller, and the next one asks again.
    durability: Durability = Durability.VOLATILE

    #: Whether it is an IndexedStore, whose index is kept in step even while it isn't ``STORE``.
    keeps_index: bool = False

    #: The key in STORES, or that of ``stores.register()``; set by the registry.
    alias: str = ""

    #: How many vectors a search scores exactly, unless its limit asks for more.
    candidates: int = 256

    def check(self, setting: str) -> list[CheckMessage]:
        """Return system check messages, without I/O; ``setting`` names the entry in STORES."""
        return []

    def upsert(self, records: Iterable[VectorRecord]) -> None:
        """Write records, all or none. A repeat of what is stored changes nothing.

        What a record leaves out (None) stays as it is stored; metadata that it gives replaces; a
        time that it gives counts if it is later. What had expired is new if it is live again. A
        changed text loses its vectors. Nothing is embedded: a record without a vector waits until
        it is attached one, or until its collection is embedded. Raises InvalidArgument and its kin
        before writing.
        """
        raise NotImplementedError

    def attach(
        self,
        collection: str,
        vectors: Mapping[str, Any],
        space: str,
        *,
        texts: Mapping[str, str] | None = None,
    ) -> int:
        """Give existing records their vectors; never creates. Returns how many were attached.

        A vector is a ``Vector``, or what ``Vector.of()`` makes one of, and replaces what is there.
        With ``texts``, the embedded texts by id, a compare-and-set: a record is left alone whose
        text is another by now, or that has a vector in this space already. Raises InvalidVector,
        and SpaceMismatch for another width than that of the space, before writing.
        """
        raise NotImplementedError

    def search(self, query: VectorQuery) -> Matches:
        """Return the nearest live records, best first, ties by id and then by collection.

        The similarity is ``Vector.cosine()`` of the doubles that were stored, to the last bit. What
        is nearest may be estimated; but the limit is filled while there are records that the query
        takes. Raises SpaceMismatch when live records of the collections have vectors, but none in
        the query's space, and when the query has another width than the space; InvalidVector and
        InvalidFilter, even if nothing is searched.
        """
        raise NotImplementedError

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
        """Find the live records up to ``steps`` before and after each match, in its own collection.

        The order is that of ``occurred_at``; of one moment, that in which they were stored. Records
        further off in time than ``within`` are no neighbours. What ``known`` holds is not read
        again; of the others ``most`` are, the nearest of the first matches first. All that binds a
        search (space, filter, expiry, ``occurred_since``) binds neighbours: what it leaves out is
        in no pair. A store that keeps this default has none, and surroundings count for nothing.
        """
        return Neighbours()

    def look_up(self, query: VectorQuery, keys: Iterable[str]) -> Matches:
        """Return the live records of these keys that ``query`` may find, in any order.

        A key is ``prism_memory.digests.digest("record", collection, id)``. With this default,
        nothing is ever found again, and a continuing recollection starts afresh every time.
        """
        return Matches()

    def forget(self, collection: str, ids: Iterable[str]) -> int:
        """Erase records for good; returns how many there were. Raises InvalidIdentifier."""
        raise NotImplementedError

    def purge(self, collection: str) -> int:
        """Erase a whole collection; returns how many records it had."""
        raise NotImplementedError

    def purge_occurred_before(self, collection: str, when: datetime) -> int:
        """Erase what happened strictly before ``when``; returns how many records went."""
        raise NotImplementedError

    def purge_expired(self, collection: str | None = None) -> int:
        """Erase what has expired, in one collection or in all; returns how many records went."""
        raise NotImplementedError

    def count(self, collection: str, embedded_only: bool = False) -> int:
        """Count the records that are stored, expired ones included until they are purged."""
        raise NotImplementedError

    def unembedded(
        self,
        collection: str,
        limit: int | None = 100,
        *,
        space: str | None = None,
        ids: Iterable[str] | None = None,
        after: VectorRecord | None = None,
    ) -> list[VectorRecord]:
        """Return live records that lack a vector in ``space`` (None: in every space), oldest first.

        ``ids`` restricts the answer to these records; ``after``, the last of an earlier answer, to
        those that come after it, so that a long backlog is walked through once.
        """
        raise NotImplementedError

    def waiting(
        self,
        collection: str,
        limit: int,
        *,
        space: str,
        ids: Iterable[str] | None = None,
        after: Any = None,
    ) -> Sequence[Waiting]:
        """Return like ``unembedded`` what waits, as the embedder's caller needs it."""
        return self.unembedded(collection, limit, space=space, ids=ids, after=after)

    def claim(
        self, collection: str, limit: int, *, space: str, seconds: float, after: Any = None
    ) -> Sequence[Waiting]:
        """Return like ``waiting`` what is due, and keep other workers off it for some seconds.

        A store that can't keep them off may return the same records to all: attaching is a
        compare-and-set, so it costs calls, and nothing worse.
        """
        return self.waiting(collection, limit, space=space, after=after)

    def attach_waiting(
        self, collection: str, vectors: Sequence[tuple[Waiting, Vector]], space: str
    ) -> int:
        """Give what ``waiting`` or ``claim`` returned its vectors, by compare-and-set.

        Returns how many were attached.
        """
        texts = {waiting.id: waiting.embedded_text for waiting, _ in vectors}
        given = {waiting.id: vector for waiting, vector in vectors}
        return self.attach(collection, given, space, texts=texts)

    def in_work(self, collection: str, *, space: str) -> bool:
        """Whether records without a vector in ``space`` are left that have not failed.

        After an empty claim: another worker has them, or had them until a moment ago.
        """
        return False

    def release(self, collection: str, ids: Iterable[str]) -> None:
        """Give claimed records back, because their worker has given up."""

    def postpone(
        self, collection: str, failures: Mapping[str, str], *, texts: Mapping[str, str]
    ) -> None:
        """Note that texts can't be embedded: the kind of failure by id, and the embedded texts.

        They are due again later, after a time that grows with every attempt.
        """

    def pending(self, collection: str, space: str) -> int:
        """Count the live records that lack a vector in ``space``."""
        return len(self.unembedded(collection, None, space=space))

    def settle(self, deadline: float | None = None) -> bool:
        """Bring what stands beside the records up to date; return whether all of it is.

        For a store with an index outside the database, which is told of changes after they were
        committed. Stops at ``deadline``, a ``time.monotonic()``. What another process is telling
        just now is not waited for. Raises IndexUnavailable when the index's server does not answer;
        what it has not been told stays noted.
        """
        return True
