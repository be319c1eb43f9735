"""What goes into a store, and what comes out: records, queries and matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from ..exceptions import InvalidArgument, InvalidIdentifier, InvalidMessage
from ..texts import MAX_CONTENT, MAX_NAME, embedded_text, unstorable
from ..timestamps import as_moment

if TYPE_CHECKING:
    from ..filters import Filter
    from ..metadata import Scalar
    from ..owners import Address

__all__ = [
    "Matches",
    "Neighbours",
    "VectorMatch",
    "VectorQuery",
    "VectorRecord",
    "Waiting",
    "check_identifier",
    "check_score",
    "check_whole",
]


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
