"""How much each part counts in the score of a recalled memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prism_memory.exceptions import InvalidArgument

__all__ = ["CONVERSATION", "Weighting"]

WEIGHTS: Final = ("relevance", "recency", "wording", "surroundings")


@dataclass(frozen=True, slots=True)
class Weighting:
    """The mix of parts that orders recalled memories.

    ``relevance`` is the likeness of meaning, ``recency`` of time, ``wording`` of the words used,
    and ``surroundings`` the score of what was said just before or after. They are shares of one
    whole: only their ratios matter, and once constructed they sum to 1 (``Weighting(3, 1)`` has
    0.75 and 0.25). ``half_life`` is the age, in seconds, at which recency has fallen to one half.

    Raises ``InvalidArgument`` for a weight that is negative, not finite or no number, for weights
    of zero throughout, for surroundings alone, and for a half-life that is not above zero.
    """

    relevance: float = 1.0
    recency: float = 0.0
    wording: float = 0.0
    surroundings: float = 0.0
    half_life: float = 604800

    def __post_init__(self) -> None:
        weights = [_number(name, getattr(self, name)) for name in WEIGHTS]
        half_life = _number("half_life", self.half_life)
        largest = max(weights)
        # Scaled to at most 1 first: the sum of two huge weights would overflow.
        weights = [weight / largest for weight in weights] if largest else weights
        if not max(weights[:3]):
            given = ", ".join(f"{name}={getattr(self, name)!r}" for name in WEIGHTS)
            raise InvalidArgument(
                f"relevance, recency and wording are all zero ({given}): one of them has to count. "
                "Surroundings are made of the other three."
            )
        if not half_life:
            raise InvalidArgument(
                f"half_life={self.half_life!r} is not a number of seconds above zero."
            )
        total = sum(weights)
        for name, weight in zip(WEIGHTS, weights, strict=True):
            object.__setattr__(self, name, weight / total)
        object.__setattr__(self, "half_life", half_life)

    def recency_of(self, occurred_at: datetime, now: datetime) -> float:
        """The recency of something that happened at ``occurred_at``, from 1.0 (now) towards 0.0.

        It halves with every half-life. What lies in the future counts as happening now: a clock
        that is ahead must not lift a memory above everything else.
        """
        age = (now - occurred_at).total_seconds()
        return float(0.5 ** (age / self.half_life)) if age > 0 else 1.0

    def score(
        self,
        similarity: float,
        recency: float,
        wording: float = 0.0,
        surroundings: float = 0.0,
    ) -> float:
        """The weighted mean of the parts: similarity and surroundings from −1 to 1, others from 0.

        With relevance alone it is the similarity, bit for bit.
        """
        if not (self.recency or self.wording or self.surroundings):
            return similarity  # adding 0.0 would turn −0.0 into 0.0
        score = self.relevance * similarity + self.recency * recency
        if self.wording:
            score += self.wording * wording
        if self.surroundings:
            score += self.surroundings * surroundings
        return max(-1.0, min(1.0, score))  # shares may sum to a bit more than 1

    def without_surroundings(self) -> Weighting:
        """The same mix of the other parts: what neighbours are scored by."""
        return Weighting(self.relevance, self.recency, self.wording, 0.0, self.half_life)


def _number(name: str, value: object) -> float:
    """``value`` as a finite float that is not negative, or ``InvalidArgument``."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number) and number >= 0:
            return number + 0.0  # −0.0 becomes 0.0
    raise InvalidArgument(f"{name}={value!r} is not a finite number of zero or more.")


#: For talk between people and assistants: words count twice as much as meaning, and the memories
#: beside the best ones are lifted. ``docs/recalling.md`` has what it gains, and on what.
CONVERSATION: Final = Weighting(relevance=2, recency=0, wording=4, surroundings=3)
