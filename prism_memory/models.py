"""The tables: memories, their vectors, and the packed pages that are searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from .digests import DIGEST_LENGTH
from .fields import DigestField, MetadataField
from .filters import attributes
from .managers import MemoryManager, MemoryQuerySet
from .texts import embedded_text

if TYPE_CHECKING:
    from .metadata import Scalar

__all__ = ["Embedding", "Memory", "MemoryKind", "SignaturePage", "Space"]


class MemoryKind(models.TextChoices):
    """What a memory is. Today: text that was said, and nothing derived from it."""

    OBSERVATION = "observation", _("observation")


class Memory(models.Model):
    """One thing that was said, or one passage of a named collection."""

    # Addresses. The digests are what queries match; the readable text stands beside them.
    key = DigestField("record", "collection", "record_id", unique=True)
    collection_key = DigestField("collection", "collection")
    owner_key = DigestField("owner", "owner_model", "owner", blank=True)
    collection = models.CharField(_("collection"), max_length=255)
    record_id = models.CharField(_("record id"), max_length=255)
    owner_model = models.CharField(_("owner's model"), max_length=255, blank=True)
    owner = models.CharField(_("owner"), max_length=255, blank=True)
    scope = models.CharField(_("scope"), max_length=255, blank=True)

    kind = models.CharField(_("kind"), max_length=64, blank=True)
    role = models.CharField(_("role"), max_length=32, blank=True)
    name = models.CharField(_("name"), max_length=255, blank=True)
    content = models.TextField(_("content"))
    metadata = MetadataField(_("metadata"), default=dict)

    occurred_at = models.DateTimeField(_("occurred at"), default=timezone.now)
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    # Embedding: what went wrong with this text, and when it is tried again. A worker that claims a
    # row moves ``not_before`` a little, so that no other takes it up meanwhile.
    attempts = models.PositiveSmallIntegerField(_("failed attempts"), default=0, editable=False)
    failure = models.CharField(_("failure"), max_length=64, blank=True, editable=False)
    not_before = models.DateTimeField(_("not before"), null=True, blank=True, editable=False)

    objects = MemoryManager.from_queryset(MemoryQuerySet)()

    class Meta:
        verbose_name = _("memory")
        verbose_name_plural = _("memories")
        indexes = [
            models.Index(fields=["collection_key", "occurred_at"], name="prism_memory_collection"),
            models.Index(fields=["owner_key"], name="prism_memory_owner"),
            models.Index(fields=["expires_at"], name="prism_memory_expiry"),
        ]

    def __str__(self) -> str:
        # Not the content: this string ends up in logs and error pages.
        return f"{self.collection} {self.record_id}"

    @property
    def attributes(self) -> dict[str, Scalar]:
        """What filters see: the metadata, and over it the role, kind and name where set."""
        return attributes(self.metadata, self.role, self.kind, self.name)

    @property
    def embedded_text(self) -> str:
        """The text that is turned into a vector."""
        return embedded_text(self.name, self.content)

    def delete(self, using: str | None = None, keep_parents: bool = False) -> Any:
        """Erase this memory, its vectors and its signatures."""
        if self.pk is None:
            raise ValueError("This memory was never saved, so there is nothing to erase.")
        erased = Memory.objects.using(using or self._state.db).filter(pk=self.pk).delete()
        self.pk = None
        return erased

    delete.alters_data = True  # type: ignore[attr-defined]


class Space(models.Model):
    """A coordinate system: vectors are only ever compared within one."""

    key = DigestField("space", "name", unique=True)
    name = models.TextField(_("name"))
    width = models.PositiveIntegerField(_("width"), help_text=_("Numbers in a vector."))
    bits = models.PositiveIntegerField(_("bits"), help_text=_("Bits in a signature."))

    class Meta:
        verbose_name = _("space")
        verbose_name_plural = _("spaces")

    def __str__(self) -> str:
        return self.name


class Embedding(models.Model):
    """The vector of a memory in one space."""

    # Memories are erased by MemoryQuerySet.delete(), vectors first; with DO_NOTHING Django does
    # not load a hundred thousand rows to find that out.
    memory = models.ForeignKey(Memory, models.DO_NOTHING, related_name="embeddings")
    space = models.ForeignKey(Space, models.PROTECT, related_name="embeddings")
    vector = models.BinaryField(_("vector"), help_text=_("Little-endian IEEE 754 doubles."))
    signature = models.BinaryField(_("signature"), help_text=_("Bits of direction."))

    class Meta:
        verbose_name = _("embedding")
        verbose_name_plural = _("embeddings")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["memory", "space"], name="prism_memory_embedding_once")
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} in space {self.space_id}"


class SignaturePage(models.Model):
    """Some hundreds of embedded memories of one collection, packed for ranking.

    Derived from Memory and Embedding, and changed in the transactions that change those.
    ``prism_memory.pages`` packs and unpacks.
    """

    collection_key = models.CharField(max_length=DIGEST_LENGTH)
    space = models.ForeignKey(Space, models.PROTECT, related_name="+")
    size = models.PositiveIntegerField()
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    ids = models.BinaryField()
    signatures = models.BinaryField()
    tokens = models.BinaryField()
    token_counts = models.BinaryField()

    class Meta:
        verbose_name = _("signature page")
        verbose_name_plural = _("signature pages")
        indexes = [
            models.Index(
                fields=["collection_key", "space", "size", "first_id", "last_id"],
                name="prism_memory_page",
            )
        ]

    def __str__(self) -> str:
        return f"page {self.pk}: {self.size} signatures"
