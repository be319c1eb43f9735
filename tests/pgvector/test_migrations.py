"""The table comes and goes with its migration, and searches say so while it is not there."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from django.db import connection, connections

from prism_memory.exceptions import IndexUnavailable
from prism_memory.models import Embedding, Space
from prism_memory.stores.rebuilding import rebuild

from ..searching import EXACT, query, random_vectors
from .test_checks import migrate
from .test_searching import fill, same

pytestmark = pytest.mark.django_db(transaction=True)


def exists(name):
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
        return cursor.fetchone()[0]


def test_back_and_forth_and_the_index_is_filled_anew(store):
    fill(store, random_vectors(20))
    migrate(None)
    try:
        assert not exists("prism_memory_pgvector_entry")
        with pytest.raises(IndexUnavailable, match="migrate prism_memory_pgvector"):
            store.search(query())
        with pytest.raises(IndexUnavailable, match="migrate prism_memory_pgvector"):
            rebuild(store, Space.objects.get())
    finally:
        migrate("0001_initial")
    assert Embedding.objects.count() == 20
    assert rebuild(store, Space.objects.get()).missing == 20
    assert same(store.search(query(limit=20)), EXACT.search(query(limit=20)))


def test_the_extension_stays_for_others():
    migrate(None)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
            assert cursor.fetchone() == (1,)
    finally:
        migrate("0001_initial")


def test_models_and_migrations_agree():
    call_command("makemigrations", "prism_memory_pgvector", check=True, stdout=io.StringIO())


@pytest.mark.django_db(databases=["default", "other"])
def test_on_other_databases_there_is_no_table():
    tables = connections["other"].introspection.table_names()
    assert "prism_memory_embedding" in tables
    assert "prism_memory_pgvector_entry" not in tables
