"""What stands beside the best: an answer is often the sentence after the one that matches.

Of a conversation, the reply matters as much as the question that it answers, though it may share
neither its words nor its meaning with what is asked. So a memory's surroundings are the best score
(of the other parts) among those up to two steps before and after it in its collection, two steps
away counting 0.8 of it, if they are within half an hour. Who stands beside whom is only looked up
for the best few candidates, which both lend their scores and borrow; those beside them that were
no candidates are read, and join.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

__all__ = ["FEW", "MOST", "STEPS", "WITHIN", "surroundings"]

#: How many of the best candidates are looked around, at most; and how many memories read for that.
FEW: Final = 8
MOST: Final = 32
#: How far neighbours are off: places in the order of time, and time itself.
STEPS: Final = 2
WITHIN: Final = timedelta(minutes=30)
#: What a score is worth one step further away.
DECAY: Final = 0.8


def surroundings(
    pairs: Iterable[tuple[tuple[str, str], tuple[str, str], int]],
    scores: Mapping[tuple[str, str], float],
) -> dict[tuple[str, str], float]:
    """The surroundings of every address that stands in a pair (one, other, steps); others have 0.

    ``scores``: of every address in the pairs, its score without surroundings, from −1 to 1.
    """
    found: dict[tuple[str, str], float] = {}
    for one, other, steps in pairs:
        worth = DECAY ** (steps - 1)
        for here, there in ((one, other), (other, one)):
            found[here] = max(found.get(here, -1.0), scores[there] * worth)
    return found
