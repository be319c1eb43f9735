"""A Django project for a benchmark: one database, the app, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["configure"]

LOCAL = "prism_memory.embedders.LocalEmbedder"


def configure(
    database: str | Path | dict[str, Any],
    embedder: str = LOCAL,
    *,
    migrate: bool = True,
    apps: Sequence[str] = (),
    **options: Any,
) -> None:
    """Set Django up over a new SQLite file, or the database that a dict describes, and migrate it.

    ``apps`` are installed besides; ``options`` go to ``PRISM_MEMORY``.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import django
    from django.conf import settings
    from django.core.management import call_command

    if not isinstance(database, dict):
        database = sqlite(database)
    settings.configure(
        INSTALLED_APPS=[
            *("django.contrib.auth", "django.contrib.contenttypes", "prism_memory"),
            *apps,
        ],
        DATABASES={"default": database},
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        PRISM_MEMORY={"EMBEDDER": {"BACKEND": embedder}, "QUEUE": "inline", **options},
    )
    django.setup()
    if migrate:
        call_command("migrate", verbosity=0)


def sqlite(path: str | Path) -> dict[str, Any]:
    """SQLite as Django's documentation recommends it for production."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
