"""Weighing what a search found: every part of a score, over the rows that it read anyway."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from .recollection import Recalled
from .stores.contract import Matches, Neighbours, VectorMatch, VectorQuery, VectorStore
from .surroundings import FEW, MOST, STEPS, WITHIN, surroundings
from .weighting import Weighting
from .wording import Wording

__all__ = ["reserve", "weigh"]


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
    weighed = {match.address: scale.weigh(match) for match in [*matches, *others]}
    if not weighting.surroundings:
        return _ranked(weighed.values()), 0
    beside = _beside(store, query, matches, weighed, others)
    weighed.update((match.address, scale.weigh(match)) for match in beside.found)
    lent = surroundings(beside.pairs, {address: each.score for address, each in weighed.items()})
    whole = [
        _surrounded(memory, weighting, lent.get(address, 0.0))
        for address, memory in weighed.items()
    ]
    return _ranked(whole), beside.found.vectors_scored


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
        self.known: dict[tuple[str, str], float] = {}
        if weighting.wording:
            texts = [match.embedded_text for match in candidates]
            self.wording = Wording(text, texts, language=language)
            addresses = (match.address for match in candidates)
            self.known = dict(zip(addresses, self.wording.scores, strict=True))

    def weigh(self, match: VectorMatch) -> Recalled:
        wording = self.known.get(match.address)
        if wording is None:
            wording = self.wording.score(match.embedded_text) if self.wording else 0.0
        recency = self.weighting.recency_of(match.occurred_at, self.now)
        return Recalled(
            id=match.id,
            content=match.content,
            role=match.role,
            name=match.name,
            kind=match.kind,
            occurred_at=match.occurred_at,
            metadata=match.metadata,
            similarity=match.similarity,
            recency=recency,
            score=self.weighting.score(match.similarity, recency, wording),
            wording=wording,
        )


def _beside(
    store: VectorStore,
    query: VectorQuery,
    matches: Matches,
    weighed: dict[tuple[str, str], Recalled],
    others: Sequence[VectorMatch],
) -> Neighbours:
    """Ask who stands beside the best few. They are read within the bound of the search."""
    few = min(FEW, max(1, store.candidates // 16))
    best = sorted(matches, key=lambda match: weighed[match.address].rank)[:few]
    bound = max(store.candidates, query.limit or 0)
    return store.neighbours(
        query,
        best,
        known=[*matches, *others],
        steps=STEPS,
        within=WITHIN,
        most=max(0, min(MOST, bound - len(matches))),
    )


def _surrounded(memory: Recalled, weighting: Weighting, lent: float) -> Recalled:
    score = weighting.score(memory.similarity, memory.recency, memory.wording, lent)
    return replace(memory, surroundings=lent, score=score)


def _ranked(memories: Iterable[Recalled]) -> list[Recalled]:
    return sorted(memories, key=lambda memory: memory.rank)
