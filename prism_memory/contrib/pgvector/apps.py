"""The app that has the table of the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _


class PgVectorConfig(AppConfig):
    name = "prism_memory.contrib.pgvector"
    label = "prism_memory_pgvector"
    verbose_name = _("Prism Memory: pgvector")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from .checks import check_databases, check_stores

        checks.register(check_stores)
        checks.register(check_databases, checks.Tags.database)
