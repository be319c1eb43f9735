"""Embedding what waits: reads records, asks the embedder, attaches by compare-and-set."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import backends, signals
from .answers import Answer, Ask, answers
from .vectors import Vector

if TYPE_CHECKING:
    from .stores import VectorStore
    from .stores.contract import Waiting

__all__ = ["Run", "embed_claimed", "embed_waiting"]

logger = logging.getLogger("prism_memory.embedding")

#: Waits as long as the embedder does.
PATIENT = Ask()
#: Seconds for which a worker has the records that it claims to itself; then others take them up.
CLAIM = 30
#: Records that are named one by one are looked up so many at a time, anew for every batch.
NAMED = 1_000
#: Seconds between looks at records that another worker has claimed.
LOOK = 0.25


@dataclass
class Run:
    """What a run brought: how many records got a vector, and which failed for their own text."""

    embedded: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    #: Whether the run stopped for lack of time, with records left.
    unfinished: bool = False

    def failed(self) -> str:
        """Say how many failed and why, without their texts."""
        kinds = Counter(self.failures.values())
        return ", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items()))


def embed_waiting(
    store: VectorStore,
    collection: str,
    *,
    ids: Iterable[str] | None = None,
    ask: Ask = PATIENT,
    progress: Callable[[int], object] | None = None,
) -> Run:
    """Embed what waits in a collection now, oldest first, or those of ``ids`` that wait.

    Also what failed before, and is not due yet. Each text is tried once. One call of the embedder a
    batch; no transaction of ours is open while it works. ``progress`` is told after every call how
    many records got a vector. Raises EmbeddingUnavailable when the provider is at fault; what it
    delivered before is kept, and so is the rest of a batch in which one text is at fault.
    """
    run = Run()
    if ids is None:
        _embed_all(store, collection, None, ask, run, progress)
        return run
    named = list(dict.fromkeys(ids))
    size = max(NAMED, backends.embedder().batch_size)
    for start in range(0, len(named), size):
        _embed_all(store, collection, set(named[start : start + size]), ask, run, progress)
    return run


def _embed_all(
    store: VectorStore,
    collection: str,
    only: set[str] | None,
    ask: Ask,
    run: Run,
    progress: Callable[[int], object] | None,
) -> None:
    embedder = backends.embedder()
    last = None
    # What failed or was rewritten still waits; going on after the last one, it is not met again.
    while batch := store.waiting(
        collection, embedder.batch_size, space=embedder.space, ids=only, after=last
    ):
        _embed(store, collection, batch, ask, run, progress)
        if len(batch) < embedder.batch_size:
            return
        last = batch[-1]


def embed_claimed(store: VectorStore, collection: str, *, ask: Ask, until: float) -> Run:
    """Embed what waits in a collection and is due, sharing it with other workers.

    A worker claims a batch for some seconds, so that two of them don't pay twice. What a killed
    worker had claimed is waited for and taken up. Stops at ``until``, a ``time.monotonic()``.
    """
    embedder = backends.embedder()
    run = Run()
    last, found = None, False
    while time.monotonic() < until:
        batch = store.claim(
            collection, embedder.batch_size, space=embedder.space, seconds=CLAIM, after=last
        )
        if fresh := [waiting for waiting in batch if waiting.id not in run.failures]:
            found = True
            try:
                _embed(store, collection, fresh, ask, run, None)
            except Exception:
                store.release(collection, [waiting.id for waiting in fresh])
                raise
        if batch:
            last = batch[-1]
        elif found:
            # Once more from the start: for what came late, was given back or rewritten meanwhile.
            last, found = None, False
        elif store.in_work(collection, space=embedder.space):
            last = None
            time.sleep(LOOK)
        else:
            return run
    run.unfinished = True
    return run


def _embed(
    store: VectorStore,
    collection: str,
    batch: Sequence[Waiting],
    ask: Ask,
    run: Run,
    progress: Callable[[int], object] | None,
) -> None:
    embedder = backends.embedder()
    for answered in answers(embedder, [record.embedded_text for record in batch], ask):
        _keep(store, collection, batch, answered, run, progress)


def _keep(
    store: VectorStore,
    collection: str,
    batch: Sequence[Waiting],
    answered: Sequence[Answer],
    run: Run,
    progress: Callable[[int], object] | None,
) -> None:
    """Attach the vectors of one call, and note on the records what their texts are at fault for."""
    vectors, failures, texts = [], {}, {}
    for position, answer in answered:
        waiting = batch[position]
        if isinstance(answer, Vector):
            vectors.append((waiting, answer))
        else:
            failures[waiting.id] = answer
            texts[waiting.id] = waiting.embedded_text
    attached = store.attach_waiting(collection, vectors, backends.embedder().space)
    run.embedded += attached
    if attached:
        signals.embedded.send_robust(sender=type(store), collection=collection, count=attached)
    if failures:
        run.failures |= failures
        store.postpone(collection, failures, texts=texts)
        logger.warning(
            "%d of %d records of %s can't be embedded: %s.",
            len(failures), len(answered), collection, Run(failures=failures).failed(),
        )  # fmt: skip
        signals.failed.send_robust(sender=type(store), collection=collection, failures=failures)
    if progress is not None:
        progress(attached)
