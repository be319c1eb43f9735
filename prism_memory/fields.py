"""Model fields that behave the same on every database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from .digests import DIGEST_LENGTH, digest
from .metadata import decode, encode

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from .metadata import Scalar

    CharField = models.CharField[str, str]
    TextField = models.TextField[dict[str, Scalar], dict[str, Scalar]]
else:
    CharField = models.CharField
    TextField = models.TextField

__all__ = ["DigestField", "MetadataField"]


class MetadataField(TextField):
    """A flat map of strings to scalars, kept as JSON text.

    Not a ``JSONField``: PostgreSQL's jsonb turns 1e300 into a whole number, refuses some keys and
    reorders the rest; the databases' JSON lookups disagree about numbers, nulls and quotes. Text
    comes back exactly as it went in, on every database. Filters are the app's own (``filters.py``).
    """

    def from_db_value(
        self, value: str | None, expression: object, connection: BaseDatabaseWrapper
    ) -> dict[str, Any] | None:
        return None if value is None else decode(value)

    def to_python(self, value: Any) -> Any:
        return decode(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> Any:
        return encode(value) if isinstance(value, dict) else value

    def value_to_string(self, obj: models.Model) -> str:
        return encode(self.value_from_object(obj))


class DigestField(CharField):
    """The digest of other fields, kept right by whatever code saves the row.

    ``purpose`` keeps digests of different kinds apart. Where the last of the fields is empty, so is
    the digest.
    """

    def __init__(self, purpose: str, *of: str, **options: Any) -> None:
        self.purpose = purpose
        self.of = of
        options.setdefault("max_length", DIGEST_LENGTH)
        options.setdefault("editable", False)
        super().__init__(**options)

    def deconstruct(self) -> Any:
        name, path, args, options = super().deconstruct()
        return name, path, [self.purpose, *self.of, *args], options

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        parts = [str(getattr(model_instance, name)) for name in self.of]
        value = digest(self.purpose, *parts) if parts[-1] else ""
        setattr(model_instance, self.attname, value)
        return value
