"""Owners whose instances no longer exist, though their memories do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import models, router
from django.db.models import Count

from ..owners import owner_of_instance
from ..transactions import id_batches

if TYPE_CHECKING:
    from ..managers import MemoryQuerySet

__all__ = ["Holding", "Verdict", "holdings", "verdicts"]

#: Owners that are looked up at a time.
PAGE = 1_000


class Verdict(models.TextChoices):
    """Whether an owner exists."""

    EXISTS = "exists"
    ORPHANED = "orphaned"
    STRING = "string"  # owners that are strings exist nowhere else
    UNKNOWN = "unknown"  # the model is not installed, or can't have this key


@dataclass(frozen=True, slots=True)
class Holding:
    """An owner, as its memories name it, and how many they are."""

    owner_key: str
    owner_model: str
    owner: str
    memories: int


def holdings(memories: MemoryQuerySet) -> Iterator[list[Holding]]:
    """Yield all owners of memories, page by page, in the order of their keys."""
    columns = ("owner_key", "owner_model", "owner")
    owners = memories.values_list(*columns).annotate(Count("pk")).order_by("owner_key")
    after = ""  # skips what nobody owns
    while page := [Holding(*row) for row in owners.filter(owner_key__gt=after)[:PAGE]]:
        yield page
        after = page[-1].owner_key


def verdicts(page: Sequence[Holding]) -> list[tuple[Holding, Verdict]]:
    """Look up which owners exist, with a query or two for each model among them."""
    by_model: dict[str, list[str]] = defaultdict(list)
    for holding in page:
        by_model[holding.owner_model].append(holding.owner)
    found = {label: _verdicts(label, keys) for label, keys in by_model.items()}
    return [(holding, found[holding.owner_model][holding.owner]) for holding in page]


def _verdicts(label: str, keys: Sequence[str]) -> dict[str, Verdict]:
    if not label:
        return dict.fromkeys(keys, Verdict.STRING)
    try:
        model = apps.get_model(label)
    except LookupError:
        model = None
    if model is None or model._meta.swapped:  # a swapped model has no table
        return dict.fromkeys(keys, Verdict.UNKNOWN)
    known = [key for key in keys if _can_have(model, key)]
    existing = _existing(model, known)
    verdict = dict.fromkeys(keys, Verdict.UNKNOWN)
    for key in known:
        verdict[key] = Verdict.EXISTS if key in existing else Verdict.ORPHANED
    return verdict


def _can_have(model: type[models.Model], key: str) -> bool:
    """Whether this is a primary key of the model, in the form in which memories name it.

    After a change of the key's type it is not, and nobody knows whom it meant.
    """
    try:
        return owner_of_instance(model, key).key == key
    except ValidationError:
        return False


def _existing(model: type[models.Model], keys: list[str]) -> set[str]:
    # On the database that is written to: to a replica, who has just signed up does not exist yet.
    using = router.db_for_write(model)
    instances = model._base_manager.using(using)
    return {
        # Compared here, because some databases take "ana" and "Ana" for the same key.
        owner_of_instance(model, pk).key
        for batch in id_batches(using, keys)
        for pk in instances.filter(pk__in=batch).values_list("pk", flat=True)
    }
