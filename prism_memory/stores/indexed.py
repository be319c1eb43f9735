"""The base of drivers that keep an index of their own beside the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..digests import digest
from ..exceptions import IndexNotReady
from ..models import IndexState
from . import indexes
from .entries import Entry
from .nominating import Nominations, by_vector
from .options import one_of, whole_number
from .table import TableStore

if TYPE_CHECKING:
    from ..models import Space
    from .searches import Search

__all__ = ["Entry", "IndexedStore", "Untold"]

#: Each look into the index asks for so many times what the one before did.
WIDENING = 4


class Untold(NamedTuple):
    """How many changes an index has not heard of yet."""

    to_add: int = 0
    to_remove: int = 0


class IndexedStore(TableStore):
    """Nearest by an index. Drivers implement what raises NotImplementedError here.

    ``strategy``: "index" asks the index for candidates; "exact" reads every vector of the tables,
    and is what the other is measured against. ``bits`` and ``candidates``: as of DatabaseStore; the
    signatures are kept for every store, so that ``STORE`` can be changed back at any time.
    """

    keeps_index = True
    #: The largest ``count`` that ``nearest()`` takes.
    most: int = 16_384
    #: Callers whose work is done are not held up by an index that failed, before this moment of
    #: ``time.monotonic()``.
    resting_until: float = 0.0
    #: Whether the index is outside the database, and hears of changes by ``settle()``.
    apart: bool = False

    def __init__(self, *, strategy: str = "index", bits: int = 256, candidates: int = 256) -> None:
        self.strategy = one_of("strategy", strategy, ("index", "exact"))
        self.bits = whole_number("bits", bits, multiple=64)
        self.candidates = whole_number("candidates", candidates)

    @property
    def place(self) -> str:
        """Where the index is, without secrets or I/O. Another place is another index."""
        raise NotImplementedError

    @property
    def index_key(self) -> str:
        """The digest of alias and place: what the states of this index are found by."""
        return digest("index", self.alias, self.place)

    # Reading

    def nearest(self, search: Search, count: int) -> list[int]:
        """Return the keys of at most ``count`` memories, nearest first.

        Of ``search.space`` and ``search.collections``, and roughly of ``search.filter``: all is
        checked again. Raises IndexUnavailable.
        """
        raise NotImplementedError

    def held(self, using: str, space: Space, low: int, high: int | None) -> set[int]:
        """Return the ids of the entries with ``low <= id``, and ``id < high`` unless it is None."""
        raise NotImplementedError

    # Writing

    def index(self, using: str, state: IndexState, entries: Sequence[Entry]) -> None:
        """Take up entries of one space, some of which may be there already.

        Called in the transaction that writes the embeddings, whose memories are locked.
        """
        raise NotImplementedError

    def unindex(
        self, using: str, state: IndexState, collection_key: str, ids: Sequence[int]
    ) -> None:
        """Drop entries; called in the transaction that deletes the embeddings, before they go."""
        raise NotImplementedError

    # Building

    def begin(self, using: str, state: IndexState) -> None:
        """A space is born: be ready for its first entries. Called in that transaction."""
        self.prepare(using, state.space, fresh=True)

    def prepare(self, using: str, space: Space, *, fresh: bool) -> None:
        """Make sure that entries of a space can be taken up; if ``fresh``, drop what there is."""
        raise NotImplementedError

    def load(self, using: str, state: IndexState, ids: Sequence[int]) -> None:
        """Take up entries that the rebuild found missing. In no transaction."""
        indexes.tell(using, self, state, ids)

    def remove(self, using: str, state: IndexState, ids: Sequence[int]) -> None:
        """Drop entries whose embeddings are gone; called by the rebuild."""
        raise NotImplementedError

    def untold(self, collection_key: str | None = None) -> Untold:
        """Count what the index has still to add and to remove, in one collection or in all.

        For an index in the same transaction as the tables, nothing.
        """
        return Untold()

    def noted(self, using: str, state: IndexState, ids: Sequence[int]) -> set[int]:
        """Return those of the ids that the index is going to hear of, so need no mending."""
        return set()

    def drop(self, using: str, space: Space) -> None:
        """Drop all that the index holds of a space, because the space is removed."""
        raise NotImplementedError

    def finish(self, using: str, space: Space) -> None:
        """All entries are there: build what is best built last. In no transaction."""

    # The nominations of TableStore

    def nominate(self, search: Search) -> Nominations:
        if self.strategy == "exact":
            return by_vector(search)
        self._refuse_unready(search)
        first = self.nearest(search, min(search.wanted, self.most))
        return Nominations(len(first), self._widening(search, first))

    def _widening(self, search: Search, found: list[int]) -> Iterator[int]:
        """Yield what was found, and then ask for more, until the index gives less than asked."""
        count = min(search.wanted, self.most)
        seen: set[int] = set()
        while True:
            fresh = [pk for pk in found if pk not in seen]
            yield from fresh
            seen.update(fresh)
            if len(found) < count or count == self.most:
                return
            count = min(WIDENING * count, self.most)
            found = self.nearest(search, count)

    def _refuse_unready(self, search: Search) -> None:
        states = IndexState.objects.using(search.using).filter(
            key=self.index_key, space=search.space, ready_at__isnull=False
        )
        if not states.exists():
            raise IndexNotReady(
                f"The index of the store {self.alias!r} at {self.place} was not compared with the "
                f"table for the space {search.space.name!r}, so a search might miss memories. "
                f"Run manage.py memory_rebuild --store {self.alias}; until then set "
                'PRISM_MEMORY["STORE"] to another store.'
            )
