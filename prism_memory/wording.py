"""How far a text uses a query's words: BM25 over the candidates of one recall.

The formula is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009), with the idf that is never negative, ln(1 + (N − df + ½) / (df + ½)). Document
frequencies and the mean length are taken among the candidates, so that nothing is indexed. The sum
over the query's distinct words is divided by the most that it could be, at infinitely many uses of
every word: so a score means the same from query to query, and one that nothing answers scores low
everywhere. Inverse frequencies make a rare word of the query count for more than a common one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .words import words

__all__ = ["K1", "B", "Wording"]

#: How soon repeats of a word stop to count, and how much a text's length does: the usual values.
K1 = 1.2
B = 0.75


class Wording:
    """Scores texts against a query, by frequencies among some candidates; 0 to 1.

    ``scores`` are the candidates' own, in their order.
    """

    def __init__(self, query: str, candidates: Sequence[str], *, language: str | None) -> None:
        self._language = language
        self._terms = frozenset(words(query, language))
        counted = [self._count(text) for text in candidates]
        self._mean = sum(length for length, _ in counted) / len(counted) if counted else 0.0
        self._idf = {term: _idf(term, counted) for term in sorted(self._terms)}
        self._most = sum(self._idf.values()) * (K1 + 1)
        self.scores = [self._score(length, uses) for length, uses in counted]

    def score(self, text: str) -> float:
        """The score of any text, candidate or not."""
        return self._score(*self._count(text))

    def _count(self, text: str) -> tuple[int, dict[str, int]]:
        """The number of a text's words, and how often it uses those of the query."""
        if not self._terms:
            return 0, {}
        found = words(text, self._language)
        uses: dict[str, int] = {}
        for word in found:
            if word in self._terms:
                uses[word] = uses.get(word, 0) + 1
        return len(found), uses

    def _score(self, length: int, uses: dict[str, int]) -> float:
        if not uses:
            return 0.0
        norm = K1 * (1 - B + B * length / self._mean) if self._mean else K1
        # In one order, so that the last bit does not depend on where a word stands.
        total = sum(
            self._idf[term] * uses[term] * (K1 + 1) / (uses[term] + norm) for term in sorted(uses)
        )
        return min(1.0, total / self._most)


def _idf(term: str, counted: Sequence[tuple[int, dict[str, int]]]) -> float:
    frequency = sum(term in uses for _, uses in counted)
    return math.log(1 + (len(counted) - frequency + 0.5) / (frequency + 0.5))
