"""What ``manage.py check`` says of a PgVectorStore that can't work, by the ids of its messages."""

# ruff: noqa: N802 - ids are written as they are shown

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.test import override_settings

from prism_memory.contrib.pgvector import PgVectorStore, store
from prism_memory.exceptions import ConfigurationError
from prism_memory.models import Space

FAKE = {"BACKEND": "prism_memory.testing.FakeEmbedder"}
SETTINGS = {
    "EMBEDDER": FAKE,
    "STORES": {"default": {"BACKEND": "prism_memory.contrib.pgvector.PgVectorStore"}},
}


def the_message(id):
    with override_settings(PRISM_MEMORY=SETTINGS):
        [message] = [m for m in run_checks() if m.id == f"prism_memory_pgvector.{id}"]
    assert message.msg.startswith("PRISM_MEMORY[\"STORES\"]['default']: ")
    assert message.hint
    return message


def test_E001_the_app_is_not_installed(settings):
    settings.INSTALLED_APPS = [
        app for app in settings.INSTALLED_APPS if not app.startswith("prism_memory.contrib")
    ]
    message = the_message("E001")
    assert "'prism_memory.contrib.pgvector'" in message.hint
    assert "migrate" in message.hint


def test_E002_the_package_is_missing(monkeypatch):
    monkeypatch.setattr(store, "find_spec", lambda name: None)
    assert "prism-memory-django[pgvector]" in the_message("E002").hint


def test_E003_the_database_is_not_postgresql(monkeypatch):
    monkeypatch.setattr(connection, "vendor", "sqlite")
    message = the_message("E003")
    assert "'default'" in message.msg
    assert "sqlite" in message.msg
    with pytest.raises(ConfigurationError) as caught:
        PgVectorStore().held("default", Space(pk=1), 0, None)
    assert caught.value.id == message.id


@pytest.mark.parametrize("option", ["m", "ef_construction", "strategy", "candidates"])
def test_options_that_can_not_be_taken_are_named(option):
    with pytest.raises(ConfigurationError, match=f"{option} is -1"):
        PgVectorStore(**{option: -1})


@pytest.mark.parametrize("options", [{"m": 1}, {"m": 101}, {"m": 40, "ef_construction": 79}])
def test_options_that_pgvector_does_not_take_are_refused_at_once(options):
    name, value = list(options.items())[-1]
    with pytest.raises(ConfigurationError, match=f"{name} is {value}. Give a number from"):
        PgVectorStore(**options)


def test_E004_a_space_is_too_wide():
    with pytest.raises(ConfigurationError, match="'wide' have 16001 numbers") as caught:
        PgVectorStore().prepare("default", Space(pk=1, name="wide", width=16_001), fresh=False)
    assert caught.value.id == "prism_memory_pgvector.E004"
