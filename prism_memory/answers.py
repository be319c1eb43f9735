"""Asking an embedder, and checking what it answers: in one place for all of them.

Whatever comes back must be one vector a text, all of one width, finite, with a direction. Whatever
is raised is reported by its type and HTTP status only, since providers quote texts and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .deadlines import DeadlineExceeded, call_until
from .embedders import Embedder
from .exceptions import EmbeddingInvalid, EmbeddingUnavailable, InvalidVector, TextRefused
from .vectors import Vector

__all__ = ["Answer", "Ask", "answers", "embed_question"]

#: A position in the texts, and its vector or the kind of failure that is the text's own.
Answer: TypeAlias = tuple[int, "Vector | str"]

#: HTTP statuses by which providers refuse a request for what it holds.
TOO_LARGE = 413
REFUSED = (400, 422)
#: A text that no provider has reason to refuse: when it is refused too, the texts are not at fault.
INNOCENT = "hello"


@dataclass(frozen=True)
class Ask:
    """How an embedder is called: until when it is waited for, and what must not be caught."""

    deadline: float | None = None
    interrupts: tuple[type[BaseException], ...] = ()

    def __call__(self, call: Callable[[], Any]) -> Any:
        """Return what the call returns; raise TextRefused or EmbeddingUnavailable otherwise."""
        failure: Exception
        try:
            return call_until(call, self.deadline)
        except self.interrupts:
            raise
        except (EmbeddingUnavailable, TextRefused) as error:
            error.__cause__ = error.__context__ = None
            failure = error
        except DeadlineExceeded:
            failure = EmbeddingUnavailable(
                "The embedding provider did not answer within INLINE_DEADLINE. "
                "What is stored stays stored."
            )
        except Exception as error:  # noqa: BLE001 - an embedder may raise anything
            failure = _without_its_words(error)
        # Outside of the handler, so that the original is not chained: tracebacks end up in logs.
        raise failure


def embed_question(embedder: Embedder, text: str) -> Vector:
    """Return the checked vector of a query.

    Raises EmbeddingUnavailable when the embedder fails or refuses, EmbeddingInvalid when what it
    returns is no usable vector.
    """
    failure: EmbeddingUnavailable
    try:
        if type(embedder).embed_query is not Embedder.embed_query:
            return Vector.of(Ask()(lambda: embedder.embed_query(text)))
        rows = Ask()(lambda: embedder.embed([text]))  # the default would not look at the count
        if not _miscounted(rows, 1):
            return Vector.of(rows[0])
        failure = EmbeddingInvalid(f"The embedder returned {len(rows)} vectors for one query.")
    except TextRefused as refusal:
        failure = EmbeddingUnavailable(
            f"The embedding provider refused the query, a str of {len(text)} characters: "
            f"{refusal.kind}."
        )
    except InvalidVector as error:
        failure = EmbeddingInvalid(f"The embedder's vector of the query is unusable. {error}")
    raise failure


def answers(embedder: Embedder, texts: Sequence[str], ask: Ask) -> Iterator[list[Answer]]:
    """Yield what each call of the embedder brought, until every text has a vector or a failure.

    One call, if all goes well. A batch that is refused is split until the texts at fault are found,
    unless the provider refuses just anything. Raises EmbeddingUnavailable or EmbeddingInvalid when
    the provider is at fault; what was yielded before is paid for, and good.
    """
    trusted = False
    parts = [list(range(len(texts)))]
    while parts:
        part = parts.pop(0)
        try:
            rows = ask(lambda part=part: embedder.embed([texts[i] for i in part]))  # type: ignore[misc]
            failure = _miscounted(rows, len(part))
        except TextRefused as refusal:
            rows, failure = None, refusal.kind
        if not failure:
            trusted = True
            checked, rows = _checked(part, rows), None  # a million floats, which nobody needs twice
            yield checked
            continue
        if not trusted:
            _refuse_if_it_refuses_anything(embedder, ask, failure)
            trusted = True
        if len(part) == 1:
            yield [(part[0], failure)]
        else:
            middle = len(part) // 2
            parts[:0] = [part[:middle], part[middle:]]


def _refuse_if_it_refuses_anything(embedder: Embedder, ask: Ask, failure: str) -> None:
    """Ask for one innocent text before a batch of a hundred is taken apart."""
    try:
        rows = ask(lambda: embedder.embed([INNOCENT]))
    except TextRefused as refusal:
        kind = refusal.kind
    else:
        if not _miscounted(rows, 1):
            return
        raise EmbeddingInvalid(f"The embedding provider answers any text wrongly: {failure}.")
    raise EmbeddingUnavailable(f"The embedding provider refuses any text: {kind}.")


def _miscounted(rows: Any, expected: int) -> str:
    try:
        count = len(rows)
    except TypeError:
        raise EmbeddingInvalid(
            f"The embedder returned a {type(rows).__name__}, not a list of vectors."
        ) from None
    return "" if count == expected else "miscounted"


def _checked(part: Sequence[int], rows: Sequence[Any]) -> list[Answer]:
    if (vectors := Vector.many(rows)) is not None:
        return list(zip(part, vectors, strict=True))
    checked: list[Answer] = []
    for position, row in zip(part, rows, strict=True):
        try:
            checked.append((position, Vector.of(row)))
        except InvalidVector:
            checked.append((position, "no vector" if row is None else "unusable vector"))
    widths = sorted({len(vector) for _, vector in checked if isinstance(vector, Vector)})
    if len(widths) > 1:
        raise EmbeddingInvalid(f"The embedder returned vectors of different widths: {widths}.")
    return checked


def _without_its_words(error: Exception) -> EmbeddingUnavailable | TextRefused:
    status = getattr(error, "status_code", None)
    if "ContextWindow" in type(error).__qualname__ or status == TOO_LARGE:
        return TextRefused("too long")
    if status in REFUSED:
        return TextRefused(f"refused with HTTP {status}")
    http = f" (HTTP {status})" if isinstance(status, int) else ""
    return EmbeddingUnavailable(
        f"The embedding provider failed with {type(error).__module__}.{type(error).__qualname__}"
        f"{http}. What is stored stays stored."
    )
