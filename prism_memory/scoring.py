"""Weighing what a search found: every part of a score, over the rows that it read anyway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from .recollection import Recalled, rank_of
from .stores.contract import Matches, Neighbours, VectorMatch, VectorQuery, VectorStore
from .surroundings import FEW, MOST, STEPS, WITHIN, surroundings
from .weighting import Weighting
from .wording import Wording

__all__ = ["reserve", "weigh"]

Address: TypeAlias = tuple[str, str]


def reserve(store: VectorStore, weighting: Weighting) -> int:
    """How many of a store's candidates a search leaves unread, for neighbours to be read."""
    return min(MOST, store.candidates // 4) if weighting.surroundings else 0


def weigh(
    store: VectorStore,
    query: VectorQuery,
    text: str,
    matches: Matches,
    weighting: Weighting,
    *,
    language: str | None,
    now: datetime,
    others: Sequence[VectorMatch] = (),
) -> tuple[list[Recalled], int]:
    """Return the matches of one collection and those beside the best of them, best first.

    ``others``, which were no matches, are weighed too, and are not read again. Frequencies of words
    are the matches' alone. Also returns how many vectors were read for it.
    """
    scale = _Scale(text, matches, weighting, language, now)
    weighed = [scale.weigh(match) for match in matches]
    weighed += [scale.weigh(match) for match in others]
    beside = Neighbours()
    lent: dict[Address, float] = {}
    if weighting.surroundings:
        beside = _beside(store, query, matches, weighed, others)
        weighed += [scale.weigh(match) for match in beside.found]
        lent = surroundings(beside.pairs, {each.match.address: each.score for each in weighed})
    found = [each.recalled(weighting, lent.get(each.match.address, 0.0)) for each in weighed]
    return sorted(found, key=lambda memory: memory.rank), beside.found.vectors_scored


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A match with all parts of its score but the surroundings."""

    match: VectorMatch
    recency: float
    wording: float
    score: float

    @property
    def rank(self) -> tuple[float, timedelta, str]:
        return rank_of(self.score, self.match.occurred_at, self.match.id)

    def recalled(self, weighting: Weighting, lent: float) -> Recalled:
        match = self.match
        score = self.score
        if weighting.surroundings:
            score = weighting.score(match.similarity, self.recency, self.wording, lent)
        return Recalled(
            id=match.id,
            content=match.content,
            role=match.role,
            name=match.name,
            kind=match.kind,
            occurred_at=match.occurred_at,
            metadata=match.metadata,
            similarity=match.similarity,
            recency=self.recency,
            score=score,
            wording=self.wording,
            surroundings=lent,
        )


class _Scale:
    """What all matches of one recall are scored by, but for their surroundings."""

    def __init__(
        self,
        text: str,
        candidates: Sequence[VectorMatch],
        weighting: Weighting,
        language: str | None,
        now: datetime,
    ) -> None:
        self.weighting = weighting.without_surroundings()
        self.now = now
        self.wording: Wording | None = None
        self.known: dict[Address, float] = {}
        if weighting.wording:
            texts = [match.embedded_text for match in candidates]
            self.wording = Wording(text, texts, language=language)
            addresses = (match.address for match in candidates)
            self.known = dict(zip(addresses, self.wording.scores, strict=True))

    def weigh(self, match: VectorMatch) -> _Weighed:
        wording = 0.0
        if self.wording:
            known = self.known.get(match.address)
            wording = self.wording.score(match.embedded_text) if known is None else known
        recency = self.weighting.recency_of(match.occurred_at, self.now)
        score = self.weighting.score(match.similarity, recency, wording)
        return _Weighed(match, recency, wording, score)


def _beside(
    store: VectorStore,
    query: VectorQuery,
    matches: Matches,
    weighed: Sequence[_Weighed],
    others: Sequence[VectorMatch],
) -> Neighbours:
    """Ask who stands beside the best few. They are read within the bound of the search."""
    few = min(FEW, max(1, store.candidates // 16))
    best = sorted(weighed[: len(matches)], key=lambda each: each.rank)[:few]
    bound = max(store.candidates, query.limit or 0)
    return store.neighbours(
        query,
        [each.match for each in best],
        known=[*matches, *others],
        steps=STEPS,
        within=WITHIN,
        most=max(0, min(MOST, bound - len(matches))),
    )
