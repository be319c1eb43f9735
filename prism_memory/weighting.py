"""How much likeness and how much recency count in the score of a recalled memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from prism_memory.exceptions import InvalidArgument

__all__ = ["Weighting"]


@dataclass(frozen=True, slots=True)
class Weighting:
    """The mix of relevance and recency that orders recalled memories.

    ``relevance`` and ``recency`` are shares of one whole: only their ratio matters, and once
    constructed they sum to 1 (``Weighting(3, 1)`` has 0.75 and 0.25). ``half_life`` is the age,
    in seconds, at which a memory's recency has fallen to one half.

    Raises ``InvalidArgument`` for a weight that is negative, not finite or no number, for two
    weights of zero, and for a half-life that is not above zero.
    """

    relevance: float = 1.0
    recency: float = 0.0
    half_life: float = 604800

    def __post_init__(self) -> None:
        relevance = _number("relevance", self.relevance)
        recency = _number("recency", self.recency)
        half_life = _number("half_life", self.half_life)
        largest = max(relevance, recency)
        if not largest:
            raise InvalidArgument(
                f"relevance and recency are both zero (relevance={self.relevance!r}, "
                f"recency={self.recency!r}): one of them has to count."
            )
        if not half_life:
            raise InvalidArgument(
                f"half_life={self.half_life!r} is not a number of seconds above zero."
            )
        # Scaled to at most 1 first: the sum of two huge weights would overflow.
        relevance, recency = relevance / largest, recency / largest
        object.__setattr__(self, "relevance", relevance / (relevance + recency))
        object.__setattr__(self, "recency", recency / (relevance + recency))
        object.__setattr__(self, "half_life", half_life)

    def recency_of(self, occurred_at: datetime, now: datetime) -> float:
        """The recency of something that happened at ``occurred_at``, from 1.0 (now) towards 0.0.

        It halves with every half-life. What lies in the future counts as happening now: a clock
        that is ahead must not lift a memory above everything else.
        """
        age = (now - occurred_at).total_seconds()
        return float(0.5 ** (age / self.half_life)) if age > 0 else 1.0

    def score(self, similarity: float, recency: float) -> float:
        """The weighted mean of a similarity (−1 to 1) and a recency (0 to 1).

        With relevance alone it is the similarity, bit for bit.
        """
        if not self.recency:
            return similarity  # adding 0.0 would turn −0.0 into 0.0
        return self.relevance * similarity + self.recency * recency


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
