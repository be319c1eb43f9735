"""The table of the index: one row a vector."""

from __future__ import annotations

from typing import ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.utils.translation import gettext_lazy as _

from ...digests import DIGEST_LENGTH
from ...models import Embedding
from .hnsw import TABLE

try:
    from django.contrib.postgres.fields import ArrayField
    from django.contrib.postgres.indexes import GinIndex
    from pgvector.django import VectorField
except ImportError as error:
    raise ImproperlyConfigured(
        f"INSTALLED_APPS has 'prism_memory.contrib.pgvector', which needs {error.name}. "
        "Run pip install 'prism-memory-django[pgvector]'."
    ) from error

__all__ = ["IndexedVector"]


class IndexedVector(models.Model):
    """An entry of the index. It goes with its embedding, whatever deletes that.

    The database sees to it, by a foreign key that cascades (Django knows of none); so nothing that
    was forgotten stays, and no entry is written for an embedding that is gone. Vectors are scaled
    to length 1, in single precision. Every space has its own width, and so its own index, which is
    built by the store.
    """

    embedding = models.OneToOneField(
        Embedding, models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="+"
    )
    memory_id = models.BigIntegerField()
    space_id = models.BigIntegerField()
    collection_key = models.CharField(max_length=DIGEST_LENGTH)
    tokens = ArrayField(models.BigIntegerField())
    vector = VectorField()

    class Meta:
        verbose_name = _("indexed vector")
        verbose_name_plural = _("indexed vectors")
        db_table = TABLE
        required_db_vendor = "postgresql"
        indexes: ClassVar = [
            models.Index(fields=["space_id", "collection_key"], name="prism_memory_pgv_collection"),
            GinIndex(fields=["tokens"], name="prism_memory_pgv_tokens"),
        ]

    def __str__(self) -> str:
        return f"entry {self.pk}"
