"""Whom memories belong to: from an owner and a scope to the address of their collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import models

from .conf import settings
from .digests import digest
from .exceptions import ConfigurationError, InvalidOwner
from .texts import unstorable

if TYPE_CHECKING:
    from django.db.models import Model

__all__ = ["Address", "address", "owner_models", "owner_of_instance"]

MAX_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner: the label of its concrete model ("" for a string) and its normalised key."""

    model: str
    key: str

    @property
    def digest(self) -> str:
        return digest("owner", self.model, self.key)


@dataclass(frozen=True, slots=True)
class Address:
    """An owner in a scope."""

    owner: Owner
    scope: str

    @property
    def collection(self) -> str:
        """The name of the collection that holds this owner's memories in this scope."""
        return "memory:" + digest("memory", self.owner.digest, self.scope)


def owner_models() -> list[type[Model]]:
    """Return the models of ``OWNERS``. Raises ConfigurationError for one that is not installed."""
    found = []
    for label in settings().owners:
        try:
            found.append(apps.get_model(label))
        except (LookupError, ValueError) as error:
            raise ConfigurationError(
                f'PRISM_MEMORY["OWNERS"] lists {label!r}, which is not an installed model.',
                hint='Give "app_label.ModelName" of a model in INSTALLED_APPS.',
                id="prism_memory.E007",
            ) from error
    return found


def owner_of_instance(model: type[Model], key: Any) -> Owner:
    """Return the owner that an instance of ``model`` with this primary key is."""
    concrete = model._meta.concrete_model or model
    field: models.Field[Any, Any] = concrete._meta.pk
    while isinstance(field, models.ForeignKey):  # one-to-one primary keys take the target's type
        field = field.target_field
    return Owner(concrete._meta.label, str(field.to_python(key)))


def _owner(owner: object) -> Owner:
    if isinstance(owner, str) and not isinstance(owner, models.Model):
        return Owner("", _text("owner", owner))
    accepted = ", ".join(settings().owners) or "no model"
    if owner is None:
        raise InvalidOwner(
            "owner is None. Pass a saved instance of one of PRISM_MEMORY['OWNERS'] "
            f"({accepted}) or a non-empty string."
        )
    if not isinstance(owner, models.Model):
        if getattr(owner, "is_anonymous", False) is True:
            raise InvalidOwner(
                "owner is an anonymous user, and all anonymous users would share one memory. "
                "Ask for a login, or pass a string such as the session key."
            )
        raise InvalidOwner(
            f"owner is of type {type(owner).__name__}. Pass a saved instance of one of "
            f"PRISM_MEMORY['OWNERS'] ({accepted}) or a non-empty string; "
            "for a bare key, pass the instance that it belongs to."
        )
    for model in owner_models():
        # A proxy or a child of a listed model is that model's row.
        concrete = model._meta.concrete_model or model
        if isinstance(owner, concrete):
            key = getattr(owner, concrete._meta.pk.attname)
            # A deleted child instance has lost its own key only, not that of its parent.
            if key is None or owner.pk is None or owner._state.adding:
                raise InvalidOwner(
                    f"owner is an unsaved or deleted {concrete._meta.label}. Save it before it "
                    "remembers."
                )
            found = owner_of_instance(concrete, key)
            return Owner(found.model, _text("owner", found.key))
    raise InvalidOwner(
        f"owner is a {owner._meta.label}, which PRISM_MEMORY['OWNERS'] ({accepted}) does not "
        f"list. Add {owner._meta.label!r} to it, or pass a string."
    )


def _text(argument: str, value: str) -> str:
    value = value[:]  # a plain str: that of an enum's member is its value, not its name
    if value == "":
        raise InvalidOwner(f"{argument} is an empty string. Pass a non-empty one.")
    if len(value) > MAX_LENGTH:
        raise InvalidOwner(
            f"{argument} is a string of {len(value)} characters. At most {MAX_LENGTH} are taken."
        )
    if problem := unstorable(value):
        raise InvalidOwner(f"{argument} holds {problem}, which databases can't store.")
    return value


def address(owner: object, scope: object = None) -> Address:
    """Return where the memories of ``owner`` in ``scope`` live.

    Raises InvalidOwner, with the fix, for anything that can't own memories.
    """
    if scope is None:
        scope = settings().default_scope
    if not isinstance(scope, str):
        raise InvalidOwner(
            f"scope is of type {type(scope).__name__}. Pass a non-empty string, or None for "
            "PRISM_MEMORY['DEFAULT_SCOPE']."
        )
    return Address(_owner(owner), _text("scope", scope))
