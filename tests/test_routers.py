"""Memories in a database of their own: everything goes there, and nothing anywhere else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.db import connections
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from prism_memory import CONVERSATION
from prism_memory.models import IndexChange, Memory, Space
from prism_memory.stores import remove_space, stores

from .commands import run
from .remote_index import RemoteIndex

ADMIN = "/admin/prism_memory"

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


@pytest.fixture(autouse=True)
def elsewhere():
    with override_settings(DATABASE_ROUTERS=["tests.routers.MemoriesElsewhere"]):
        yield


@pytest.fixture
def untouched():
    """What is asked of the default database; none of it may be about memories."""
    with CaptureQueriesContext(connections["default"]) as asked:
        yield
    assert [query["sql"] for query in asked if "prism_memory_" in query["sql"]] == []


def rows(alias: str) -> int:
    models = apps.get_app_config("prism_memory").get_models()
    return sum(model._base_manager.using(alias).count() for model in models)


def test_everything_is_there(memory, untouched):
    ids = memory.remember(["my bank is in Graz", "my dog is called Rex"], metadata={"k": 1})
    assert [found.id for found in memory.recall("bank", limit=1)] == ids[:1]
    assert len(memory.recall("dog", weighting=CONVERSATION, filter={"k": 1})) == 2
    recalled = memory.recall("dog", budget=500)
    memory.remember("I moved to Linz")
    assert len(memory.recall("Linz", budget=500, continuing=recalled)) == 3
    memory.remember(["my bank is in Graz"], metadata={"k": 2})
    assert (memory.count(), memory.pending()) == (3, 0)
    assert memory.forget(ids[:1]) == 1
    assert memory.forget_before(timezone.now() + timedelta(days=1)) == 2
    assert Memory.objects.using("other").count() == 0
    assert Space.objects.using("other").count() == 1


def test_deleting_the_owner(user, memory, untouched):
    memory.remember("my bank is in Graz")
    user.delete()
    assert Memory.objects.using("other").count() == 0


def test_the_commands(memory, untouched):
    memory.remember("my bank is in Graz")
    memory.records().update(expires_at=timezone.now() - timedelta(days=1))
    assert run("memory_pending", "--embed").code == 0
    assert run("memory_orphans").code == 0
    assert "Erased 1 memory" in run("memory_prune").out
    memory.remember("my dog is called Rex")
    assert "Forgot 1 memory" in run("memory_forget_before", "2999-01-01", "--all", "--no-input").out
    assert remove_space(Space.objects.get().name) == 0


def test_the_admin(memory, untouched, admin_client):
    memory.remember("my bank is in Graz")
    assert len(admin_client.get(f"{ADMIN}/memory/").context["cl"].result_list) == 1
    row = Memory.objects.get()
    shown = admin_client.get(f"{ADMIN}/memory/{row.pk}/change/").content.decode()
    assert "my bank is in Graz" in shown
    assert Space.objects.get().name in shown
    [space] = admin_client.get(f"{ADMIN}/space/").context["cl"].result_list
    assert space.held == 1


def test_reads_go_to_the_replica_and_writes_never_do(memory):
    """Writers look up what they write about where they write, however late the replica is."""
    memory.remember("my bank is in Graz")
    with (
        override_settings(DATABASE_ROUTERS=["tests.routers.ReadsFromDefault"]),
        CaptureQueriesContext(connections["default"]) as asked,
    ):
        [kept] = memory.remember("my bank is in Graz", metadata={"k": 1})
        memory.remember("my dog is called Rex")
        assert memory.embed_pending() == 0
        assert memory.forget([kept]) == 1
        assert memory.forget_before(timezone.now() + timedelta(days=1)) == 1
        assert [query["sql"] for query in asked if "prism_memory_" in query["sql"]] == []
        assert len(memory.recall("bank")) == 0
        assert memory.count() == 0
    assert [query["sql"] for query in asked if "prism_memory_" in query["sql"]] != []
    assert rows("default") == 0


def test_an_index_beside_the_tables(memory, untouched):
    memory.remember("my bank is in Graz")
    store = RemoteIndex()
    stores.register("remote", store)
    try:
        assert run("memory_rebuild", "--store", "remote").code == 0
        memory.remember("my dog is called Rex")
        memory.forget()
        assert [len(entries) for entries in store.server.spaces.values()] == [0]
        assert IndexChange.objects.using("other").count() == 0
    finally:
        stores.unregister("remote")


def test_nothing_is_in_the_default_database(memory):
    memory.remember("my bank is in Graz")
    assert rows("other") > 0
    with override_settings(DATABASE_ROUTERS=[]):
        assert rows("default") == 0
