"""The handle: one owner's memory in one scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async

from . import backends
from .conf import settings
from .exceptions import EmbeddingInvalid
from .jobs import schedule
from .messages import utterances
from .metadata import normalise_metadata, refuse_reserved
from .models import Memory, MemoryKind
from .stores.contract import VectorRecord
from .stores.registry import default_store
from .timestamps import as_moment, moments

if TYPE_CHECKING:
    from .managers import MemoryQuerySet
    from .owners import Address
    from .recollection import Recollection
    from .weighting import Weighting

__all__ = ["OwnerMemory"]


class _Everything:
    """The type of the default of ``forget``: None must not mean everything."""


EVERYTHING: Final = _Everything()


class OwnerMemory:
    """What one owner has in memory, in one scope. Made by ``Memory.objects.for_owner()``."""

    def __init__(self, address: Address, *, embeds_at_once: bool = False) -> None:
        self._address = address
        self._embeds_at_once = embeds_at_once

    def __repr__(self) -> str:
        return f"<OwnerMemory {self.collection}>"

    @property
    def collection(self) -> str:
        """The name of the collection that holds these memories, for calls at store level."""
        return self._address.collection

    def synchronously(self) -> OwnerMemory:
        """Return a copy that embeds its own records before ``remember()`` returns.

        If that fails, its ``remember()`` raises EmbeddingUnavailable, with the records stored.
        """
        return OwnerMemory(self._address, embeds_at_once=True)

    def records(self) -> MemoryQuerySet:
        """Return a QuerySet of these memories, expired ones included until they are pruned."""
        from .stores.keys import collection_key

        return Memory.objects.filter(collection_key=collection_key(self.collection))

    # Remembering

    def remember(
        self,
        messages: Any,
        metadata: Mapping[str, Any] | None = None,
        occurred_at: Any = None,
    ) -> list[str]:
        """Store what was said and return one id per remembered message, in order.

        ``messages``: a string, one message, or a list of messages. ``metadata``: a flat map of
        strings to scalars, for all of them. ``occurred_at``: a datetime, date or ISO string, or a
        sequence with one for each message. Both left out leave what is stored of a repeat.

        All messages or none are written. They can be recalled once they are embedded, which
        happens after the commit. Raises InvalidMessage, InvalidMetadata or InvalidTimestamp.
        """
        said = utterances(messages)
        metadata = normalise_metadata(metadata)
        refuse_reserved(metadata)
        when = moments(occurred_at, said.given, [position for position, _ in said])
        retention = settings().retention
        records = [
            VectorRecord(
                collection=self.collection,
                id=utterance.record_id,
                content=utterance.content,
                role=utterance.role,
                name=utterance.name,
                kind=MemoryKind.OBSERVATION.value,
                metadata=metadata,
                occurred_at=moment,
                retention=None if retention is None else timedelta(seconds=retention),
                owner=self._address,
            )
            for (_, utterance), moment in zip(said, when, strict=True)
        ]
        ids = [record.id for record in records]
        if not records:
            return ids
        store = default_store()
        store.upsert(records)
        if self._embeds_at_once:
            from .embedding import embed_waiting

            run = embed_waiting(store, self.collection, ids=ids)
            if run.failures:
                raise EmbeddingInvalid(
                    f"Of {len(set(ids))} memories, which are stored, some can't be embedded: "
                    f"{run.failed()}."
                )
        else:
            schedule(self.collection, ids)
        return ids

    remember.alters_data = True  # type: ignore[attr-defined]

    def embed_pending(self) -> int:
        """Embed what waits, now, and return how many memories were embedded.

        Texts that can't be embedded are noted on their records and don't hold up the rest. Raises
        EmbeddingUnavailable when the provider fails; what it delivered before is kept.
        """
        from .embedding import embed_waiting

        return embed_waiting(default_store(), self.collection).embedded

    embed_pending.alters_data = True  # type: ignore[attr-defined]

    # Recalling

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        budget: int | None = None,
        min_score: float | None = None,
        weighting: Weighting | None = None,
        filter: Mapping[str, Any] | None = None,
        continuing: Recollection | str | None = None,
    ) -> Recollection:
        """Return what matters to ``query``, inside ``budget`` tokens.

        ``limit``: at most so many memories; by default ``RECALL["limit"]``, but with a budget only
        the budget and the store's candidates cap the result. ``budget``: what ``as_context()`` may
        take, in tokens of the configured counter. ``min_score``: from -1 to 1. ``filter``: equality
        on metadata, ``role``, ``kind`` or ``name``, a list for any of several. ``continuing``: an
        earlier recollection, or its ``to_token()``, with whose exact text the new one is to begin;
        "" for the first of a row. What is newly relevant stands behind it, all inside the budget;
        ``continued`` and ``restarted`` of the result say whether it could.

        A blank query recalls nothing, without a call. Raises EmbeddingUnavailable when the query
        can't be embedded, SpaceMismatch when memories are only embedded in another space,
        InvalidContinuation for what is of another owner or scope, and InvalidArgument and its kin
        for unusable arguments.
        """
        from .recall import recall

        return recall(
            self.collection,
            query,
            limit=limit,
            budget=budget,
            min_score=min_score,
            weighting=weighting,
            filter=filter,
            continuing=continuing,
        )

    # Forgetting

    def forget(self, ids: Iterable[str] | _Everything = EVERYTHING) -> int:
        """Erase memories by id, or all of this owner in this scope; return how many went.

        The rows, their vectors and their signatures are deleted, not marked. Raises
        InvalidIdentifier when ``ids`` is not a list of ids.
        """
        if isinstance(ids, _Everything):
            return default_store().purge(self.collection)
        return default_store().forget(self.collection, ids)

    forget.alters_data = True  # type: ignore[attr-defined]

    def forget_before(self, when: Any) -> int:
        """Erase what happened strictly before ``when``; return how many memories went.

        It counts when a thing happened, not when it was stored. Raises InvalidTimestamp.
        """
        return default_store().purge_occurred_before(self.collection, as_moment(when, "when"))

    forget_before.alters_data = True  # type: ignore[attr-defined]

    # Counting

    def count(self) -> int:
        """Count what is stored, expired memories included until they are pruned."""
        return default_store().count(self.collection)

    def pending(self) -> int:
        """Count what is stored but not yet recallable."""
        return default_store().pending(self.collection, backends.embedder().space)

    # Async twins

    async def aremember(
        self, messages: Any, metadata: Mapping[str, Any] | None = None, occurred_at: Any = None
    ) -> list[str]:
        """Like ``remember``."""
        return await sync_to_async(self.remember)(messages, metadata, occurred_at)

    async def aembed_pending(self) -> int:
        """Like ``embed_pending``."""
        return await sync_to_async(self.embed_pending)()

    async def arecall(
        self,
        query: str,
        *,
        limit: int | None = None,
        budget: int | None = None,
        min_score: float | None = None,
        weighting: Weighting | None = None,
        filter: Mapping[str, Any] | None = None,
        continuing: Recollection | str | None = None,
    ) -> Recollection:
        """Like ``recall``."""
        return await sync_to_async(self.recall)(
            query,
            limit=limit,
            budget=budget,
            min_score=min_score,
            weighting=weighting,
            filter=filter,
            continuing=continuing,
        )

    async def aforget(self, ids: Iterable[str] | _Everything = EVERYTHING) -> int:
        """Like ``forget``."""
        return await sync_to_async(self.forget)(ids)

    async def aforget_before(self, when: Any) -> int:
        """Like ``forget_before``."""
        return await sync_to_async(self.forget_before)(when)

    async def acount(self) -> int:
        """Like ``count``."""
        return await sync_to_async(self.count)()

    async def apending(self) -> int:
        """Like ``pending``."""
        return await sync_to_async(self.pending)()

    for _twin in (aremember, aembed_pending, aforget, aforget_before):
        _twin.alters_data = True  # type: ignore[union-attr]
    del _twin
