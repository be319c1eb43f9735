"""The handle: every verb is on it, and none on the manager."""

from __future__ import annotations

import pytest
from django.template import Context, Template

from prism_memory.exceptions import InvalidArgument
from prism_memory.memory import OwnerMemory
from prism_memory.models import Memory

MUTATORS = ["remember", "embed_pending", "forget", "forget_before"]
#: Those that are not also Django's.
OWN = [*MUTATORS, "recall", "pending", "aremember", "arecall", "aforget", "apending"]


@pytest.mark.parametrize("verb", [*OWN, "delete", "erase", "synchronously", "records"])
def test_the_bare_manager_has_no_verbs(verb):
    with pytest.raises(AttributeError):
        getattr(Memory.objects, verb)


@pytest.mark.parametrize("verb", OWN)
def test_querysets_have_no_verbs(verb):
    assert not hasattr(Memory.objects.all(), verb)


def test_a_query_that_lost_its_owner_hands_out_no_handle():
    assert not hasattr(Memory.objects.all(), "for_owner")
    assert not hasattr(Memory.objects.using("default"), "for_owner")
    with pytest.raises(InvalidArgument, match="DATABASE_ROUTERS"):
        Memory.objects.db_manager("default").for_owner("ana")


@pytest.mark.parametrize("verb", MUTATORS)
def test_templates_are_kept_from_verbs_that_change_something(verb):
    assert getattr(OwnerMemory, verb).alters_data is True
    assert getattr(OwnerMemory, "a" + verb).alters_data is True


@pytest.mark.django_db
@pytest.mark.parametrize(
    "expression",
    [
        "forget",
        "aforget",
        "embed_pending",
        "records.delete",
        "records.erase",
        "records.first.delete",
    ],
)
def test_a_template_changes_nothing(memory, expression):
    memory.remember("I live in Graz.")
    shown = Template("{{ memory." + expression + " }}").render(Context({"memory": memory}))
    assert shown == ""
    assert memory.count() == 1


@pytest.mark.django_db
def test_a_template_can_count(memory):
    memory.remember("I live in Graz.")
    assert Template("{{ memory.count }}").render(Context({"memory": memory})) == "1"


@pytest.mark.django_db
def test_a_scope_is_a_memory_of_its_own(user, embedder):
    support = Memory.objects.for_owner(user, scope="support").synchronously()
    private = Memory.objects.for_owner(user, "private").synchronously()
    ids = support.remember("My billing address is 5 Hill Street.")
    assert private.remember("My billing address is 5 Hill Street.") == ids
    assert support.collection != private.collection
    assert support.forget(ids) == 1
    assert (support.count(), private.count()) == (0, 1)
    assert len(support.recall("billing address")) == 0
    assert len(private.recall("billing address")) == 1


@pytest.mark.django_db
def test_records_is_a_queryset_of_this_handle_only(memory, embedder):
    ids = memory.remember(["I live in Graz.", "I work in Linz."])
    Memory.objects.for_owner("somebody").remember("I live in Wien.")
    records = memory.records()
    assert sorted(records.values_list("record_id", flat=True)) == sorted(ids)
    assert records.filter(content__contains="Graz").count() == 1
    row = records.get(record_id=ids[0])
    assert (row.owner_model, row.scope, row.kind) == ("auth.User", "default", "observation")
    assert row.owner == str(memory._address.owner.key)


@pytest.mark.django_db
def test_what_logs_show_of_a_memory_is_not_its_text(memory, user):
    memory.remember("I live in Graz.")
    for shown in (str(memory.records().get()), repr(memory.records()), repr(memory)):
        assert "Graz" not in shown


@pytest.mark.django_db
def test_synchronously_makes_a_copy(user, embedder):
    handle = Memory.objects.for_owner(user)
    at_once = handle.synchronously()
    assert at_once is not handle
    assert at_once.collection == handle.collection
    at_once.remember("I live in Graz.")
    assert (handle.count(), handle.pending()) == (1, 0)
    handle.remember("I work in Linz.")  # not before this test's transaction commits
    assert (handle.count(), handle.pending()) == (2, 1)
    assert handle.embed_pending() == 1
    assert handle.embed_pending() == 0
    assert handle.pending() == 0
