"""What ``recall()`` gives back: memories, in the order in which they happened."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from prism_memory.context import HEADER, LATER, Entry, parse_context, render_context
from prism_memory.exceptions import InvalidArgument, InvalidTimestamp

if TYPE_CHECKING:
    from prism_memory.tokens import TokenCounter

__all__ = ["HEADER", "LATER", "Entry", "Recalled", "Recollection", "parse_context"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Recalled:
    """One recalled memory, as it was when it was read.

    ``role`` and ``name`` are "" where there is none. ``similarity`` is the cosine to the query,
    −1 to 1; ``recency`` falls from 1 to 0 with age; ``wording``, 0 to 1, is how far it uses the
    query's words, and ``surroundings``, −1 to 1, the best score beside it, both 0 where they were
    not asked for; ``score`` is their weighted mean. The repr shows nothing of what was said,
    because reprs end up in logs.

    Raises ``InvalidTimestamp`` for an ``occurred_at`` without a time zone: its day would depend
    on the machine's own.
    """

    id: str
    content: str = field(repr=False)
    role: str
    name: str = field(repr=False)
    kind: str
    occurred_at: datetime
    metadata: dict[str, Any] = field(repr=False, hash=False)
    similarity: float
    recency: float
    score: float
    wording: float = 0.0
    surroundings: float = 0.0

    def __post_init__(self) -> None:
        if self.occurred_at.utcoffset() is None:
            raise InvalidTimestamp("occurred_at has no time zone; give an aware datetime.")

    @property
    def entry(self) -> Entry:
        """What a context shows of this memory."""
        day = self.occurred_at.astimezone(UTC).date()
        return Entry(day, self.role, self.name, self.content)

    @property
    def rank(self) -> tuple[float, timedelta, str]:
        """A sort key: the best score first; of equal scores the latest, then the lowest id."""
        return rank_of(self.score, self.occurred_at, self.id)


def rank_of(score: float, occurred_at: datetime, id: str) -> tuple[float, timedelta, str]:
    """The sort key of ``Recalled.rank``."""
    return -score, _EPOCH - occurred_at, id


class Recollection(Sequence[Recalled]):
    """The memories that one recall found, oldest first; of one moment, by record id.

    One that continues another has the other's memories first, in their order, and then what it
    adds, oldest first. ``continued`` says whether it does; ``restarted``, when it was asked to and
    does not, why: "full" (what is new does not fit any more), "forgotten" (a member is not there
    for this query: forgotten, expired, filtered out), "changed" (a member's entry) or "space"
    (another embedding model); else "".

    An immutable sequence; a slice of it is a plain tuple. Two are equal when their members are.
    ``counter`` counts tokens for ``estimated_tokens``. ``rows_ranked`` and ``vectors_scored`` say
    what the search behind it cost; they are part of neither the text nor equality.
    """

    def __init__(
        self,
        memories: Iterable[Recalled] = (),
        *,
        counter: TokenCounter | None = None,
        rows_ranked: int = 0,
        vectors_scored: int = 0,
        earlier: Iterable[Iterable[Recalled]] = (),
        origin: tuple[str, str] | None = None,
        continued: bool = False,
        restarted: str = "",
    ) -> None:
        # Never by score: a changed order would change bytes that a prompt cache already holds.
        added = tuple(sorted(memories, key=lambda each: (each.occurred_at, each.id)))
        blocks = (*(tuple(block) for block in earlier), added)
        #: The memories by the recall that added them; more than one only where it continues.
        self.blocks = tuple(block for block in blocks if block)
        #: The names of collection and space, where ``recall()`` made it.
        self.origin = origin
        self.continued = continued
        self.restarted = restarted
        self._memories = tuple(memory for block in self.blocks for memory in block)
        self._counter = counter
        self.rows_ranked = rows_ranked
        self.vectors_scored = vectors_scored

    @overload
    def __getitem__(self, index: int) -> Recalled: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Recalled, ...]: ...
    def __getitem__(self, index: int | slice) -> Recalled | tuple[Recalled, ...]:
        return self._memories[index]

    def __len__(self) -> int:
        return len(self._memories)

    def __iter__(self) -> Iterator[Recalled]:
        return iter(self._memories)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Recollection):
            return NotImplemented
        return self.blocks == other.blocks

    def __hash__(self) -> int:
        return hash(self.blocks)

    def __repr__(self) -> str:
        noun = "memory" if len(self) == 1 else "memories"
        return f"<{type(self).__name__}: {len(self)} {noun}>"

    def ranked(self) -> list[Recalled]:
        """The memories by score, best first; of equal scores the latest, then by record id."""
        return sorted(self._memories, key=lambda each: each.rank)

    def as_context(self) -> str:
        """The memories as one text, "" when there are none. ``prism_memory.context`` describes it.

        The same memories give the same bytes in every process, locale and time zone.
        """
        return self._context

    def as_messages(self) -> list[dict[str, str]]:
        """The text as one system message with a role and a content; ``[]`` without memories.

        It belongs right after the instructions and before the conversation. It is never a user or
        assistant turn: nobody has just said it.
        """
        return [{"role": "system", "content": self._context}] if self._memories else []

    def to_token(self) -> str:
        """A small signed string to continue this by, in a later request; "" without memories.

        It holds digests and no text. ``prism_memory.continuing`` describes it. Raises
        ``InvalidContinuation`` for a recollection that ``recall()`` did not make.
        """
        from prism_memory.continuing import Previous

        previous = Previous.of(self, self.origin[0] if self.origin else "")
        return previous.token() if previous else ""

    def digest(self) -> str:
        """The SHA-256, in hex, of exactly the UTF-8 bytes of ``as_context()``."""
        return hashlib.sha256(self._context.encode("utf-8")).hexdigest()

    @cached_property
    def estimated_tokens(self) -> int:
        """How many tokens ``as_context()`` has for the configured counter; counted when asked.

        Raises ``InvalidArgument`` for a recollection of memories made without a counter.
        """
        if not self._memories:
            return 0
        if self._counter is None:
            raise InvalidArgument("counter=None: a Recollection needs one to estimate its tokens.")
        return self._counter.count(self._context)

    @cached_property
    def _context(self) -> str:
        return render_context(*((each.entry.render() for each in block) for block in self.blocks))
