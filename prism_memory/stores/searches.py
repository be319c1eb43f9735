"""A search as drivers get it, and which rows it may return."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from django.db.models import Q

from ..timestamps import from_database, to_database

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..filters import Filter
    from ..models import Space

__all__ = ["Search"]


@dataclass(frozen=True)
class Search:
    """A search as drivers get it: what to rank, where, and for whom it must count."""

    using: str
    collections: dict[str, str]  # collection key → collection name
    space: Space
    vector: NDArray[np.float64]
    filter: Filter
    wanted: int
    now: datetime
    occurred_since: datetime | None
    #: Whether a memory of the database may have expired without being purged.
    some_expired: bool = True

    @property
    def takes_all(self) -> bool:
        """Whether every row of the collections may be returned, but for the filter."""
        return self.occurred_since is None and not self.some_expired

    @cached_property
    def live(self) -> Q:
        """The condition on memories that may be returned, but for the filter."""
        condition = Q(expires_at__isnull=True) | Q(expires_at__gt=to_database(self.now))
        if self.occurred_since is not None:
            condition &= Q(occurred_at__gt=to_database(self.occurred_since))
        return condition & Q(collection_key__in=list(self.collections))

    def takes(
        self, collection_key: str, occurred_at: datetime, expires_at: datetime | None
    ) -> bool:
        """Whether a row that was read by its primary key may be returned, but for the filter.

        Looked at here and not by the statement: given the primary keys too, SQLite takes the index
        of the expiry, or that of the collection, for the better one and walks through all of it.
        """
        since = self.occurred_since
        return (
            collection_key in self.collections
            and (expires_at is None or from_database(expires_at) > self.now)
            and (since is None or from_database(occurred_at) > since)
        )
