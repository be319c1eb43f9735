"""The admin: read-only, with facts instead of numbers, and no obstacle to deleting a user."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from prism_memory.models import Embedding, Memory, SignaturePage, Space
from prism_memory.stores import VectorRecord, default_store

pytestmark = pytest.mark.django_db

LIST = "/admin/prism_memory/memory/"


def page_of(memory):
    return reverse("admin:prism_memory_memory_change", args=[memory.pk])


def listed(client, **parameters):
    """Return the texts of the memories that the list shows, whatever it shows of them."""
    response = client.get(LIST, parameters)
    assert response.status_code == 200, response.headers
    return {row.content for row in response.context["cl"].result_list}


@pytest.fixture
def row(memory):
    memory.remember(
        [{"role": "user", "name": "Ana", "content": "My secret is <b>mauve</b>."}],
        metadata={"channel": "télé", "nothing": None},
        occurred_at="2026-01-31T12:00:00Z",
    )
    return Memory.objects.get()


@pytest.fixture
def viewer(client, django_user_model):
    """Somebody who may view memories, and nothing else."""
    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_memory"))
    client.force_login(viewer)
    return client


def test_only_memories_and_spaces_are_registered():
    ours = {model for model in admin.site._registry if model._meta.app_label == "prism_memory"}
    assert ours == {Memory, Space}


# Read-only


def test_a_superuser_may_only_look(admin_client, row):
    assert admin_client.get(LIST).status_code == 200
    assert admin_client.get(page_of(row)).status_code == 200
    assert admin_client.get(f"{LIST}add/").status_code == 403
    assert admin_client.post(page_of(row), {"content": "changed"}).status_code == 403
    delete = reverse("admin:prism_memory_memory_delete", args=[row.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    assert Memory.objects.get().content == row.content


def test_there_is_no_action_that_deletes(admin_client, row):
    selected = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    admin_client.post(LIST, selected)
    assert Memory.objects.count() == 1
    assert "delete_selected" not in admin_client.get(LIST).content.decode()


def test_a_page_offers_no_field_to_change(admin_client, row):
    page = admin_client.get(page_of(row)).content.decode()
    form = (
        page.partition('<form action="" method="post"')[2] or page.partition('id="memory_form"')[2]
    )
    assert "<textarea" not in form
    assert 'name="_save"' not in form


def test_looking_takes_djangos_permission(viewer, row, django_user_model):
    assert viewer.get(LIST).status_code == 200
    assert viewer.get(page_of(row)).status_code == 200
    viewer.force_login(django_user_model.objects.create_user("clerk", is_staff=True))
    assert viewer.get(LIST).status_code == 403
    assert viewer.get(page_of(row)).status_code == 403


# The list


def test_the_list_reads_no_vector_and_no_text(admin_client, row):
    with CaptureQueriesContext(connection) as queries:
        page = admin_client.get(LIST).content.decode()
    asked = [query["sql"] for query in queries if "prism_memory_memory" in query["sql"]]
    assert asked
    for sql in asked:
        assert "vector" not in sql
        assert "prism_memory_embedding" not in sql
        columns = sql.partition(" FROM ")[0].replace(f"LENGTH({row_column('content')})", "")
        assert row_column("content") not in columns
        assert row_column("metadata") not in columns
    assert "mauve" not in page
    assert f'<td class="field-characters">{len(row.content)}</td>' in page


def row_column(name):
    quote = connection.ops.quote_name
    return f"{quote('prism_memory_memory')}.{quote(name)}"


def test_the_list_costs_the_same_however_long_it_is(admin_client, memory):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            admin_client.get(LIST)
        return len(captured)

    memory.remember("one")
    few = queries()
    memory.remember([f"memory {number}" for number in range(30)])
    assert queries() == few


def test_the_list_says_whose(admin_client, memory, user):
    memory.remember("one")
    Memory.objects.for_owner("session 7").remember("two")
    default_store().upsert([VectorRecord(collection="handbook", id="h", content="three")])
    page = admin_client.get(LIST).content.decode()
    for whose in (f"auth.User {user.pk}", "session 7", "handbook"):
        assert f'<td class="field-whose">{whose}</td>' in page


def test_filters(admin_client, memory, embedder):
    memory.remember({"role": "user", "content": "embedded"})
    Memory.objects.for_owner("x").remember({"role": "assistant", "content": "waiting"})
    default_store().upsert(
        [
            VectorRecord(
                collection="handbook", id="h", content="passage", kind="passage",
                expires_at=timezone.now() - timedelta(1),
            )
        ]
    )  # fmt: skip
    assert listed(admin_client, embedded="yes") == {"embedded"}
    assert listed(admin_client, embedded="no") == {"waiting", "passage"}
    assert listed(admin_client, expired="yes") == {"passage"}
    assert listed(admin_client, expired="no") == {"embedded", "waiting"}
    assert listed(admin_client, owned="yes") == {"embedded", "waiting"}
    assert listed(admin_client, owned="no") == {"passage"}
    assert listed(admin_client, role="assistant") == {"waiting"}
    assert listed(admin_client, kind="observation") == {"embedded", "waiting"}
    assert listed(admin_client, kind="passage") == {"passage"}
    assert listed(admin_client) == {"embedded", "waiting", "passage"}


def test_embedded_means_in_the_space_that_is_searched(admin_client, memory, settings):
    memory.remember("embedded by the model before")
    settings.PRISM_MEMORY = {
        "EMBEDDER": {"BACKEND": "prism_memory.testing.FakeEmbedder", "OPTIONS": {"dimensions": 32}}
    }
    assert listed(admin_client, embedded="yes") == set()


def test_search(admin_client, user, embedder):
    [record_id] = Memory.objects.for_owner(user, scope="support").remember("I like mauve")
    Memory.objects.for_owner("somebody").remember("I like green")
    assert listed(admin_client, q="mauve") == {"I like mauve"}
    assert listed(admin_client, q="somebody") == {"I like green"}
    assert listed(admin_client, q=record_id) == {"I like mauve"}
    assert listed(admin_client, q="support") == {"I like mauve"}
    assert listed(admin_client, q="some") == set()  # half an owner is none


def test_the_dates_are_those_of_what_happened(admin_client, row):
    assert listed(admin_client, occurred_at__year=2026, occurred_at__month=1) == {row.content}
    assert listed(admin_client, occurred_at__year=2025) == set()


def test_dates_are_offered_where_the_database_knows_the_time_zone(
    admin_client, row, settings, monkeypatch
):
    """MySQL and MariaDB don't, as they are installed; the list has to do without."""
    monkeypatch.setattr(connection.features, "has_zoneinfo_database", False)
    for zone, offered in (("UTC", True), ("Asia/Kathmandu", not settings.USE_TZ)):
        settings.TIME_ZONE = zone
        page = admin_client.get(LIST)
        assert page.context["cl"].date_hierarchy == ("occurred_at" if offered else None)
        assert ("January" in page.content.decode()) == offered


# One memory


def test_a_memory_shows_what_was_said_and_escapes_it(admin_client, row):
    page = admin_client.get(page_of(row)).content.decode()
    assert "My secret is &lt;b&gt;mauve&lt;/b&gt;." in page
    assert "&quot;channel&quot;: &quot;télé&quot;" in page
    assert "&quot;nothing&quot;: null" in page
    assert row.record_id in page


def test_a_vector_is_shown_as_facts(admin_client, memory):
    memory.remember("hello")
    store, row = default_store(), Memory.objects.get()
    vector = [0.123456789, 3.0, 4.0]
    store.attach(row.collection, {row.record_id: vector}, "other@3")
    embedding = Embedding.objects.get(space__name="other@3")
    page = admin_client.get(page_of(row)).content.decode()
    cells = page.partition("<td>other@3</td>")[2].partition("</tr>")[0]
    assert cells == (
        f"<td>3</td><td>5.002</td><td><code>{bytes(embedding.signature).hex()}</code></td>"
    )
    assert "<td>64</td><td>1</td>" in page
    assert "0.123456" not in page


def test_a_damaged_vector_does_not_break_the_page(admin_client, row):
    Embedding.objects.update(vector=b"123")
    assert "<td>0</td><td>?</td>" in admin_client.get(page_of(row)).content.decode()


def test_a_memory_without_a_vector_says_so(admin_client, embedder):
    Memory.objects.for_owner("x").remember("waits")
    page = admin_client.get(page_of(Memory.objects.get())).content.decode()
    assert "None yet: this memory can&#x27;t be recalled." in page


# Spaces, users, start-up


def test_a_space_is_shown_with_the_number_of_its_vectors(admin_client, memory):
    memory.remember(["one", "two"])
    page = admin_client.get("/admin/prism_memory/space/").content.decode()
    assert '<td class="field-width">64</td>' in page
    assert '<td class="field-held">2</td>' in page
    detail = reverse("admin:prism_memory_space_change", args=[Space.objects.get().pk])
    assert admin_client.get(detail).status_code == 200
    assert admin_client.get("/admin/prism_memory/space/add/").status_code == 403


@pytest.mark.parametrize("several", [False, True])
def test_deleting_a_user_works_and_forgets_her_memories(admin_client, memory, user, several):
    memory.remember(["one", "two"])
    kept = Memory.objects.for_owner("somebody")
    kept.remember("kept")
    if several:
        url = "/admin/auth/user/"
        data = {"action": "delete_selected", "_selected_action": [user.pk], "post": "yes"}
    else:
        url, data = f"/admin/auth/user/{user.pk}/delete/", {"post": "yes"}
    assert admin_client.post(url, data).status_code == 302
    assert not type(user).objects.filter(pk=user.pk).exists()
    assert memory.count() == 0
    assert not Embedding.objects.exists()
    assert not SignaturePage.objects.exists()
    assert kept.count() == 1


def test_starting_up_with_the_admin_does_not_import_numpy():
    code = (
        "import os, sys, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings';"
        "django.setup(); import prism_memory.admin; sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
