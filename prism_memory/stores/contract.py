"""The contract of a store: what goes in, what comes out, and what every store can do."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from ..exceptions import InvalidArgument, InvalidIdentifier, InvalidMessage
from ..texts import MAX_CONTENT, MAX_NAME, embedded_text, unstorable
from ..timestamps import as_moment

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

    from ..filters import Filter
    from ..metadata import Scalar
    from ..owners import Address
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


def check_identifier(argument: str, value: object) -> None:
    if not isinstance(value, str) or value == "":
        kind = "an empty string" if value == "" else f"of type {type(value).__name__}"
        raise InvalidIdentifier(f"{argument} is {kind}. Pass a non-empty string.")
    if len(value) > MAX_NAME:
        raise InvalidIdentifier(
            f"{argument} has {len(value)} characters. At most {MAX_NAME} are taken."
        )
    if problem := unstorable(value):
        raise InvalidIdentifier(f"{argument} holds {problem}, which databases can't store.")


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRecord:
    """One record of a collection, as it is to be stored.

    ``metadata`` and ``occurred_at`` that are None leave what is stored; a new record gets an empty
    map and the time of the call. ``expires_at`` is absolute; ``retention`` counts from the
    ``occurred_at`` that the record ends up with. ``vector`` needs its ``space``.
    """

    collection: str
    id: str
    content: str
    vector: Any = None
    space: str | None = None
    metadata: Mapping[str, Scalar] | None = None
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    retention: timedelta | None = None
    role: str = ""
    name: str = ""
    kind: str = ""
    owner: Address | None = None

    def __post_init__(self) -> None:
        check_identifier("collection", self.collection)
        check_identifier("id", self.id)
        if not isinstance(self.content, str):
            raise InvalidMessage(
                f"content is of type {type(self.content).__name__}. Pass a string."
            )
        if len(self.content) > MAX_CONTENT:
            raise InvalidMessage(
                f"content has {len(self.content)} characters. At most {MAX_CONTENT} are taken; "
                "split it into passages."
            )
        for argument, limit in (
            ("content", MAX_CONTENT),
            ("role", 32),
            ("name", 255),
            ("kind", 64),
        ):
            text = getattr(self, argument)
            if not isinstance(text, str) or len(text) > limit:
                raise InvalidMessage(f"{argument} is not a string of at most {limit} characters.")
            if problem := unstorable(text):
                raise InvalidMessage(f"{argument} holds {problem}, which databases can't store.")
        if (self.vector is None) != (self.space is None):
            raise InvalidArgument("vector and space go together: pass both, or neither.")
        if self.space is not None:
            check_identifier("space", self.space)
        for argument in ("occurred_at", "expires_at"):
            if getattr(self, argument) is not None:
                moment = as_moment(getattr(self, argument), argument)
                object.__setattr__(self, argument, moment)

    @property
    def embedded_text(self) -> str:
        """The text that is turned into a vector."""
        return embedded_text(self.name, self.content)


class Waiting(Protocol):
    """What waits for a vector: a VectorRecord, or whatever else has these of it.

    A store takes back, as ``after``, what it returned.
    """

    @property
    def id(self) -> str: ...

    @property
    def embedded_text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A search over one or more collections, in one space.

    ``limit``: 0 finds nothing; None is ``RECALL["limit"]``; more than there is finds all there is.
    ``occurred_since`` leaves out what happened at or before that moment. ``reserve`` is how many
    vectors fewer a search should read than its candidates, because its caller will read as many
    by ``neighbours()``; the limit is found all the same.
    """

    collections: Sequence[str]
    vector: Any
    space: str
    limit: int | None = 8
    filter: Mapping[str, Any] | Filter | None = field(default_factory=dict)
    min_similarity: float | None = None
    occurred_since: datetime | None = None
    reserve: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.collections, str) or not isinstance(self.collections, Iterable):
            raise InvalidIdentifier("collections is not a list of names. Pass [name], not name.")
        object.__setattr__(self, "collections", list(dict.fromkeys(self.collections)))
        for collection in self.collections:
            check_identifier("collections", collection)
        check_identifier("space", self.space)
        check_whole("limit", self.limit)
        check_score("min_similarity", self.min_similarity)
        check_whole("reserve", self.reserve)
        if self.occurred_since is not None:
            object.__setattr__(
                self, "occurred_since", as_moment(self.occurred_since, "occurred_since")
            )


def check_whole(argument: str, value: object) -> None:
    """Refuse anything but None and whole numbers from 0. Raises InvalidArgument."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(
            f"{argument} is of type {type(value).__name__}. Pass a whole number or None."
        )
    if value < 0:
        raise InvalidArgument(f"{argument} is {value}. Pass 0 or more, or None.")


def check_score(argument: str, value: object) -> None:
    """Refuse anything but None and finite numbers. Raises InvalidArgument."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgument(
            f"{argument} is of type {type(value).__name__}. Pass a number from -1 to 1, or None."
        )
    if not -1 <= value <= 1:
        raise InvalidArgument(f"{argument} is {value!r:.40}. Pass a number from -1 to 1, or None.")


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """A record that a search found; ``similarity`` is the cosine, in [-1, 1]."""

    collection: str
    id: str
    content: str
    metadata: dict[str, Scalar]
    similarity: float
    occurred_at: datetime
    role: str = ""
    name: str = ""
    kind: str = ""

    @property
    def address(self) -> tuple[str, str]:
        """Collection and id: what no two records share."""
        return self.collection, self.id

    @property
    def embedded_text(self) -> str:
        """The text that was turned into the vector."""
        return f"{self.name}: {self.content}" if self.name else self.content


class Matches(list[VectorMatch]):
    """What a search found, best first, and what finding it took.

    ``rows_ranked``: records whose order was estimated. ``vectors_scored``: vectors that were read
    and compared in full.
    """

    def __init__(
        self,
        matches: Iterable[VectorMatch] = (),
        *,
        rows_ranked: int = 0,
        vectors_scored: int = 0,
    ) -> None:
        super().__init__(matches)
        self.rows_ranked = rows_ranked
        self.vectors_scored = vectors_scored


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What stands next to some matches in time.

    ``pairs``: the address of a match, that of a record beside it, and how many steps lie between,
    1 for the next. ``found``: those of them that had to be read for it, with their similarity.
    """

    pairs: Sequence[tuple[tuple[str, str], tuple[str, str], int]] = ()
    found: Matches = field(default_factory=Matches)


class VectorStore:
    """Holds records and finds the nearest. Constructors do no I/O."""

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

        A changed text loses its vectors. Nothing is embedded: a record without a vector waits until
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

        With ``texts``, the embedded texts by id, a compare-and-set: a record is left alone whose
        text is another by now, or that has a vector in this space already.
        """
        raise NotImplementedError

    def search(self, query: VectorQuery) -> Matches:
        """Return the nearest live records, best first, ties by id.

        Raises SpaceMismatch when records have vectors, but none in the query's space.
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
        """Erase records for good; returns how many there were."""
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
