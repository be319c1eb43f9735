import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import prism_memory.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Space",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    prism_memory.fields.DigestField(
                        "space", "name", editable=False, max_length=64, unique=True
                    ),
                ),
                ("name", models.TextField(verbose_name="name")),
                (
                    "width",
                    models.PositiveIntegerField(
                        help_text="Numbers in a vector.", verbose_name="width"
                    ),
                ),
                (
                    "bits",
                    models.PositiveIntegerField(
                        help_text="Bits in a signature.", verbose_name="bits"
                    ),
                ),
            ],
            options={
                "verbose_name": "space",
                "verbose_name_plural": "spaces",
            },
        ),
        migrations.CreateModel(
            name="Memory",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    prism_memory.fields.DigestField(
                        "record",
                        "collection",
                        "record_id",
                        editable=False,
                        max_length=64,
                        unique=True,
                    ),
                ),
                (
                    "collection_key",
                    prism_memory.fields.DigestField(
                        "collection", "collection", editable=False, max_length=64
                    ),
                ),
                (
                    "owner_key",
                    prism_memory.fields.DigestField(
                        "owner", "owner_model", "owner", blank=True, editable=False, max_length=64
                    ),
                ),
                ("collection", models.CharField(max_length=255, verbose_name="collection")),
                ("record_id", models.CharField(max_length=255, verbose_name="record id")),
                (
                    "owner_model",
                    models.CharField(blank=True, max_length=255, verbose_name="owner's model"),
                ),
                ("owner", models.CharField(blank=True, max_length=255, verbose_name="owner")),
                ("scope", models.CharField(blank=True, max_length=255, verbose_name="scope")),
                ("kind", models.CharField(blank=True, max_length=64, verbose_name="kind")),
                ("role", models.CharField(blank=True, max_length=32, verbose_name="role")),
                ("name", models.CharField(blank=True, max_length=255, verbose_name="name")),
                ("content", models.TextField(verbose_name="content")),
                (
                    "metadata",
                    prism_memory.fields.MetadataField(default=dict, verbose_name="metadata"),
                ),
                (
                    "occurred_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, verbose_name="occurred at"
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="expires at"),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="created at"
                    ),
                ),
                (
                    "attempts",
                    models.PositiveSmallIntegerField(
                        default=0, editable=False, verbose_name="failed attempts"
                    ),
                ),
                (
                    "failure",
                    models.CharField(
                        blank=True, editable=False, max_length=64, verbose_name="failure"
                    ),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        blank=True, editable=False, null=True, verbose_name="not before"
                    ),
                ),
            ],
            options={
                "verbose_name": "memory",
                "verbose_name_plural": "memories",
                "indexes": [
                    models.Index(
                        fields=["collection_key", "occurred_at"], name="prism_memory_collection"
                    ),
                    models.Index(fields=["owner_key"], name="prism_memory_owner"),
                    models.Index(fields=["expires_at"], name="prism_memory_expiry"),
                ],
            },
        ),
        migrations.CreateModel(
            name="IndexState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    prism_memory.fields.DigestField(
                        "index", "alias", "place", editable=False, max_length=64
                    ),
                ),
                ("alias", models.CharField(max_length=255, verbose_name="store")),
                ("place", models.TextField(verbose_name="place")),
                ("ready_at", models.DateTimeField(null=True, verbose_name="ready since")),
                ("rebuild", models.CharField(blank=True, max_length=32, verbose_name="rebuild")),
                (
                    "space",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="indexes",
                        to="prism_memory.space",
                    ),
                ),
            ],
            options={
                "verbose_name": "state of an index",
                "verbose_name_plural": "states of indexes",
            },
        ),
        migrations.CreateModel(
            name="Embedding",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "vector",
                    models.BinaryField(
                        help_text="Little-endian IEEE 754 doubles.", verbose_name="vector"
                    ),
                ),
                (
                    "signature",
                    models.BinaryField(help_text="Bits of direction.", verbose_name="signature"),
                ),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="embeddings",
                        to="prism_memory.memory",
                    ),
                ),
                (
                    "space",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="embeddings",
                        to="prism_memory.space",
                    ),
                ),
            ],
            options={
                "verbose_name": "embedding",
                "verbose_name_plural": "embeddings",
            },
        ),
        migrations.CreateModel(
            name="IndexChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "action",
                    models.PositiveSmallIntegerField(
                        choices=[(0, "prepare"), (1, "add"), (2, "remove")], verbose_name="action"
                    ),
                ),
                (
                    "entry_id",
                    models.BigIntegerField(
                        help_text="The key of the embedding.", verbose_name="entry"
                    ),
                ),
                ("collection_key", models.CharField(blank=True, max_length=64)),
                ("claimed_until", models.DateTimeField(null=True, verbose_name="claimed until")),
                (
                    "index",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes",
                        to="prism_memory.indexstate",
                    ),
                ),
            ],
            options={
                "verbose_name": "change of an index",
                "verbose_name_plural": "changes of indexes",
                "indexes": [
                    models.Index(fields=["index", "action", "id"], name="prism_memory_change_next"),
                    models.Index(fields=["index", "entry_id"], name="prism_memory_change_entry"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SignaturePage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("collection_key", models.CharField(max_length=64)),
                ("size", models.PositiveIntegerField()),
                ("first_id", models.BigIntegerField()),
                ("last_id", models.BigIntegerField()),
                ("ids", models.BinaryField()),
                ("signatures", models.BinaryField()),
                ("tokens", models.BinaryField()),
                ("token_counts", models.BinaryField()),
                (
                    "space",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="prism_memory.space",
                    ),
                ),
            ],
            options={
                "verbose_name": "signature page",
                "verbose_name_plural": "signature pages",
                "indexes": [
                    models.Index(
                        fields=["collection_key", "space", "size", "first_id", "last_id"],
                        name="prism_memory_page",
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="indexstate",
            constraint=models.UniqueConstraint(
                fields=("key", "space"), name="prism_memory_index_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="embedding",
            constraint=models.UniqueConstraint(
                fields=("memory", "space"), name="prism_memory_embedding_once"
            ),
        ),
    ]
