"""The app's configuration."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _


class PrismMemoryConfig(AppConfig):
    name = "prism_memory"
    label = "prism_memory"
    verbose_name = _("Prism Memory")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import jobs, owner_deletion
        from .checks import check_settings

        checks.register(check_settings)
        jobs.connect()
        owner_deletion.connect()
