"""What waits for its vector: by collection, and embedding it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..exceptions import PrismMemoryError
from .paging import collection_pages

if TYPE_CHECKING:
    from ..managers import MemoryQuerySet

__all__ = ["embed_backlog"]

#: So many collections that fail in a row are taken for a provider that is down.
PATIENCE = 3


def embed_backlog(waiting: MemoryQuerySet, progress: Callable[[int], object]) -> str:
    """Embed rows that wait, collection by collection; return what went wrong, or "".

    Neither a text nor a collection that fails holds up the others. ``progress`` is told after every
    batch how many got their vector.
    """
    from ..embedding import embed_waiting
    from ..stores import default_store

    failure = ""
    failed_in_a_row = 0
    names = (name for page in collection_pages(waiting, "collection") for _, name in page)
    for collection in names:
        try:
            run = embed_waiting(default_store(), collection, progress=progress)
        except PrismMemoryError as error:
            failure = str(error)
            failed_in_a_row += 1
            if failed_in_a_row == PATIENCE:
                break
        else:
            failed_in_a_row = 0
            if run.failures:
                failure = failure or f"Some texts can't be embedded: {run.failed()}."
    return failure
