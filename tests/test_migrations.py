"""The tables can be made, unmade and made again, on every database."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.models import CharField

from prism_memory.models import Memory
from prism_memory.stores import DatabaseStore, VectorQuery, VectorRecord

OURS = [model._meta.db_table for model in apps.get_app_config("prism_memory").get_models()]


def there() -> set[str]:
    return set(connection.introspection.table_names()) & set(OURS)


@pytest.mark.django_db(transaction=True)
def test_forwards_and_back():
    assert there() == set(OURS)
    try:
        call_command("migrate", "prism_memory", "zero", verbosity=0)
        assert there() == set()
    finally:
        call_command("migrate", verbosity=0)  # and what depends on it
    assert there() == set(OURS)
    store = DatabaseStore()
    store.upsert(
        [VectorRecord(collection="c", id="a", content="text", vector=[1.0, 2.0], space="s")]
    )
    assert [match.id for match in store.search(VectorQuery(["c"], [1.0, 2.0], "s"))] == ["a"]


@pytest.mark.parametrize("model", list(apps.get_app_config("prism_memory").get_models()))
def test_no_index_is_longer_than_mysql_takes(model):
    """3,072 bytes, of which a character of utf8mb4 takes four."""
    indexed = [field.name for field in model._meta.fields if field.db_index or field.unique]
    groups = [[name] for name in indexed]
    groups += [list(index.fields) for index in model._meta.indexes]
    groups += [list(constraint.fields) for constraint in model._meta.constraints]
    for names in groups:
        fields = [model._meta.get_field(name) for name in names]
        size = sum(4 * field.max_length if isinstance(field, CharField) else 8 for field in fields)
        assert size <= 3_072, names


def test_no_constraint_needs_what_mysql_lacks():
    """A conditional constraint is silently not created there."""
    for model in apps.get_app_config("prism_memory").get_models():
        for constraint in model._meta.constraints:
            assert constraint.condition is None
            assert not constraint.expressions
    assert not Memory._meta.unique_together
