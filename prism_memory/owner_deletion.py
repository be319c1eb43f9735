"""Deleting an owner forgets its memories.

Only the models of ``OWNERS`` are listened to: one receiver for every model would turn off fast
deletes in the whole project. What no signal reports (raw SQL, database cascades) is found by
``manage.py memory_orphans``.
"""

from __future__ import annotations

import logging
from typing import Any

from django.apps import apps
from django.core.signals import setting_changed
from django.db import Error, connections, router, transaction
from django.db.models import Model
from django.db.models.signals import post_delete

from .conf import NAME
from .exceptions import ConfigurationError
from .owners import Owner, owner_models, owner_of_instance

__all__ = ["connect", "forget_owner"]

logger = logging.getLogger("prism_memory.forgetting")

ATTEMPTS = 3


def forget_owner(owner: Owner) -> int:
    """Erase everything of an owner, in all scopes; return how many memories went."""
    from .models import Memory

    return Memory.objects.filter(owner_key=owner.digest).erase()


def connect() -> None:
    """Listen to the deletion of owners, and to a change of ``OWNERS`` in tests."""
    _listen()
    setting_changed.connect(_listen_anew, dispatch_uid="prism_memory.owner_deletion")


_heard: list[type[Model]] = []


def _listen() -> None:
    try:
        concrete = {model._meta.concrete_model for model in owner_models()}
    except ConfigurationError:  # manage.py check says so, and so does the first use of a handle
        return
    # Deleting through a proxy sends the proxy's signal only.
    models = [model for model in apps.get_models() if model._meta.concrete_model in concrete]
    for model in models:
        post_delete.connect(_deleted, sender=model, dispatch_uid="prism_memory.owner_deletion")
    _heard.extend(models)


def _listen_anew(*, setting: str, **kwargs: Any) -> None:
    if setting in {NAME, "AUTH_USER_MODEL"}:
        for model in _heard:
            post_delete.disconnect(sender=model, dispatch_uid="prism_memory.owner_deletion")
        _heard.clear()
        _listen()


def _deleted(sender: type[Model], instance: Model, using: str, **kwargs: Any) -> None:
    owner = owner_of_instance(sender, instance.pk)
    if _using() == using:
        forget_owner(owner)  # in the transaction that deletes the owner
    else:
        # No partial: of a callback that raises, Django logs the __qualname__.
        transaction.on_commit(lambda: _forget_elsewhere(owner), using=using, robust=True)


def _using() -> str:
    from .models import Memory

    return router.db_for_write(Memory)


def _forget_elsewhere(owner: Owner) -> None:
    for attempt in range(ATTEMPTS):
        try:
            forget_owner(owner)
            return
        except Error as error:
            logger.warning(
                "Forgetting a deleted %s failed with %s, attempt %d of %d.",
                owner.model, type(error).__name__, attempt + 1, ATTEMPTS,
            )  # fmt: skip
            # A lost connection fails for ever, a new one may not.
            connections[_using()].close_if_unusable_or_obsolete()
    logger.error(
        "The memories of a deleted %s are still stored. Run manage.py memory_orphans --forget.",
        owner.model,
    )
