"""memory_orphans: owners that no signal reported deleted."""

from __future__ import annotations

import builtins

import pytest
from django.core.management import call_command

from prism_memory.management import orphans
from prism_memory.models import Memory
from prism_memory.owners import Owner
from prism_memory.stores import VectorRecord, default_store

from .commands import Terminal, run
from .models import Person, Profile, Team

pytestmark = pytest.mark.django_db

COMMAND = "memory_orphans"


@pytest.fixture
def owners(settings, embedder):
    settings.PRISM_MEMORY = {
        **settings.PRISM_MEMORY,
        "OWNERS": ["auth.User", "tests.Person", "tests.Team", "tests.Profile"],
    }


def remembering(owner, *messages):
    handle = Memory.objects.for_owner(owner)
    handle.remember(list(messages) or ["hello"])
    return handle


def vanish(instance):
    """Delete without a signal, as raw SQL does."""
    type(instance)._base_manager.filter(pk=instance.pk)._raw_delete("default")


def renamed(handle, owner):
    """Have memories name another owner, as after a change of the project's models."""
    handle.records().update(owner_model=owner.model, owner=owner.key, owner_key=owner.digest)


def test_everybody_exists(owners, user):
    remembering(user)
    remembering(Person.objects.create())
    remembering(Team.objects.create(slug="blue"))
    remembering(Profile.objects.create(user=user))
    ran = run(COMMAND)
    assert (ran.out, ran.code) == ("Every owner that can be checked exists.\n", 0)


def test_who_is_gone_is_listed_and_nothing_is_forgotten(owners, user):
    person = Person.objects.create()
    handle = remembering(person, "one", "two")
    remembering(user)
    vanish(person)
    ran = run(COMMAND)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        f"  orphaned        2  tests.Person:{person.pk}",
        "Found 2 memories of 1 orphaned owner. To forget them: memory_orphans --forget.",
    ]
    assert handle.count() == 2


@pytest.mark.parametrize("make", [Person.objects.create, lambda: Team.objects.create(slug="b:c")])
def test_forget_erases_orphans_and_nobody_else(owners, user, make):
    orphan, alive = make(), remembering(user)
    handle = remembering(orphan)
    other_scope = Memory.objects.for_owner(orphan, scope="other")
    other_scope.remember("hello")
    string = remembering(str(orphan.pk))
    vanish(orphan)
    ran = run(COMMAND, "--forget", "--no-input")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "Forgot 2 memories.")
    counts = [each.count() for each in (handle, other_scope, alive, string)]
    assert counts == [0, 0, 1, 1]


def test_an_owner_by_another_owners_key(owners, user):
    profile = Profile.objects.create(user=user)
    handle, kept = remembering(profile), remembering(user)
    vanish(profile)
    run(COMMAND, "--forget", "--no-input")
    assert (handle.count(), kept.count()) == (0, 1)


def test_strings_are_not_checked_and_said_so(owners):
    handle = remembering("session 7")
    out = run(COMMAND, "--forget", "--no-input").out
    assert out.startswith("Owners that are strings, which can't be checked: 1.\n")
    assert handle.count() == 1


def test_passages_have_no_owner_that_could_be_missing(owners):
    default_store().upsert([VectorRecord(collection="handbook", id="h", content="x")])
    assert run(COMMAND, "--forget", "--no-input").out == "Every owner that can be checked exists.\n"
    assert Memory.objects.count() == 1


@pytest.mark.parametrize("owner", [Owner("gone.Customer", "7"), Owner("auth.User", "a-uuid")])
def test_what_can_not_be_known_is_reported_and_never_forgotten(owners, owner):
    handle = remembering("somebody")
    renamed(handle, owner)
    ran = run(COMMAND, "--forget", "--no-input")
    assert f"unknown         1  {owner.model}:{owner.key}" in ran.out
    assert "keys of another type by now: 1." in ran.out
    assert (handle.count(), ran.code) == (1, 0)
    # What the report advises works.
    run("memory_forget_before", "2100-01-01", f"--owner={owner.model}:{owner.key}", "--no-input")
    assert handle.count() == 0


def test_a_swapped_out_user_model_is_unknown(owners, user, monkeypatch):
    handle = remembering(user)
    vanish(user)
    monkeypatch.setattr(type(user)._meta, "swapped", "tests.Person")
    assert "unknown" in run(COMMAND, "--forget", "--no-input").out
    assert handle.count() == 1


def test_owners_hidden_by_the_models_own_manager_exist(owners, monkeypatch):
    class Hiding(type(Person.objects)):
        def get_queryset(self):
            return super().get_queryset().none()

    handle = remembering(Person.objects.create())
    hiding = Hiding()
    hiding.model = Person
    monkeypatch.setattr(Person, "objects", hiding)
    run(COMMAND, "--forget", "--no-input")
    assert handle.count() == 1


def test_owners_are_looked_up_in_pages(owners, monkeypatch, django_assert_max_num_queries):
    monkeypatch.setattr(orphans, "PAGE", 2)
    people = [Person.objects.create() for _ in range(5)]
    for person in people:
        remembering(person)
    for person in people[:3]:
        vanish(person)
    assert "Found 3 memories of 3 orphaned owners" in run(COMMAND).out
    monkeypatch.setattr(orphans, "PAGE", 1_000)
    with django_assert_max_num_queries(4):
        run(COMMAND)


def test_a_question_is_asked_and_no_is_taken_for_an_answer(owners, monkeypatch):
    person = Person.objects.create()
    handle = remembering(person)
    vanish(person)
    asked = []
    monkeypatch.setattr(builtins, "input", lambda question: asked.append(question) or "no")
    ran = run(COMMAND, "--forget")
    assert (ran.err, ran.code, handle.count()) == ("Nothing was forgotten.", 1, 1)
    assert asked[0].startswith("This forgets 1 memory of 1 orphaned owner, for good.")
    monkeypatch.setattr(builtins, "input", lambda question: "yes")
    run(COMMAND, "--forget")
    assert handle.count() == 0


def test_who_comes_back_while_somebody_is_asked_keeps_her_memories(owners, monkeypatch):
    team = Team.objects.create(slug="blue")
    handle = remembering(team)
    vanish(team)

    def back(question):
        Team.objects.create(slug="blue")
        return "yes"

    monkeypatch.setattr(builtins, "input", back)
    assert run(COMMAND, "--forget").out.endswith("Forgot 0 memories.\n")
    assert handle.count() == 1


def test_progress_on_a_terminal_gives_way_to_what_is_listed(owners):
    person = Person.objects.create()
    remembering(person)
    vanish(person)
    err = run(COMMAND, "--forget", "--no-input", terminal=True).err
    assert "Looking [" in err
    assert "Forgetting [" in err
    assert run(COMMAND, terminal=False).err == ""


def test_a_line_of_the_list_does_not_run_into_the_bar(owners):
    person = Person.objects.create()
    remembering(person)
    vanish(person)
    terminal = Terminal()
    call_command(COMMAND, stdout=terminal, stderr=terminal, no_color=True)
    before, _, _ = terminal.getvalue().partition("  orphaned")
    assert "Looking [" in before
    assert before.endswith(" \r")
