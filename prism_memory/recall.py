"""Recalling: from a query to a Recollection."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from . import backends, signals
from .budget import fit
from .conf import settings
from .exceptions import InvalidArgument
from .filters import Filter
from .queries import query_vector
from .recollection import Recalled, Recollection
from .stores.contract import VectorMatch, VectorQuery, check_score, check_whole
from .stores.registry import default_store
from .texts import is_blank, unencodable
from .weighting import Weighting

__all__ = ["recall"]


def recall(
    collection: str,
    query: str,
    *,
    limit: int | None,
    budget: int | None,
    min_score: float | None,
    weighting: Weighting | None,
    filter: Mapping[str, Any] | None,
) -> Recollection:
    """Search a collection, weigh what was found, and keep what fits. See ``OwnerMemory.recall``."""
    if not isinstance(query, str):
        raise InvalidArgument(f"query is of type {type(query).__name__}. Pass a string.")
    if reason := unencodable(query):
        raise InvalidArgument(f"query, a str of {len(query)} characters, has {reason}.")
    check_whole("limit", limit)
    check_whole("budget", budget)
    check_score("min_score", min_score)
    conditions = Filter.of(filter)
    defaults = settings().recall
    weighting = _weighting(weighting, defaults)
    min_score = defaults["min_score"] if min_score is None else min_score
    if limit is None and budget is None:
        limit = defaults["limit"]
    counter = backends.token_counter()
    if is_blank(query) or limit == 0 or budget == 0:
        return Recollection(counter=counter)

    store = default_store()
    # The store ranks by similarity alone, so weighing needs more than the limit to choose from.
    wanted = store.candidates
    if limit is not None:
        wanted = min(limit * defaults["overfetch"], max(store.candidates, limit))
    now = datetime.now(UTC)
    matches = store.search(
        VectorQuery(
            [collection],
            query_vector(query),
            backends.embedder().space,
            limit=wanted,
            filter=conditions,
            occurred_since=_oldest_kept(now),
        )
    )
    ranked = [_weighed(match, weighting, now) for match in matches]
    ranked = [memory for memory in ranked if min_score is None or memory.score >= min_score]
    ranked.sort(key=lambda memory: memory.rank)
    if budget is None:
        ranked = ranked[:limit]
    else:
        ranked = fit(ranked, budget=budget, counter=counter, limit=limit)
    signals.recalled.send_robust(
        sender=type(store),
        collection=collection,
        count=len(ranked),
        rows_ranked=matches.rows_ranked,
        vectors_scored=matches.vectors_scored,
    )
    return Recollection(
        ranked,
        counter=counter,
        rows_ranked=matches.rows_ranked,
        vectors_scored=matches.vectors_scored,
    )


def _weighting(weighting: object, defaults: Mapping[str, Any]) -> Weighting:
    if weighting is None:
        return Weighting(defaults["relevance"], defaults["recency"], defaults["half_life"])
    if not isinstance(weighting, Weighting):
        raise InvalidArgument(
            f"weighting is of type {type(weighting).__name__}. Pass a prism_memory.Weighting."
        )
    return weighting


def _oldest_kept(now: datetime) -> datetime | None:
    """What happened at or before this is not recalled, whatever was promised when it was stored."""
    retention = settings().retention
    return None if retention is None else now - timedelta(seconds=retention)


def _weighed(match: VectorMatch, weighting: Weighting, now: datetime) -> Recalled:
    recency = weighting.recency_of(match.occurred_at, now)
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
        score=weighting.score(match.similarity, recency),
    )
