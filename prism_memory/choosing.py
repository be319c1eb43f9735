"""Which of the ranked memories a recollection holds: by limit, by budget, or behind another's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .budget import fit
from .continuing import Previous
from .recollection import Recalled, Recollection

if TYPE_CHECKING:
    from .tokens import TokenCounter

__all__ = ["Bounds", "Chosen", "behind", "choose"]


@dataclass(frozen=True)
class Bounds:
    """How much is recalled. ``share`` of the budget is what one recall may choose to add."""

    limit: int | None
    budget: int | None
    share: float
    counter: TokenCounter


@dataclass(frozen=True)
class Chosen:
    """What a recollection holds: blocks of earlier recalls, what is added, and how it came."""

    added: Sequence[Recalled]
    earlier: Sequence[Sequence[Recalled]] = ()
    continued: bool = False
    restarted: str = ""


def choose(ranked: Sequence[Recalled], bounds: Bounds) -> Chosen:
    """The best within limit and budget."""
    if bounds.budget is None:
        return Chosen(ranked[: bounds.limit])
    kept = fit(ranked, budget=bounds.budget, counter=bounds.counter, limit=bounds.limit)
    return Chosen(kept)


def behind(
    previous: Previous | None,
    ranked: Sequence[Recalled],
    members: Mapping[str, Recalled],
    space: str,
    bounds: Bounds,
) -> Chosen:
    """What a first recall would choose within its share, behind what ``previous`` holds.

    ``members``: by key, those of ``previous`` that are still there. What is chosen and no member
    is appended, all of it or nothing: when it does not fit any more, or a member is gone or
    changed, it is the first of a new row.
    """
    budget = bounds.budget or 0
    share = int(budget * bounds.share)
    chosen = fit(ranked, budget=share, counter=bounds.counter, limit=bounds.limit)
    if previous is None or not previous.keys:
        return Chosen(chosen)
    if problem := previous.problem(members, space):
        return Chosen(chosen, restarted=problem)
    earlier = previous.restored(members)
    held = {memory.id for memory in members.values()}
    new = [memory for memory in chosen if memory.id not in held]
    if new:
        taken = fit(new, budget=budget, counter=bounds.counter, earlier=earlier)
        fits = len(taken) == len(new)
    else:
        fits = bounds.counter.count(Recollection(earlier=earlier).as_context()) <= budget
    if fits:
        return Chosen(new, earlier, continued=True)
    return Chosen(chosen, restarted="full")
