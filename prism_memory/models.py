"""The tables: memories, their vectors, the pages that are searched, and what indexes know."""

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

__all__ = [
    "Embedding",
    "IndexChange",
    "IndexState",
    "Memory",
    "MemoryKind",
    "SignaturePage",
    "Space",
]


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
    # Found by the index of the constraint below, which begins with it.
    memory = models.ForeignKey(Memory, models.DO_NOTHING, related_name="embeddings", db_index=False)
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


class IndexState(models.Model):
    """The index that a store keeps beside the tables for one space.

    While this row is there, and awake, every writer tells the index of what it writes. A search is
    refused until ``ready_at`` is set: at the birth of the space, or by ``memory_rebuild``. Whoever
    writes without knowing the store (its settings are older, or newer) puts the row to sleep, since
    from then on the index may lack something.
    """

    key = DigestField("index", "alias", "place")
    alias = models.CharField(_("store"), max_length=255)
    place = models.TextField(_("place"))
    space = models.ForeignKey(Space, models.CASCADE, related_name="indexes")
    ready_at = models.DateTimeField(_("ready since"), null=True)
    #: The rebuild that is at work, or else "".
    rebuild = models.CharField(_("rebuild"), max_length=32, blank=True)

    class Meta:
        verbose_name = _("state of an index")
        verbose_name_plural = _("states of indexes")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["key", "space"], name="prism_memory_index_once")
        ]

    def __str__(self) -> str:
        return f"the index of {self.alias!r} for space {self.space_id}"


class IndexChange(models.Model):
    """What an index outside the database has still to be told; the outbox.

    Written in the transaction that changes the vectors, and deleted when the index has confirmed.
    """

    class Action(models.IntegerChoices):
        PREPARE = 0, _("prepare")
        ADD = 1, _("add")
        REMOVE = 2, _("remove")

    index = models.ForeignKey(IndexState, models.CASCADE, related_name="changes")
    action = models.PositiveSmallIntegerField(_("action"), choices=Action.choices)
    entry_id = models.BigIntegerField(_("entry"), help_text=_("The key of the embedding."))
    collection_key = models.CharField(max_length=DIGEST_LENGTH, blank=True)
    claimed_until = models.DateTimeField(_("claimed until"), null=True)

    class Meta:
        verbose_name = _("change of an index")
        verbose_name_plural = _("changes of indexes")
        indexes = [
            models.Index(fields=["index", "action", "id"], name="prism_memory_change_next"),
            models.Index(fields=["index", "entry_id"], name="prism_memory_change_entry"),
        ]

    def __str__(self) -> str:
        return f"{self.get_action_display()} {self.entry_id}"
