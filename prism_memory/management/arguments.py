"""Reads command-line arguments. What is refused ends with exit code 2."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import datetime
from typing import TYPE_CHECKING

from django.apps import apps
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from ..exceptions import InvalidTimestamp
from ..owners import Owner, owner_models, owner_of_instance
from ..texts import unstorable
from ..timestamps import as_moment
from .base import MISUSED

if TYPE_CHECKING:
    from django.db.models import Model

    from ..managers import MemoryQuerySet

__all__ = ["moment", "name", "owner_named", "whole_number"]


def whole_number(text: str) -> int:
    """Read a whole number from 0."""
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0.")
    return int(text)


def moment(text: str) -> datetime:
    """Read an ISO 8601 date or datetime."""
    try:
        return as_moment(text, "DATE")
    except InvalidTimestamp as error:
        raise ArgumentTypeError(str(error)) from None


def name(text: str) -> str:
    """Read a name. An empty one is refused: it is a shell variable that was not set."""
    if not text:
        raise ArgumentTypeError("it is an empty string.")
    if problem := unstorable(text):
        raise ArgumentTypeError(f"it holds {problem}.")
    return text


def owner_named(text: str, memories: MemoryQuerySet) -> Owner:
    """Read "app.Model:pk". The instance need not exist; neither need the model, any more."""
    label, colon, key = text.partition(":")
    if not (colon and key and label.count(".") == 1):
        raise CommandError(
            f"--owner is {text!r}. Give app.Model:pk, as in auth.User:7.", returncode=MISUSED
        )
    try:
        model = apps.get_model(label)
        _refuse_child(model)
        return owner_of_instance(model, key)
    except (LookupError, ValidationError):
        # The model may be gone, or have keys of another type by now. Memories name what was.
        owner = Owner(label, key)
        if memories.filter(owner_key=owner.digest).exists():
            return owner
        raise CommandError(
            f"--owner is {text!r}, but there is no such model, or it can't have this key; "
            "and no memories are stored under this name.",
            returncode=MISUSED,
        ) from None


def _refuse_child(model: type[Model]) -> None:
    """Refuse a model whose instances' memories belong to their parents' row."""
    concrete = model._meta.concrete_model or model
    for listed in owner_models():
        keeper = listed._meta.concrete_model or listed
        if concrete is keeper:
            return
        if issubclass(concrete, keeper):
            raise CommandError(
                f"The memories of a {concrete._meta.label} belong to the {keeper._meta.label} "
                f"that it is. Give --owner {keeper._meta.label}:pk.",
                returncode=MISUSED,
            )
