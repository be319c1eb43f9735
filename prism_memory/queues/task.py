"""The job as a task of Django's. Workers import it by its path, so it stands at module level."""

from __future__ import annotations

from django.tasks import task

from .. import jobs
from ..conf import BackendEntry, settings

__all__ = ["embed_collection"]

_entry = settings().queue
_options = _entry.options if isinstance(_entry, BackendEntry) else {}


@task(
    backend=_options.get("backend", "default"),
    queue_name=_options.get("queue_name", "default"),
)
def embed_collection(alias: str, collection: str) -> None:
    """Embed whatever waits in a collection."""
    jobs.embed_collection(alias, collection)
