import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import pgvector.django
from django.db import migrations, models


class InstallVector(pgvector.django.VectorExtension):
    """Leaves the extension where it is on the way back: other tables may use it."""

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        pass


def cascade(apps, schema_editor):
    """Have the database delete an entry with its embedding, which Django 5.2 can't declare."""
    entry = apps.get_model("prism_memory_pgvector", "IndexedVector")
    embedding = apps.get_model("prism_memory", "Embedding")
    if not entry._meta.can_migrate(schema_editor.connection):
        return
    quoted = schema_editor.quote_name
    schema_editor.execute(
        f"ALTER TABLE {quoted(entry._meta.db_table)} "
        f"ADD CONSTRAINT prism_memory_pgv_embedding FOREIGN KEY (embedding_id) "
        f"REFERENCES {quoted(embedding._meta.db_table)} (id) ON DELETE CASCADE"
    )


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("prism_memory", "0001_initial"),
    ]

    operations = [
        InstallVector(),
        migrations.CreateModel(
            name="IndexedVector",
            fields=[
                (
                    "embedding",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="prism_memory.embedding",
                    ),
                ),
                ("memory_id", models.BigIntegerField()),
                ("space_id", models.BigIntegerField()),
                ("collection_key", models.CharField(max_length=64)),
                (
                    "tokens",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                ("vector", pgvector.django.VectorField()),
            ],
            options={
                "verbose_name": "indexed vector",
                "verbose_name_plural": "indexed vectors",
                "db_table": "prism_memory_pgvector_entry",
                "required_db_vendor": "postgresql",
                "indexes": [
                    models.Index(
                        fields=["space_id", "collection_key"], name="prism_memory_pgv_collection"
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["tokens"], name="prism_memory_pgv_tokens"
                    ),
                ],
            },
        ),
        migrations.RunPython(cascade, migrations.RunPython.noop),
    ]
