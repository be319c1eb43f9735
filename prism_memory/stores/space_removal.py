"""Removing a space that no embedder uses any more, with all of its vectors."""

from __future__ import annotations

from django.db import router

from ..exceptions import InvalidArgument
from ..models import Embedding, SignaturePage, Space
from ..transactions import write_transaction
from . import indexes
from .keys import space_key

__all__ = ["remove_space"]


def remove_space(name: str) -> int:
    """Delete all vectors of a space, in the tables and in every index; return how many there were.

    Memories stay, and those that have no vector in another space are pending again. Raises
    InvalidArgument when there is no such space, and IndexUnavailable, before anything is deleted,
    when the server of an index does not answer.
    """
    using = router.db_for_write(Space)
    space = Space.objects.using(using).filter(key=space_key(name)).first()
    if space is None:
        raise InvalidArgument(
            f"There is no space {name!r:.80}. Spaces: "
            f"{', '.join(map(repr, Space.objects.using(using).values_list('name', flat=True)))}."
        )
    for store in indexes.kept():
        store.drop(using, space)
    with write_transaction(using):
        SignaturePage.objects.using(using).filter(space=space).delete()
        gone, _ = Embedding.objects.using(using).filter(space=space).delete()
        space.delete()
    return gone
