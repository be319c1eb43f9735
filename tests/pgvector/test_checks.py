"""What ``manage.py check --database`` says, by the ids of its messages."""

# ruff: noqa: N802 - ids are written as they are shown

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import Tags, run_checks
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

from prism_memory.contrib.pgvector import PgVectorStore, checks, hnsw
from prism_memory.models import Space
from prism_memory.stores import stores
from prism_memory.stores.rebuilding import rebuild

from ..searching import SPACE, random_vectors
from .test_searching import fill

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parent.parent.parent


def messages(*databases):
    found = run_checks(tags=[Tags.database], databases=databases or ["default"])
    return [message for message in found if message.id.startswith("prism_memory_pgvector")]


def the_message(id):
    [message] = messages()
    assert message.id == f"prism_memory_pgvector.{id}"
    assert "'default'" in message.msg
    assert "'pg'" in message.msg
    assert message.hint
    return message


@pytest.fixture
def answers(monkeypatch):
    """A function that sets what the catalogue says of the extension."""

    class Told:
        def __init__(self, cursor, row):
            self.cursor, self.row = cursor, row

        def __getattr__(self, name):
            return getattr(self.cursor, name)

        def fetchone(self):
            return self.row

    real = checks._database

    def tell(row):
        monkeypatch.setattr(checks, "_database", lambda u, s, c: real(u, s, Told(c, row)))

    return tell


def test_nothing_is_wrong_with_a_store_that_works(store):
    fill(store, random_vectors(10))
    assert messages() == []


def test_nothing_is_asked_without_a_store():
    assert messages() == []


def test_other_databases_are_left_alone(store):
    assert messages("other") == []


def test_E005_two_stores_share_the_table(store):
    stores.register("pg2", PgVectorStore())
    try:
        [message] = [m for m in run_checks() if m.id == "prism_memory_pgvector.E005"]
    finally:
        stores.unregister("pg2")
    assert "'pg', 'pg2'" in message.msg
    assert message.hint


def test_E006_the_server_has_no_pgvector(store, answers):
    answers(None)
    assert "Install pgvector 0.8" in the_message("E006").hint


def test_E007_the_extension_is_gone(store):
    with connection.cursor() as cursor:
        cursor.execute("DROP EXTENSION vector CASCADE")
    try:
        message = the_message("E007")
        assert "memory_rebuild --store pg" in message.hint
    finally:
        migrate(None)
        migrate("0001_initial")
    assert messages() == []


@pytest.mark.parametrize("row", [("0.8.6", "0.7.4", True), ("0.7.4", None, False)])
def test_E008_pgvector_is_too_old(store, answers, row):
    answers(row)
    message = the_message("E008")
    assert "0.7.4" in message.msg
    assert "ALTER EXTENSION vector UPDATE" in message.hint


@pytest.mark.parametrize("version", ["0.8.0", "0.8.6", "0.10.0", "1.0"])
def test_later_versions_are_not_too_old(store, answers, version):
    answers((version, version, True))
    assert messages() == []


def test_W001_a_large_space_has_no_graph(store, monkeypatch):
    monkeypatch.setattr(hnsw, "FEW", 19)
    fill(store, random_vectors(19))
    assert messages() == []
    fill(store, random_vectors(1), "d")
    message = the_message("W001")
    assert "missing" in message.msg
    assert repr(SPACE) in message.msg
    assert "memory_rebuild --store pg" in message.hint
    rebuild(store, Space.objects.get())
    assert messages() == []


def test_W001_a_graph_is_invalid(store, monkeypatch, graphs):
    monkeypatch.setattr(hnsw, "FEW", 19)
    fill(store, random_vectors(20))
    rebuild(store, Space.objects.get())
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)", graphs()
        )
    assert "invalid" in the_message("W001").msg


def test_no_graph_is_missed_where_there_can_be_none(store, monkeypatch):
    monkeypatch.setattr(hnsw, "FEW", 1)
    fill(store, random_vectors(3, 4_001), space="wide@4001")
    assert messages() == []


def test_it_says_nothing_of_a_database_that_is_not_migrated(store):
    migrate(None)
    try:
        assert messages() == []
    finally:
        migrate("0001_initial")


def test_it_says_nothing_of_a_database_that_does_not_answer(store, monkeypatch):
    def refuse(*given):
        raise OperationalError

    with monkeypatch.context() as patched:
        patched.setattr(connection, "cursor", refuse)
        assert messages() == []


def migrate(name):
    executor = MigrationExecutor(connection)
    executor.migrate([("prism_memory_pgvector", name)])


def test_a_project_with_the_documented_settings_has_nothing_to_complain_of():
    """In a new process: Django wants the apps of the fields that the model uses, since 6.0."""
    page = (ROOT / "docs" / "pgvector.md").read_text()
    [documented] = re.findall(r"```python\n(INSTALLED_APPS.*?)```", page, re.DOTALL)
    code = f"""
import django
from django.conf import settings
from django.core.management import call_command
{documented}
PRISM_MEMORY["EMBEDDER"] = {{"BACKEND": "prism_memory.testing.FakeEmbedder"}}
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", *INSTALLED_APPS],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.postgresql", "NAME": "nowhere"}}}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    PRISM_MEMORY=PRISM_MEMORY,
)
django.setup()
call_command("check", fail_level="WARNING")
"""
    checked = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
