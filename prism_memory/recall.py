"""Recalling: from a query to a Recollection."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from . import backends, signals
from .choosing import Bounds, behind, choose
from .conf import settings
from .continuing import Previous
from .digests import digest
from .exceptions import InvalidArgument
from .filters import Filter
from .queries import query_vector
from .recollection import Recollection
from .scoring import reserve, weigh
from .stores.contract import Matches, VectorQuery, VectorStore
from .stores.records import check_score, check_whole
from .stores.registry import default_store
from .texts import is_blank, unencodable
from .weighting import Weighting

__all__ = ["recall"]

#: Matches more than the limit, where relevance alone counts.
TIES = 8


def recall(
    collection: str,
    query: str,
    *,
    limit: int | None,
    budget: int | None,
    min_score: float | None,
    weighting: Weighting | None,
    filter: Mapping[str, Any] | None,
    continuing: Recollection | str | None = None,
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
    previous = None
    if continuing is not None:
        if budget is None:
            raise InvalidArgument("continuing needs a budget, which what is recalled can fill.")
        previous = Previous.of(continuing, collection)
    bounds = Bounds(limit, budget, defaults["first_share"], backends.token_counter())
    if is_blank(query) or limit == 0 or budget == 0:
        return Recollection(counter=bounds.counter)

    store = default_store()
    space = backends.embedder().space
    now = datetime.now(UTC)
    question = VectorQuery(
        [collection],
        query_vector(query),
        space,
        limit=_wanted(store, limit, weighting),
        filter=conditions,
        occurred_since=_oldest_kept(now),
        reserve=reserve(store, weighting),
    )
    matches = store.search(question)
    keys = {digest("record", *match.address) for match in matches} if previous else set()
    absent = [key for key in previous.keys if key not in keys] if previous else []
    others = store.look_up(question, absent) if absent else Matches()
    weighed, read = weigh(
        store,
        question,
        query,
        matches,
        weighting,
        language=defaults["language"],
        now=now,
        others=others,
    )
    ranked = [memory for memory in weighed if min_score is None or memory.score >= min_score]
    if continuing is None:
        chosen = choose(ranked, bounds)
    else:
        held = set(previous.keys) if previous else set()
        by_key = {digest("record", collection, memory.id): memory for memory in weighed}
        members = {key: memory for key, memory in by_key.items() if key in held}
        chosen = behind(previous, ranked, members, space, bounds)
    read += matches.vectors_scored + others.vectors_scored
    found = Recollection(
        chosen.added,
        counter=bounds.counter,
        rows_ranked=matches.rows_ranked,
        vectors_scored=read,
        earlier=chosen.earlier,
        origin=(collection, space),
        continued=chosen.continued,
        restarted=chosen.restarted,
    )
    signals.recalled.send_robust(
        sender=type(store),
        collection=collection,
        count=len(found),
        rows_ranked=matches.rows_ranked,
        vectors_scored=read,
    )
    return found


def _weighting(weighting: object, defaults: Mapping[str, Any]) -> Weighting:
    if weighting is None:
        names = ("relevance", "recency", "wording", "surroundings", "half_life")
        return Weighting(**{name: defaults[name] for name in names})
    if not isinstance(weighting, Weighting):
        raise InvalidArgument(
            f"weighting is of type {type(weighting).__name__}. Pass a prism_memory.Weighting."
        )
    return weighting


def _wanted(store: VectorStore, limit: int | None, weighting: Weighting) -> int:
    """How many matches the weighting chooses among. The store ranks by similarity alone."""
    if weighting.wording or weighting.surroundings or limit is None:
        # What a search reads anyway: frequencies of words need many, and cost no more reading.
        return max(store.candidates - reserve(store, weighting), limit or 0, 1)
    wanted: int = limit * settings().recall["overfetch"]
    if not weighting.recency:
        # The order is that of the search; a few more, because the younger of equals comes first.
        wanted = min(wanted, limit + TIES)
    return min(wanted, max(store.candidates, limit))


def _oldest_kept(now: datetime) -> datetime | None:
    """What happened at or before this is not recalled, whatever was promised when it was stored."""
    retention = settings().retention
    return None if retention is None else now - timedelta(seconds=retention)
