"""The admin: for looking at, read-only. What people said is shown on the page of one memory only.

Memories are changed by what is said and erased by the handle or the commands; a form that edited
a text or a vector would make the two contradict each other.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db import connections
from django.db.models import Count
from django.db.models.functions import Length
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _

from .admin_filters import (
    EmbeddedFilter,
    ExpiredFilter,
    FailedFilter,
    KindFilter,
    OwnedFilter,
    RoleFilter,
)
from .models import Embedding, Memory, Space

if TYPE_CHECKING:
    from django.db.models import Model
    from django.http import HttpRequest

    ModelAdmin = admin.ModelAdmin[Model]
else:
    ModelAdmin = admin.ModelAdmin

__all__ = ["MemoryAdmin", "SpaceAdmin"]


class ReadOnlyAdmin(ModelAdmin):
    """Shows, to those who may view, and changes nothing."""

    actions = None
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class MemoryList(ChangeList):
    """The list, without its links to dates where the database does not know our time zone.

    MySQL and MariaDB know none until their tables of zones are filled, and can't tell a date.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        connection: Any = connections[self.root_queryset.db]
        known = connection.features.has_zoneinfo_database
        same = timezone.get_current_timezone_name() == connection.timezone_name
        if settings.USE_TZ and not known and not same:
            self.date_hierarchy = None


@admin.register(Memory)
class MemoryAdmin(ReadOnlyAdmin):
    list_display = ("occurred_at", "whose", "scope", "role", "name", "characters", "expires_at")
    list_filter = (
        *(EmbeddedFilter, FailedFilter, ExpiredFilter),
        *(OwnedFilter, RoleFilter, KindFilter),
    )
    date_hierarchy = "occurred_at"
    # Newest first, as they were stored: by an index, however many there are.
    ordering = ("-pk",)
    search_fields = (
        "owner__exact",
        "scope__exact",
        "record_id__exact",
        "collection__exact",
        "content",
    )
    search_help_text = _(
        "An owner's key, a scope, a record id or a collection; or words of a text."
    )
    fieldsets = (
        (None, {"fields": ("owner_model", "owner", "scope", "collection", "record_id")}),
        (_("What was said"), {"fields": ("kind", "role", "name", "content", "metadata_text")}),
        (_("When"), {"fields": ("occurred_at", "expires_at", "created_at")}),
        (_("Vectors"), {"fields": ("vectors", "failure", "attempts", "not_before")}),
    )
    readonly_fields = (
        *("created_at", "metadata_text", "vectors"),
        *("failure", "attempts", "not_before"),
    )

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return MemoryList

    def get_queryset(self, request: HttpRequest) -> Any:
        # The list says how long a text is without reading it; the page of one memory loads it.
        memories = super().get_queryset(request).annotate(characters=Length("content"))
        return memories.defer("content", "metadata")

    @admin.display(description=_("owner"), ordering="owner")
    def whose(self, memory: Memory) -> str:
        if not memory.owner:
            return memory.collection
        return f"{memory.owner_model} {memory.owner}".strip()

    @admin.display(description=_("characters"), ordering="characters")
    def characters(self, memory: Any) -> int:
        return int(memory.characters)

    @admin.display(description=_("metadata"))
    def metadata_text(self, memory: Memory) -> str:
        text = json.dumps(memory.metadata, indent=2, ensure_ascii=False)
        return format_html("<pre>{}</pre>", text)

    @admin.display(description=_("vectors"))
    def vectors(self, memory: Memory) -> str:
        """The facts of each vector. Its numbers would say nothing, and much of the text."""
        embeddings = Embedding.objects.using(memory._state.db).filter(memory=memory)
        rows = [_facts(each) for each in embeddings.select_related("space").order_by("space_id")]
        if not rows:
            return str(_("None yet: this memory can't be recalled."))
        heads = (_("space"), _("width"), _("norm"), _("signature"))
        return format_html(
            "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>",
            format_html_join("", '<th scope="col">{}</th>', ((head,) for head in heads)),
            format_html_join(
                "", "<tr><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td></tr>", rows
            ),
        )


def _facts(embedding: Embedding) -> tuple[str, int, str, str]:
    from .exceptions import InvalidVector
    from .vectors import Vector  # numpy, which start-up should not pay for

    signature = bytes(embedding.signature).hex()
    try:
        vector = Vector.from_bytes(embedding.vector)
    except InvalidVector:
        return embedding.space.name, 0, "?", signature
    return embedding.space.name, len(vector), f"{vector.norm:.4g}", signature


@admin.register(Space)
class SpaceAdmin(ReadOnlyAdmin):
    list_display = ("name", "width", "bits", "held")
    fields = ("name", "width", "bits", "held")
    readonly_fields = ("held",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(held=Count("embeddings"))

    @admin.display(description=_("vectors"), ordering="held")
    def held(self, space: Any) -> int:
        return int(space.held)
