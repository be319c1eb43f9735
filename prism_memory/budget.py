"""Which of the ranked memories fit a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from prism_memory.context import HEADER, LATER, SEPARATOR
from prism_memory.exceptions import InvalidArgument
from prism_memory.recollection import Recalled, Recollection

if TYPE_CHECKING:
    from prism_memory.tokens import TokenCounter

__all__ = ["fit"]


def fit(
    ranked: Sequence[Recalled],
    *,
    budget: int,
    counter: TokenCounter,
    limit: int | None = None,
    earlier: Iterable[Iterable[Recalled]] = (),
) -> list[Recalled]:
    """The memories of ``ranked``, best first, whose text stays within ``budget`` tokens.

    They are taken in the order given, at most ``limit`` of them. One that does not fit is skipped,
    and a shorter one after it may still be taken. The whole of ``as_context()`` of what is
    returned, header included, never counts more than ``budget``; where not even one memory fits,
    nothing is returned. ``earlier``: blocks of memories that the text begins with anyway.

    Raises ``InvalidArgument`` for a budget or limit that is not a whole number of zero or more.
    """
    _refuse_unless_whole("budget", budget)
    if limit is not None:
        _refuse_unless_whole("limit", limit)
    taken: list[Recalled] = []
    # Each entry is counted once and the whole once more, because counting the growing whole for
    # every candidate takes time in the square of it.
    before = Recollection(earlier=earlier)
    total = counter.count(f"{before.as_context()}{SEPARATOR}{LATER}" if before else HEADER)
    if total >= budget:
        return taken
    for memory in ranked:
        if limit is not None and len(taken) >= limit:
            break
        cost = counter.count(SEPARATOR + memory.entry.render())
        if total + cost <= budget:
            taken.append(memory)
            total += cost
    # A tokenizer sees other pieces in the whole than in its parts, so the sum is an estimate.
    while taken and _whole(taken, before, counter) > budget:
        taken.pop()
    return taken


def _whole(taken: Sequence[Recalled], before: Recollection, counter: TokenCounter) -> int:
    return counter.count(Recollection(taken, earlier=before.blocks).as_context())


def _refuse_unless_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidArgument(f"{name}={value!r} is not a whole number of zero or more.")
