"""From texts to checked vectors: what is stored, and what is asked.

Whatever an embedder returns is checked here, in one place for all of them: one vector a text, all
of one width, finite, with a direction.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import backends
from .embedders import Embedder
from .exceptions import EmbeddingInvalid, EmbeddingUnavailable, InvalidVector
from .vectors import Vector

if TYPE_CHECKING:
    from .stores import VectorStore

__all__ = ["embed_texts", "embed_waiting"]


def embed_texts(
    embedder: Embedder, texts: Sequence[str], *, deadline: float | None = None
) -> list[Vector]:
    """Return one checked vector a text, from one call of the embedder.

    ``deadline`` is a ``time.monotonic()`` after which the answer is no longer waited for. Raises
    EmbeddingUnavailable when the call fails or takes too long, and EmbeddingInvalid when it
    returns anything but one usable vector a text.
    """
    rows = _answer(lambda: embedder.embed(list(texts)), deadline)
    return _checked(rows, len(texts))


def embed_question(embedder: Embedder, text: str) -> Vector:
    """Return the checked vector of a query. Raises like ``embed_texts``."""
    if type(embedder).embed_query is Embedder.embed_query:  # it would not look at the count
        return embed_texts(embedder, [text])[0]
    return _checked([_answer(lambda: embedder.embed_query(text), None)], 1)[0]


def embed_waiting(
    store: VectorStore,
    collection: str,
    *,
    ids: Iterable[str] | None = None,
    deadline: float | None = None,
    progress: Callable[[int], object] | None = None,
) -> int:
    """Embed what waits in a collection, or those of ``ids`` that wait; return how many were.

    One call of the embedder a batch, oldest first. No transaction of ours is open while it works,
    and its vectors are attached only to records that still exist with the text that was embedded.
    ``progress`` is told after every batch how many it attached. Raises EmbeddingUnavailable or
    EmbeddingInvalid; batches before the failing one are kept.
    """
    embedder = backends.embedder()
    only = None if ids is None else set(ids)
    embedded = 0
    while True:
        waiting = store.unembedded(collection, embedder.batch_size, space=embedder.space, ids=only)
        if not waiting:
            return embedded
        texts = {record.id: record.embedded_text for record in waiting}
        vectors = embed_texts(embedder, list(texts.values()), deadline=deadline)
        attached = store.attach(
            collection,
            dict(zip(texts, vectors, strict=True)),
            embedder.space,
            texts=texts,
        )
        embedded += attached
        if progress is not None:
            progress(attached)
        if only is not None:
            only -= texts.keys()
        elif not attached:  # all of them were rewritten meanwhile; their writers see to them
            return embedded


def _checked(rows: Any, expected: int) -> list[Vector]:
    try:
        count = len(rows)
    except TypeError:
        raise EmbeddingInvalid(
            f"The embedder returned a {type(rows).__name__}, not a list of vectors."
        ) from None
    if count != expected:
        raise EmbeddingInvalid(f"The embedder returned {count} vectors for {expected} texts.")
    vectors = []
    for position, row in enumerate(rows):
        try:
            vectors.append(Vector.of(row))
        except InvalidVector as error:
            raise EmbeddingInvalid(
                f"The embedder's vector {position} of {count} is unusable. {error}"
            ) from None
    widths = sorted({len(vector) for vector in vectors})
    if len(widths) > 1:
        raise EmbeddingInvalid(f"The embedder returned vectors of different widths: {widths}.")
    return vectors


def _answer(call: Callable[[], Any], deadline: float | None) -> Any:
    """Return what the embedder answers, or raise EmbeddingUnavailable without its words.

    Providers quote texts and keys in their errors, so neither the message nor the chain of
    exceptions may travel on; its type and HTTP status do.
    """
    answer, failure = _call(call) if deadline is None else _call_until(call, deadline)
    if failure is None:
        return answer
    if isinstance(failure, EmbeddingUnavailable):
        failure.__cause__ = failure.__context__ = None
        raise failure
    status = getattr(failure, "status_code", None)
    raise EmbeddingUnavailable(
        f"The embedding provider failed with {type(failure).__module__}."
        f"{type(failure).__qualname__}{f' (HTTP {status})' if isinstance(status, int) else ''}. "
        "What is stored stays stored."
    )


def _call(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001 - an embedder may raise anything
        return None, error


def _call_until(call: Callable[[], Any], deadline: float) -> tuple[Any, Exception | None]:
    """Like ``_call``, but not waiting past the deadline.

    HTTP clients take a time-out per attempt and then retry, so only another thread keeps a total.
    The abandoned call ends by itself; as a daemon its thread does not hold up the process.
    """
    late = EmbeddingUnavailable(
        "The embedding provider did not answer within INLINE_DEADLINE. What is stored stays stored."
    )
    if deadline <= time.monotonic():  # no call is paid for whose answer nobody waits for
        return None, late
    results: list[tuple[Any, Exception | None]] = []
    context = contextvars.copy_context()
    thread = threading.Thread(
        target=lambda: results.append(context.run(_call, call)),
        name="prism-memory-embed",
        daemon=True,
    )
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    return results[0] if results else (None, late)
