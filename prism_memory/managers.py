"""Where calling code starts: ``Memory.objects.for_owner(…)``, and the QuerySet's verbs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connections, models
from django.db.models import ExpressionWrapper, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact, GreaterThan, LessThan
from django.utils import timezone

from . import signals
from .digests import digest
from .exceptions import InvalidArgument
from .timestamps import to_database
from .transactions import LOCK_ORDER, id_batches, repeated, write_transaction

if TYPE_CHECKING:
    from .memory import OwnerMemory

__all__ = ["MemoryManager", "MemoryQuerySet"]


class MemoryQuerySet(models.QuerySet):  # type: ignore[type-arg]
    """Queries over memories, whoever owns them."""

    def live(self, now: datetime | None = None) -> MemoryQuerySet:
        """The memories that have not expired."""
        now = now or timezone.now()
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now))

    def expired(self, now: datetime | None = None) -> MemoryQuerySet:
        """The memories that have expired and are not yet pruned."""
        return self.filter(expires_at__lte=now or timezone.now())

    def outlived(self, seconds: float) -> MemoryQuerySet:
        """What owners said ``seconds`` ago or earlier: with ``RETENTION``, no longer recalled."""
        from .models import MemoryKind

        oldest_kept = to_database(datetime.now(UTC) - timedelta(seconds=seconds))
        said = self.filter(kind=MemoryKind.OBSERVATION).exclude(owner_key="")
        return said.filter(occurred_at__lte=oldest_kept)

    def embedded(self, space: str | None = None) -> MemoryQuerySet:
        """The memories that have a vector, in ``space`` or in any."""
        return self.filter(GreaterThan(self._vector(space), 0))

    def unembedded(self, space: str | None = None) -> MemoryQuerySet:
        """The memories that lack a vector, in ``space`` or in every one."""
        return self.filter(LessThan(self._vector(space), 1))

    def _vector(self, space: str | None) -> Coalesce:
        """The key of a vector of each memory, or 0: looked up for row after row.

        EXISTS is a join to PostgreSQL, which it makes by reading all vectors for every row where it
        takes the tables to be small, as its statistics say for a while after a large import. It
        makes none of a subquery that is a value. Of IS NULL it would expect so few rows that it
        sorts them all before it gives the first hundred; not so of an inequality.
        """
        from .models import Embedding, Space

        vectors = Embedding.objects.filter(memory=OuterRef("pk"))
        if space is not None:
            named = Space.objects.filter(key=digest("space", space)).values("pk")
            # With "+ 0" the index of the space is no help, which would give all of its vectors.
            of = ExpressionWrapper(F("space_id") + 0, models.BigIntegerField())
            vectors = vectors.filter(Exact(of, Subquery(named)))
        return Coalesce(Subquery(vectors.values("pk")[:1]), 0)

    def delete(self) -> tuple[int, dict[str, int]]:
        """Erase these memories for good, with their vectors and their signatures."""
        if self.query.is_sliced:
            raise TypeError("Cannot use 'limit' or 'offset' with delete().")
        self._for_write = True
        return repeated(self.db, self._delete_at_once)

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]

    def _delete_at_once(self) -> tuple[int, dict[str, int]]:
        from .models import Embedding
        from .pages import remove
        from .stores import indexes

        using = self.db
        everything = self.model._base_manager.using(using)
        counts = {self.model._meta.label: 0, Embedding._meta.label: 0}
        with write_transaction(using):
            names = self._locked(using)
            keys = {name: digest("collection", name) for name in set(names.values())}
            doomed = {pk: keys[name] for pk, name in names.items()}
            vectors = Embedding.objects.using(using)
            indexes.removing(using, doomed)
            remove(using, doomed)
            # By primary key: neighbours in the table go together.
            for ids in id_batches(using, sorted(doomed)):
                gone, _ = vectors.filter(memory_id__in=ids).delete()
                counts[Embedding._meta.label] += gone
                _, others = everything.filter(pk__in=ids).delete()
                for label, count in others.items():
                    counts[label] = counts.get(label, 0) + count
        for collection, count in Counter(names.values()).items():
            signals.forgotten.send_robust(sender=self.model, collection=collection, count=count)
        return sum(counts.values()), counts

    def _locked(self, using: str) -> dict[int, str]:
        """Lock these memories; return the collections of those that are still there, by id."""
        found = (
            self.using(using).order_by().values_list("collection_key", "key", "pk", "collection")
        )
        # In the order in which all writers lock: two that meet wait, and don't deadlock.
        names = {pk: name for *_, pk, name in sorted(set(found))}
        if not connections[using].features.has_select_for_update:
            return names
        # In a second step, because rows of a DISTINCT or grouped query can't be locked, and a join
        # of the table with itself takes ages where the database mistakes how many rows match.
        everything = self.model._base_manager.using(using)
        kept: set[int] = set()
        for ids in id_batches(using, list(names)):
            rows = everything.filter(pk__in=ids).order_by(*LOCK_ORDER)
            kept.update(rows.select_for_update().values_list("pk", flat=True))
        return {pk: name for pk, name in names.items() if pk in kept}

    def erase(self) -> int:
        """Erase these memories for good and return how many went."""
        return self.delete()[1][self.model._meta.label]

    erase.alters_data = True  # type: ignore[attr-defined]
    erase.queryset_only = True  # type: ignore[attr-defined]


class MemoryManager(models.Manager):  # type: ignore[type-arg]
    """Hands out handles. Nothing on the bare manager remembers, recalls or forgets."""

    def for_owner(self, owner: object, scope: str | None = None) -> OwnerMemory:
        """Return the handle of one owner's memory in one scope.

        ``owner`` is a saved instance of a model in ``OWNERS``, or a non-empty string; ``scope`` a
        non-empty string, by default ``DEFAULT_SCOPE``. Raises InvalidOwner, with the fix, for
        anything else. Does no query.
        """
        if self._db is not None:
            raise InvalidArgument(
                f"for_owner() was called on a manager bound to the database {self._db!r}. "
                "DATABASE_ROUTERS decide where memories live; call Memory.objects.for_owner()."
            )
        from .memory import OwnerMemory
        from .owners import address

        return OwnerMemory(address(owner, scope))
