"""memory_forget_before: strictly before, by when it happened, of whom it was asked for."""

from __future__ import annotations

import builtins
from datetime import UTC, datetime

import pytest

from prism_memory.management import base
from prism_memory.models import Memory
from prism_memory.stores import VectorRecord, default_store
from prism_memory.timestamps import to_database

from .commands import misused, run
from .models import Team

pytestmark = pytest.mark.django_db

COMMAND = "memory_forget_before"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def talk(memory):
    """A handle with one memory a year."""
    for year in range(2020, 2025):
        memory.remember(f"said in {year}", occurred_at=f"{year}-01-01T00:00:00Z")
    return memory


@pytest.fixture
def answers(monkeypatch):
    """Answer questions, and keep them."""

    def answer(text):
        def ask(question):
            asked.append(question)
            if isinstance(text, BaseException):
                raise text
            return text

        asked: list[str] = []
        monkeypatch.setattr(builtins, "input", ask)
        return asked

    answer(AssertionError("Nobody is to be asked."))
    return answer


def years(handle):
    return sorted(row.occurred_at.year for row in handle.records())


def test_strictly_before_by_when_it_happened(talk, user, answers):
    ran = run(COMMAND, "2022-01-01", f"--owner=auth.User:{user.pk}", "--no-input")
    assert (ran.out, ran.err, ran.code) == ("Forgot 2 memories.\n", "", 0)
    assert years(talk) == [2022, 2023, 2024]


def test_a_moment_has_microseconds_and_a_zone(memory, answers):
    memory.remember("noon", occurred_at=NOON)
    assert run(COMMAND, "2026-01-31T12:00:00Z", "--all", "--no-input").out == "Forgot 0 memories.\n"
    assert (
        run(COMMAND, "2026-01-31T13:00:00.000001+01:00", "--all", "--no-input").out
        == "Forgot 1 memory.\n"
    )


def test_what_was_stored_late_counts_by_when_it_happened(memory, answers):
    memory.remember("stored now", occurred_at="1999-01-01")
    memory.records().update(created_at=to_database(NOON))
    assert run(COMMAND, "2000-01-01", "--all", "--no-input").out == "Forgot 1 memory.\n"


def test_only_the_named_owner_forgets(talk, user, django_user_model, answers):
    other = Memory.objects.for_owner(django_user_model.objects.create_user("ben"))
    namesake = Memory.objects.for_owner(str(user.pk))
    for handle in (other, namesake):
        handle.remember("kept", occurred_at="2001-01-01")
    run(COMMAND, "2030-01-01", f"--owner=auth.User:{user.pk}", "--no-input")
    assert (talk.count(), other.count(), namesake.count()) == (0, 1, 1)


def test_an_owner_that_is_a_string(talk, answers):
    handle = Memory.objects.for_owner("auth.User:1")
    handle.remember("x", occurred_at="2001-01-01")
    ran = run(COMMAND, "2030-01-01", "--owner-string=auth.User:1", "--no-input")
    assert ran.out == "Forgot 1 memory.\n"
    assert talk.count() == 5


def test_an_owner_whose_key_holds_colons(settings, answers):
    settings.PRISM_MEMORY = {**settings.PRISM_MEMORY, "OWNERS": ["tests.Team"]}
    handle = Memory.objects.for_owner(Team.objects.create(slug="a:b"))
    handle.remember("x")
    run(COMMAND, "2100-01-01", "--owner=tests.Team:a:b", "--no-input")
    assert handle.count() == 0


def test_an_owner_that_no_longer_exists(talk, user, django_user_model, answers):
    django_user_model.objects.filter(pk=user.pk)._raw_delete("default")
    run(COMMAND, "2030-01-01", f"--owner=auth.user:{user.pk}", "--no-input")
    assert talk.count() == 0


def test_an_owner_whose_model_is_no_longer_installed(talk, answers):
    from prism_memory.owners import Owner

    talk.records().update(
        owner_model="gone.Customer", owner="7", owner_key=Owner("gone.Customer", "7").digest
    )
    run(COMMAND, "2030-01-01", "--owner=gone.Customer:7", "--no-input")
    assert talk.count() == 0


@pytest.mark.parametrize(
    "owner", ["gone.Customer:7", "auth.User:seven", "auth.User", "7", "User:7"]
)
def test_an_owner_that_can_not_be_is_misuse(talk, owner, answers):
    ran = run(COMMAND, "2030-01-01", "--owner", owner, "--no-input")
    assert ran.code == 2
    assert f"--owner is {owner!r}" in ran.err
    assert talk.count() == 5


def test_a_child_of_an_owner_model_is_named_by_its_parent(talk, answers):
    ran = run(COMMAND, "2030-01-01", "--owner=tests.Employee:1", "--no-input")
    assert ran.code == 2
    assert "Give --owner auth.User:pk." in ran.err


def test_a_proxy_is_the_model_that_it_stands_for(talk, user, answers):
    run(COMMAND, "2030-01-01", f"--owner=tests.ProxyUser:{user.pk}", "--no-input")
    assert talk.count() == 0


def test_only_in_the_scope(user, answers):
    handles = [Memory.objects.for_owner(user, scope=scope) for scope in ("Work", "work", "work ")]
    for handle in handles:
        handle.remember("x", occurred_at="2001-01-01")
    for whose in ("--all", f"--owner=auth.User:{user.pk}"):
        handles[1].remember("x", occurred_at="2001-01-01")
        ran = run(COMMAND, "2030-01-01", whose, "--scope=work", "--no-input")
        assert ran.out == "Forgot 1 memory.\n"
        assert [handle.count() for handle in handles] == [1, 0, 1]


def test_all_means_every_owner_in_every_scope_and_no_passages(talk, user, answers):
    Memory.objects.for_owner("x", scope="y").remember("z", occurred_at="2001-01-01")
    default_store().upsert(
        [VectorRecord(collection="handbook", id="h", content="kept", occurred_at=NOON)]
    )
    assert run(COMMAND, "2030-01-01", "--all", "--no-input").out == "Forgot 6 memories.\n"
    assert Memory.objects.get().collection == "handbook"


def test_a_dry_run_says_would_asks_nothing_and_forgets_nothing(talk, user, answers):
    ran = run(
        *(COMMAND, "2022-01-01T00:00Z", f"--owner=auth.User:{user.pk}"),
        *("--scope=default", "--dry-run"),
    )
    assert ran.out == (
        f"Would forget 2 memories of auth.User:{user.pk} in default "
        "from before 2022-01-01T00:00:00+00:00.\n"
    )
    assert (talk.count(), ran.code) == (5, 0)


def test_yes_forgets_after_being_told_how_many_and_whose(talk, answers):
    asked = answers("yes")
    assert run(COMMAND, "2022-01-01T00:00Z", "--all").out == "Forgot 2 memories.\n"
    assert asked[0].startswith(
        "This forgets 2 memories of all owners in all scopes "
        "from before 2022-01-01T00:00:00+00:00, for good."
    )


@pytest.mark.parametrize("answer", ["", "y", "YES ", "no", EOFError(), KeyboardInterrupt()])
def test_anything_but_yes_forgets_nothing(talk, answers, answer):
    answers(answer)
    ran = run(COMMAND, "2022-01-01", "--all")
    assert (ran.err, ran.code) == ("Nothing was forgotten.", 1)
    assert talk.count() == 5


def test_nobody_is_asked_about_nothing(talk, answers):
    assert run(COMMAND, "1990-01-01", "--all").out == "Forgot 0 memories.\n"


def test_many_rows_go_in_batches_under_a_bar(talk, answers, monkeypatch):
    monkeypatch.setattr(base, "BATCH", 2)
    ran = run(COMMAND, "2030-01-01", "--all", "--no-input", terminal=True)
    assert ran.out == "Forgot 5 memories.\n"
    assert "Forgetting [" in ran.err


def test_texts_never_appear(talk, answers):
    asked = answers("yes")
    ran = run(COMMAND, "2030-01-01", "--all", terminal=True)
    assert "said in" not in ran.out + ran.err + asked[0]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("2026-01-01",),
        ("--all",),
        ("yesterday", "--all"),
        ("2026-02-30", "--all"),
        ("1769860800000", "--all"),
        ("2026-01-01", "--all", "--owner=auth.User:1"),
        ("2026-01-01", "--owner=auth.User:1", "--owner-string=x"),
        ("2026-01-01", "--owner-string="),
        ("2026-01-01", "--all", "--scope="),
    ],
)
def test_what_is_unclear_is_misuse(db, arguments):
    assert "error: " in misused(COMMAND, *arguments)
