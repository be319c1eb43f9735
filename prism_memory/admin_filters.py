"""The admin's filters. None asks the table which values there are: it may have millions of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import SimpleListFilter
from django.utils.translation import gettext_lazy as _

from .messages import REMEMBERED
from .models import MemoryKind

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest

    from .managers import MemoryQuerySet

__all__ = [
    "EmbeddedFilter",
    "ExpiredFilter",
    "FailedFilter",
    "KindFilter",
    "OwnedFilter",
    "RoleFilter",
]


class YesNoFilter(SimpleListFilter):
    """Keeps the rows of which something is true, or those of which it isn't."""

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, Any]]:
        return [("yes", _("Yes")), ("no", _("No"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() not in {"yes", "no"}:
            return queryset
        return self.yes(queryset) if self.value() == "yes" else self.no(queryset)

    def yes(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        raise NotImplementedError

    def no(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        raise NotImplementedError


class EmbeddedFilter(YesNoFilter):
    """Whether a memory has a vector in the space that is searched now."""

    title = _("can be found")
    parameter_name = "embedded"

    def yes(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        return memories.embedded(_space())

    def no(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        return memories.unembedded(_space())


class FailedFilter(YesNoFilter):
    """Whether embedding failed for a memory's own text, when it was tried last."""

    title = _("can't be embedded")
    parameter_name = "failed"

    def yes(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        return memories.exclude(failure="")

    def no(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        return memories.filter(failure="")


class ExpiredFilter(YesNoFilter):
    title = _("expired")
    parameter_name = "expired"

    def yes(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        return memories.expired()

    def no(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        return memories.live()


class OwnedFilter(YesNoFilter):
    """Memories have an owner; passages of named collections don't."""

    title = _("has an owner")
    parameter_name = "owned"

    def yes(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        return memories.exclude(owner_key="")

    def no(self, memories: MemoryQuerySet) -> MemoryQuerySet:
        return memories.filter(owner_key="")


class ValueFilter(SimpleListFilter):
    """Keeps the rows that have one of the app's own values in a column."""

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(**self.used_parameters)


class RoleFilter(ValueFilter):
    title = _("role")
    parameter_name = "role"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, Any]]:
        return [(role, role) for role in REMEMBERED]


class KindFilter(ValueFilter):
    title = _("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, Any]]:
        return list(MemoryKind.choices)


def _space() -> str:
    from . import backends

    return backends.embedder().space
